"""Sinks whose subclass overrides a hook and forgets `super()`: they say so, where nothing would come out."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import IdempotentSink, LedgerSink, Operator, SuperNotCalled, TwoPhaseCommitSink
from understudy.actors.errors import UserCodeError
from understudy.testing import OperatorHarness


class Transactions(TwoPhaseCommitSink[str]):
    def begin_transaction(self) -> str:
        return "one"

    def write(self, transaction: str, batch: Any) -> None: ...

    def pre_commit(self, transaction: str) -> None: ...

    def commit(self, transaction: str) -> None: ...

    def abort(self, transaction: str) -> None: ...


class Ledger(LedgerSink):
    def apply(self, batches: Any, marker: Any) -> None: ...

    def last_marker(self, writer: str) -> None: ...


class Upserts(IdempotentSink):
    def upsert(self, batch: Any) -> None: ...


class TransactionsThatOpen(Transactions):
    def open(self) -> None: ...


class TransactionsAtBarriers(Transactions):
    def on_checkpoint(self, checkpoint_id: int) -> None: ...


class TransactionsThatComplete(Transactions):
    def on_checkpoint_complete(self, checkpoint_id: int) -> None: ...


class LedgerAtBarriers(Ledger):
    def on_checkpoint(self, checkpoint_id: int) -> None: ...


class LedgerThatCompletes(Ledger):
    def on_checkpoint_complete(self, checkpoint_id: int) -> None: ...


class UpsertsAtBarriers(Upserts):
    def on_checkpoint(self, checkpoint_id: int) -> None: ...


def one_checkpoint(sink: type[Operator]) -> None:
    with OperatorHarness(sink) as harness:
        harness.process(["a"])
        harness.complete(harness.snapshot())


@pytest.mark.parametrize(
    ("sink", "call", "lost"),
    [
        (TransactionsThatOpen, "open()", "no transaction is open"),
        (TransactionsAtBarriers, "on_checkpoint(checkpoint_id)", "nothing is committed"),
        (TransactionsThatComplete, "on_checkpoint_complete(checkpoint_id)", "nothing is committed"),
        (LedgerAtBarriers, "on_checkpoint(checkpoint_id)", "nothing is applied"),
        (LedgerThatCompletes, "on_checkpoint_complete(checkpoint_id)", "nothing is applied"),
        (UpsertsAtBarriers, "on_checkpoint(checkpoint_id)", "what waits is not in the checkpoint, nor outside"),
    ],
)
def test_a_sink_that_does_not_call_super_says_so(sink: type[Operator], call: str, lost: str) -> None:
    with pytest.raises(UserCodeError) as raised:
        one_checkpoint(sink)
    cause = raised.value.__cause__
    assert isinstance(cause, SuperNotCalled)
    method = call.partition("(")[0]
    assert str(cause) == f"{sink.__name__}.{method} does not call super().{call}, so {lost}: let it do that first"


@pytest.mark.parametrize("sink", [Transactions, Ledger, Upserts])
def test_one_that_does_goes_on(sink: type[Operator]) -> None:
    one_checkpoint(sink)
