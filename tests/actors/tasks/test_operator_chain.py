"""OperatorChain: what operators hold back comes out before a barrier and when there is no input, in order."""

from __future__ import annotations

from typing import Any

from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.actors.tasks.operator_chain import OperatorChain
from understudy.messages import CheckpointId


class Holding(Operator):
    """Gives its records on when it is told to, with its name."""

    def __init__(self, name: str, log: list[Any], delay_ms: float | None = None) -> None:
        self._name, self._log, self._delay_ms = name, log, delay_ms
        self._held: list[Any] = []

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        self._held += batch

    def on_idle(self, out: Collector) -> float | None:
        self._let_go(out)
        return self._delay_ms

    def before_barrier(self, checkpoint_id: CheckpointId, out: Collector) -> None:
        self._let_go(out)

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self._log.append((self._name, checkpoint_id, list(self._held)))

    def _let_go(self, out: Collector) -> None:
        for record in self._held:
            out.collect(record + self._name)
        self._held.clear()


class Passing(Operator):
    def process_batch(self, batch: list[Any], out: Collector) -> None:
        out.emit(batch)


def test_nothing_is_held_back_at_a_barrier() -> None:
    log: list[Any] = []
    chain = OperatorChain([Holding("a", log), Passing(), Holding("b", log)], log.append)
    chain.process(["1", "2"])
    assert log == []
    chain.checkpoint(CheckpointId(7))
    assert log == [["1ab", "2ab"], ("a", 7, []), ("b", 7, [])]


def test_what_is_held_back_may_go_when_there_is_no_input() -> None:
    log: list[Any] = []
    chain = OperatorChain([Holding("a", log, 9.0), Passing(), Holding("b", log, 4.0)], log.append)
    chain.process(["1"])
    assert chain.idle() == 4.0
    assert log == [["1ab"]]
    assert OperatorChain([Passing(), Holding("a", log)], log.append).idle() is None
    assert OperatorChain([Passing()], log.append).idle() is None


class Doubling(Operator):
    """Makes each record's batches one by one, between two others."""

    def __init__(self, log: list[Any]) -> None:
        self._log = log

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        out.collect("first")
        out.emit_each(self._made(record) for record in batch)
        out.collect("last")

    def _made(self, record: str) -> list[str]:
        self._log.append(f"{record} is made")
        return [record, record]


def test_batches_that_are_made_one_by_one_are_sent_on_before_the_next_is_made() -> None:
    log: list[Any] = []
    OperatorChain([Doubling(log), Passing()], log.append).process(["a", "b"])
    assert log == [["first"], "a is made", ["a", "a"], "b is made", ["b", "b"], ["last"]]
