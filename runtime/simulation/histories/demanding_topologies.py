"""Demanding topologies: jobs whose output shows more than how many records there were. The mix of histories draws them
where a situation needs them.

`ordered` shows the order in which the records of a key come, and that of a user's list. `held` has items in an operator
list, which a rescale deals out with a remainder, and emits them when its data has ended, into a vertex that counts.
`tallied` emits from keyed state when its data has ended, into another keyed vertex.
"""

from __future__ import annotations

from typing import Any

from ....actors.operators.operator import Collector, KeyedOperator, Operator
from ....state import ListState, OperatorListState, ValueState
from ...api.environment import StreamEnvironment
from .topologies import OUTPUT, Counter, Same, Topology, Workload, _counted, environment

_REMEMBERED = 3


class Follows(KeyedOperator):
    """With each number the last ones of its key, in the order in which they came."""

    seen = ListState(int)

    def process(self, record: int, out: Collector) -> None:
        self.seen.add(record)
        out.collect((self.key, *list(self.seen.get())[-_REMEMBERED:]))


class Hold(Operator):
    """Keeps every second number until its data has ended; lets the others through."""

    held = OperatorListState(int)

    def process_batch(self, batch: list[int], out: Collector) -> None:
        for number in batch:
            if number % 2:
                self.held.add(number)
            else:
                out.collect(number)

    def on_end(self, out: Collector) -> None:
        for number in self.held.get():
            out.collect(number)
        self.held.clear()


class Tally(KeyedOperator):
    """(key, how many there were), when its data has ended."""

    count = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.count.update(self.count.value() + 1)

    def on_end(self, out: Collector) -> None:
        for key in self.keys():
            out.collect((key, self.count.value()))


def _everywhere(env: StreamEnvironment, workload: Workload) -> Any:
    """The numbers, from as many subtasks as the job has: one of them may end long before another."""
    return env.from_collection(
        range(workload.records),
        records_per_second=workload.records_per_second,
        name="numbers",
        parallelism=workload.parallelism,
    )


def _ordered(workload: Workload) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys
    numbers = env.from_collection(
        range(workload.records), records_per_second=workload.records_per_second, name="numbers", parallelism=1
    )
    numbers.key_by(lambda number: number % keys).process(Follows, name="follows").collect(name=OUTPUT)
    return env


def _held(workload: Workload) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys
    held = _everywhere(env, workload).process(Hold, name="hold")
    held.key_by(lambda number: number % keys).process(Counter, name="count").collect(name=OUTPUT)
    return env


def _tallied(workload: Workload) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys
    tallies = _everywhere(env, workload).key_by(lambda number: number % keys).process(Tally, name="tally")
    tallies.key_by(lambda tally: tally[0]).process(Same, name="same").collect(name=OUTPUT)
    return env


def _followed(workload: Workload) -> list[tuple[int, ...]]:
    """Of each number, it and those before it that have its key."""
    step = workload.keys
    return [
        (number % step, *(each for each in range(number - (_REMEMBERED - 1) * step, number + 1, step) if each >= 0))
        for number in range(workload.records)
    ]


def _tallies(workload: Workload) -> list[tuple[int, int]]:
    keys = range(min(workload.keys, workload.records))
    return [(key, len(range(key, workload.records, workload.keys))) for key in keys]


DEMANDING: dict[str, Topology] = {
    each.name: each
    for each in (
        Topology("ordered", _ordered, _followed, counts_up=True),
        Topology("held", _held, lambda work: _counted(range(work.records), work.keys)),
        Topology("tallied", _tallied, _tallies, tells_at_the_end=True),
    )
}
"""By name."""
