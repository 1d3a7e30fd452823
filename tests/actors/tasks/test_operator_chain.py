"""OperatorChain: what operators hold back comes out before a barrier and when there is no input, in order."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.actors.errors import UserCodeError
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.actors.tasks.operator_chain import OperatorChain
from understudy.messages import CheckpointId
from understudy.state.errors import CallIsOver


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


class Lending(Operator):
    """Gives its `out` away at the first batch."""

    def __init__(self) -> None:
        self.context = SimpleNamespace(name="lender")  # type: ignore[assignment]
        self.lent: Collector | None = None

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        self.lent = self.lent or out
        out.emit(batch)


def test_what_a_thread_emits_after_the_call_fails_the_task_and_is_in_no_batch() -> None:
    log: list[Any] = []
    lender = Lending()
    chain = OperatorChain([lender], log.append)
    chain.process(["a"])
    raised: list[BaseException] = []

    def late() -> None:
        assert lender.lent is not None
        for emit, what in ((lender.lent.collect, "late"), (lender.lent.emit, ["late"])):
            try:
                emit(what)
            except CallIsOver as error:
                raised.append(error)

    thread = threading.Thread(target=late)
    thread.start()
    thread.join()
    assert len(raised) == 1, "the first: the task fails with it"
    with pytest.raises(UserCodeError, match="lender") as failed:
        chain.checkpoint(CheckpointId(1))
    cause = failed.value.__cause__
    assert isinstance(cause, CallIsOver)
    assert "out was used after the call" in str(cause)
    with pytest.raises(UserCodeError):
        chain.process(["b"])
    assert log == [["a"], ["b"]]


def test_an_operator_that_uses_the_out_of_an_earlier_call_fails_there() -> None:
    lender = Lending()
    chain = OperatorChain([lender], lambda _: None)
    chain.process(["a"])
    assert lender.lent is not None
    with pytest.raises(CallIsOver, match=r"^operator 'lender': out was used after the call"):
        lender.lent.collect("late")


def test_a_method_of_out_that_was_kept_is_seen_at_the_checkpoint() -> None:
    """It is a method of lists, and does not know that the collector is closed."""
    lender = Lending()
    chain = OperatorChain([lender], lambda _: None)
    collect = chain._collectors[0].collect
    chain.process(["a"])
    del lender.lent
    chain.checkpoint(CheckpointId(1))
    collect("late")
    with pytest.raises(UserCodeError, match="lender"):
        chain.checkpoint(CheckpointId(2))


def test_what_is_added_while_the_rest_is_taken_is_seen() -> None:
    lender = Lending()

    def emit(_: Any) -> None:
        assert lender.lent is not None
        if not lender.lent:
            list.append(lender.lent, "late")

    chain = OperatorChain([lender], emit)
    with pytest.raises(UserCodeError, match="lender"):
        chain.process(["a"])


def test_an_operator_that_keeps_nothing_has_one_collector_however_it_ends() -> None:
    made: list[Any] = []
    chain = OperatorChain([Passing(), Holding("a", []), Doubling(made), Passing()], lambda *_: None)
    ids = [id(each) for each in chain._collectors]
    for _ in range(2):
        chain.process(["1"])
        chain.idle()
        chain.checkpoint(CheckpointId(1))
    chain.end()
    assert [id(each) for each in chain._collectors] == ids
