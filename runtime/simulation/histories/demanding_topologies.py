"""Demanding topologies: jobs whose output shows more than how many records there were. The mix of histories draws them
where a situation needs them.

`ordered` shows the order in which the records of a key come, and that of a user's list. `held` has items in an operator
list, which a rescale deals out with a remainder, and emits them when its data has ended, into a vertex that counts.
`tallied` emits from keyed state when its data has ended, into another keyed vertex. `splits` reads as a file source
does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ....actors.operators.collector import Collector
from ....actors.operators.keyed_operator import KeyedOperator
from ....actors.operators.operator import Operator
from ....state import ListState, OperatorListState, ValueState
from ...api.environment import StreamEnvironment
from ...connectors.files.file_readers import FileSplit
from ...connectors.files.split_source import SplitSource
from .keyed_numbers import everywhere, key_of
from .topologies import OUTPUT, Counter, Same, Topology, Workload, by_name, counted, environment

_REMEMBERED = 3

_SPLIT_ROWS, _READ_ROWS = 7, 3
_NUMBERS = pa.schema([("number", pa.int64())])


class Splits(SplitSource):
    """The numbers as a file source has them: in splits of several rows, read in batches that do not divide these."""

    def __init__(self, records: int, records_per_second: float) -> None:
        super().__init__(1, records_per_second)
        starts = range(0, records, _SPLIT_ROWS)
        splits = [FileSplit(f"numbers-{start}", start, min(_SPLIT_ROWS, records - start)) for start in starts]
        self.settle("numbers", splits, _NUMBERS)

    def open_split(self, split: FileSplit) -> Iterator[pa.RecordBatch]:
        for start in range(0, split.size, _READ_ROWS):
            rows = range(split.row_group + start, split.row_group + min(start + _READ_ROWS, split.size))
            yield pa.record_batch([list(rows)], schema=_NUMBERS)


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


def _ordered(workload: Workload) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys
    numbers = env.from_collection(
        range(workload.records), records_per_second=workload.records_per_second, name="numbers", parallelism=1
    )
    numbers.key_by(lambda number: key_of(number, keys)).process(Follows, name="follows").collect(name=OUTPUT)
    return env


def _held(workload: Workload) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys
    held = everywhere(env, workload).process(Hold, name="hold")
    held.key_by(lambda number: key_of(number, keys)).process(Counter, name="count").collect(name=OUTPUT)
    return env


def _tallied(workload: Workload) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys
    tallies = everywhere(env, workload).key_by(lambda number: key_of(number, keys)).process(Tally, name="tally")
    tallies.key_by(lambda tally: tally[0]).process(Same, name="same").collect(name=OUTPUT)
    return env


def _splits(workload: Workload) -> StreamEnvironment:
    env, keys = environment(workload), workload.keys
    numbers = env.from_source(
        Splits(workload.records, workload.records_per_second), name="numbers", parallelism=workload.parallelism
    )
    plain = numbers.map(lambda row: row["number"], name="plain")
    plain.key_by(lambda number: key_of(number, keys)).process(Counter, name="count").collect(name=OUTPUT)
    return env


def _followed(workload: Workload) -> list[tuple[int, ...]]:
    """Of each number, it and those before it that have its key."""
    step = workload.keys
    return [
        (
            key_of(number, step),
            *(each for each in range(number - (_REMEMBERED - 1) * step, number + 1, step) if each >= 0),
        )
        for number in range(workload.records)
    ]


def _tallies(workload: Workload) -> list[tuple[int, int]]:
    keys = range(min(workload.keys, workload.records))
    return [(key_of(key, workload.keys), len(range(key, workload.records, workload.keys))) for key in keys]


def _counts(workload: Workload) -> list[tuple[int, int]]:
    return [(key_of(key, workload.keys), seen) for key, seen in counted(range(workload.records), workload.keys)]


DEMANDING = by_name(
    Topology("ordered", _ordered, _followed, counts_up=True),
    Topology("held", _held, _counts),
    Topology("splits", _splits, _counts),
    Topology("tallied", _tallied, _tallies, tells_at_the_end=True),
)
