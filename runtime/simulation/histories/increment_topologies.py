"""A job whose checkpoints write runs: of many keys with state a few change, and some of these hold nothing any more.

In the other jobs most keys change between two checkpoints, so that these are whole.
"""

from __future__ import annotations

from ....actors.operators.collector import Collector
from ....actors.operators.keyed_operator import KeyedOperator
from ....state import ValueState
from ...api.environment import StreamEnvironment
from .topologies import OUTPUT, Topology, Workload, by_name, environment

KEYS = 48
HOT = 8
"""The keys of all numbers but the first ones, which have one each."""


class Toggles(KeyedOperator):
    """The key and the value that it held, with each number; the value is a number and nothing by turns."""

    held = ValueState(int, default=-1)

    def process(self, record: int, out: Collector) -> None:
        before = self.held.value()
        out.collect((self.key, before))
        if before < 0:
            self.held.update(record)
        else:
            self.held.clear()


def _key(number: int) -> int:
    return number if number < KEYS else number % HOT


def _forgetful(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    numbers = env.from_collection(
        range(workload.records), records_per_second=workload.records_per_second, name="numbers", parallelism=1
    )
    numbers.key_by(_key).process(Toggles, name="toggles").collect(name=OUTPUT)
    return env


def _toggled(workload: Workload) -> list[tuple[int, int]]:
    held: dict[int, int] = {}
    found = []
    for number in range(workload.records):
        key = _key(number)
        found.append((key, held.get(key, -1)))
        if held.pop(key, None) is None:
            held[key] = number
    return found


INCREMENTS = by_name(Topology("forgetful", _forgetful, _toggled, counts_up=True))
