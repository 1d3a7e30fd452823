"""TwoPhaseCommitSink: output made visible exactly once, by transactions. Flink: TwoPhaseCommitSinkFunction.

A transaction is open, then pre-committed at a barrier, then committed when that checkpoint is complete; or it is
aborted. Open and pre-committed transactions are state, so a restored attempt can finish what an earlier one
prepared: it commits the pre-committed transactions of the checkpoint it is restored from, and aborts the one that
was open. A subclass supplies the transactions; it never decides when they are committed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, Generic

from ...messages import CheckpointId
from ...state import OperatorListState
from ..errors import SuperNotCalled
from ..unrun import result_of
from .collector import Collector
from .of_records import Handle
from .operator import Operator

log = logging.getLogger(__name__)

TRANSACTIONS = "two-phase-commit"
"""The name of the state. The handles in it mean something only to the kind of sink that made them."""


@dataclass(frozen=True, slots=True)
class _Transaction(Generic[Handle]):
    """`checkpoint_id` is the barrier at which it was pre-committed; None while it is open."""

    checkpoint_id: CheckpointId | None
    began_ms: int
    handle: Handle

    def to_plain(self) -> tuple[CheckpointId | None, int, Handle]:
        return (self.checkpoint_id, self.began_ms, self.handle)


class TwoPhaseCommitSink(Operator, Generic[Handle]):
    """A sink whose transactions are known by handles, of one type: plain data, enough to commit or abort after a crash.

    After `pre_commit` has returned, `commit` must be able to succeed from any process, however often it is called.
    """

    transaction_timeout_ms: int | None = None
    """How long after its begin the outside system may have given a transaction up by itself."""

    ignore_failures_after_timeout: bool = False
    """On restore, log instead of raise when a transaction older than the timeout cannot be committed. It is lost."""

    warn_after: float | None = 0.8
    """Log a warning when a transaction is committed, also on restore, after more than this part of
    `transaction_timeout_ms`; None: never. Flink: enableTransactionTimeoutWarnings.
    """

    _transactions = OperatorListState(tuple, name=TRANSACTIONS)
    _current: _Transaction[Handle] | None = None
    _pending: list[_Transaction[Handle]]

    # -- what a subclass supplies

    def begin_transaction(self) -> Handle:
        """Start a transaction. It may stay empty: keep what is costly or visible for the first `write`."""
        raise NotImplementedError(f"{type(self).__name__}.begin_transaction is not defined")  # abstract

    def write(self, transaction: Handle, batch: Any) -> None:
        """Add a batch: a list of records or a `pa.RecordBatch`, as `takes` says."""
        raise NotImplementedError(f"{type(self).__name__}.write is not defined")  # abstract

    def pre_commit(self, transaction: Handle) -> Handle | None:
        """Make all writes durable, still invisible. Nothing is written to it any more.

        Return a handle to remember instead, where more is known now; or None.
        """
        raise NotImplementedError(f"{type(self).__name__}.pre_commit is not defined")  # abstract

    def commit(self, transaction: Handle) -> None:
        """Make it visible. Called again after a restore, also when it had succeeded; raise when it cannot be done."""
        raise NotImplementedError(f"{type(self).__name__}.commit is not defined")  # abstract

    def abort(self, transaction: Handle) -> None:
        """Forget an open transaction and what was written to it."""
        raise NotImplementedError(f"{type(self).__name__}.abort is not defined")  # abstract

    def recover_and_commit(self, transaction: Handle) -> None:
        """Commit a transaction of an earlier attempt."""
        self._transact("commit", transaction)

    def recover_and_abort(self, transaction: Handle) -> None:
        """Abort a transaction that an earlier attempt had open. It may be committed by now, if this job goes on from a
        savepoint behind which the one before it went on: then leave it as it is.
        """
        self._transact("abort", transaction)

    def check_interval(self, interval_ms: int | None) -> None:
        """Called when the program is translated. Raise a ValueError when a transaction of this time-out cannot outlast
        its checkpoint and a restart; None: there are no periodic checkpoints.
        """

    # -- what a subclass may ask

    def transactions(self) -> list[Handle]:
        """The handles of this attempt: those that wait for their checkpoint, oldest first, and the open one."""
        return [transaction.handle for transaction in self._uncommitted()]

    # -- when it happens

    def open(self) -> None:
        self._pending = []
        recovered: list[_Transaction[Handle]] = [_Transaction(*item) for item in self._transactions.get()]
        prepared = [transaction for transaction in recovered if transaction.checkpoint_id is not None]
        for transaction in sorted(prepared, key=lambda each: each.checkpoint_id or 0):
            self._recover_and_commit(transaction)
        for transaction in recovered:
            if transaction.checkpoint_id is None:
                self._transact("recover_and_abort", transaction.handle)
        self._current = self._begin()

    def process_batch(self, batch: Any, out: Collector) -> None:
        self._transact("write", self._open_transaction().handle, batch)

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        current = self._open_transaction()
        replaced = self._transact("pre_commit", current.handle)
        handle = current.handle if replaced is None else replaced
        begun = self._begin()
        self._pending.append(replace(current, checkpoint_id=checkpoint_id, handle=handle))
        self._current = begun
        self._transactions.update([transaction.to_plain() for transaction in self._uncommitted()])

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        """Commit in order; one that fails stays pending and fails the task, whose restore commits it again."""
        while self._pending and (self._pending[0].checkpoint_id or 0) <= checkpoint_id:
            self._warn_of_age(self._pending[0])
            self._transact("commit", self._pending[0].handle)
            del self._pending[0]

    def close(self) -> None:
        """Abort the open transaction. Pre-committed ones stay as they are: a completed checkpoint may hold them."""
        current, self._current = self._current, None
        if current is not None:
            self._transact("abort", current.handle)

    def _transact(self, method: str, *args: Any) -> Any:
        """One of the subclass's own; raises UnwantedResult when it returns in place of running."""
        return result_of(self, method, *args)

    def _begin(self) -> _Transaction[Handle]:
        return _Transaction(None, self.context.clock.wall_ms(), self._transact("begin_transaction"))

    def _open_transaction(self) -> _Transaction[Handle]:
        if self._current is None:
            raise SuperNotCalled(type(self).__name__, "open()", "no transaction is open")
        return self._current

    def _lost_without_super(self, method: str, checkpoint_id: CheckpointId) -> str:
        ids = [each.checkpoint_id or 0 for each in getattr(self, "_pending", ())]
        is_done = checkpoint_id in ids if method == "on_checkpoint" else not ids or min(ids) > checkpoint_id
        return "" if is_done else "nothing is committed"

    def _uncommitted(self) -> list[_Transaction[Handle]]:
        return self._pending + ([] if self._current is None else [self._current])

    def _warn_of_age(self, transaction: _Transaction[Handle]) -> None:
        limit_ms, part = self.transaction_timeout_ms, self.warn_after
        age_ms = self.context.clock.wall_ms() - transaction.began_ms
        if limit_ms is not None and part is not None and age_ms > part * limit_ms:
            log.warning(
                "%s: transaction %s has been open for %.1f s, and the outside system gives it up after %.1f s: raise "
                "transaction_timeout_ms and the limit there, or take checkpoints more often",
                self.context.name,
                transaction.handle,
                age_ms / 1000,
                limit_ms / 1000,
            )

    def _recover_and_commit(self, transaction: _Transaction[Handle]) -> None:
        self._warn_of_age(transaction)
        try:
            self._transact("recover_and_commit", transaction.handle)
        except Exception:
            if not self._may_be_lost(transaction):
                raise
            log.exception("%s: gave up transaction %s, which timed out", self.context.name, transaction.handle)

    def _may_be_lost(self, transaction: _Transaction[Handle]) -> bool:
        if not self.ignore_failures_after_timeout or self.transaction_timeout_ms is None:
            return False
        return self.context.clock.wall_ms() - transaction.began_ms > self.transaction_timeout_ms
