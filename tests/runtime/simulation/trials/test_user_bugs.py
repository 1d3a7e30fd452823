"""Three mistakes that users make. Each is caught within a hundred histories, shrunk, and told; mended, it survives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy import KeyedOperator, Source, StreamEnvironment, TwoPhaseCommitSink, ValueState
from understudy.actors.operators.source import END
from understudy.testing import TransactionalLog, assert_exactly_once

ORDERS = [{"customer": customer, "amount": amount} for amount in range(20) for customer in ("ann", "bob")]


# ---- an operator that keeps its state in a plain attribute


class Forgetful(KeyedOperator):
    """What each customer has spent so far; in an attribute, which no checkpoint knows."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}

    def process(self, record: Any, out: Any) -> None:
        self.totals[self.key] = self.totals.get(self.key, 0) + record["amount"]
        out.collect((self.key, self.totals[self.key]))


class Mindful(KeyedOperator):
    """The same, in state."""

    total = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        self.total.update(self.total.value() + record["amount"])
        out.collect((self.key, self.total.value()))


def _totals(operator: type[KeyedOperator]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    env.from_collection(ORDERS, parallelism=2).key_by("customer").process(operator, name="totals").collect(name="out")
    return env


# ---- a source that forgets its offset


class Restarting(Source):
    """Begins anew after each restore."""

    def open(self) -> None:
        self.next = 0

    def poll(self) -> Any:
        if self.next == len(ORDERS):
            return END
        self.next += 1
        return [ORDERS[self.next - 1]]

    def offset(self) -> int:
        return self.next

    def seek(self, offset: int) -> None:
        """Forgotten: `self.next = offset`."""


class Resuming(Restarting):
    """Goes on where it was."""

    def seek(self, offset: int) -> None:
        self.next = offset


def _amounts(source: type[Source]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_source(source).map(lambda order: order["amount"]).collect(name="out")
    return env


# ---- a sink that commits on the barrier instead of on completion


class Hasty(TwoPhaseCommitSink[str]):
    """Commits when it is asked to prepare."""

    def begin_transaction(self) -> str:
        return TransactionalLog("orders").begin()

    def write(self, transaction: str, batch: Any) -> None:
        TransactionalLog("orders").append(transaction, batch)

    def pre_commit(self, transaction: str) -> None:
        TransactionalLog("orders").prepare(transaction)
        TransactionalLog("orders").commit(transaction)

    def commit(self, transaction: str) -> None:
        TransactionalLog("orders").commit(transaction)

    def abort(self, transaction: str) -> None:
        TransactionalLog("orders").abort(transaction)


class Patient(Hasty):
    """Commits when it is asked to commit."""

    def pre_commit(self, transaction: str) -> None:
        TransactionalLog("orders").prepare(transaction)


def _log(sink: type[Hasty]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_collection(range(30)).sink_to(sink)
    return env


Build = Callable[[Any], StreamEnvironment]


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("build", "buggy"), [(_totals, Forgetful), (_amounts, Restarting), (_log, Hasty)], ids=["state", "offset", "commit"]
)
def test_the_mistake_is_caught_and_shrunk(build: Build, buggy: type) -> None:
    def job() -> StreamEnvironment:
        return build(buggy)

    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(job, histories=100, first_seed=0)
    told = str(caught.value)
    print(told)
    assert told.startswith("exactly-once: sink ")
    assert "To run it again:\n    pytest 'tests/runtime/simulation/trials/test_user_bugs.py::test_the_mistake" in told
    assert "assert_exactly_once(job, first_seed=" in told
    assert 1 <= told.count("at_ms=") <= 2
    assert " FAULT: " in told
    assert "VIOLATION of exactly-once" in told


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("build", "mended"), [(_totals, Mindful), (_amounts, Resuming), (_log, Patient)], ids=["state", "offset", "commit"]
)
def test_mended_it_survives(build: Build, mended: type) -> None:
    survived = assert_exactly_once(lambda: build(mended), histories=25, first_seed=0)
    assert survived.histories == 25
    assert survived.recoveries > 10
    assert survived.checkpoints > 100
