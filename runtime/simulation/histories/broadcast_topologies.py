"""Broadcast topologies: a keyed stream with a broadcast one beside it.

`ruled` matches each number with each of some rules, whichever of the two comes first: a rule goes through the numbers
that its subtask has seen, and a number through the rules. So each pair comes once, if rules and numbers are of one
moment after each restore.
"""

from __future__ import annotations

from ....actors.operators.collector import Collector
from ....actors.operators.keyed_operator import KeyedOperator
from ....state import ListState, OperatorListState
from ...api.environment import StreamEnvironment
from .keyed_numbers import Ragged, by_key, everywhere, with_keys
from .topologies import OUTPUT, Topology, Workload, by_name, environment

_NUMBERS_PER_RULE = 4


class Ruled(KeyedOperator):
    """(key, number, rule) for each pair."""

    inputs = 2
    rules = OperatorListState(int, mode="broadcast")
    seen = ListState(int)

    def process(self, record: int, out: Collector) -> None:
        self.seen.add(record)
        for rule in self.rules.get():
            out.collect((self.key, record, rule))

    def process_2(self, record: int, out: Collector) -> None:
        self.rules.add(record)
        for key in self.keys():
            for number in self.seen.get():
                out.collect((key, number, record))


def _ruled(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    given = Ragged(_rules(workload), workload.records_per_second / _NUMBERS_PER_RULE)
    rules = env.from_source(given, name="rules", parallelism=workload.parallelism).broadcast()
    by_key(everywhere(env, workload), workload).connect(rules).process(Ruled, name="ruled").collect(name=OUTPUT)
    return env


def _rules(workload: Workload) -> int:
    return workload.records // _NUMBERS_PER_RULE


def _pairs(workload: Workload) -> list[tuple[int, int, int]]:
    return [(key, number, rule) for key, number in with_keys(workload) for rule in range(_rules(workload))]


BROADCAST = by_name(Topology("ruled", _ruled, _pairs))
"""They run by their names alone."""
