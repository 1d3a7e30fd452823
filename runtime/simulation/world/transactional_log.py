"""TransactionalLog: an outside system with transactions, for trying out sinks of your own. One per name and world.

    class OrderSink(TwoPhaseCommitSink):
        def begin_transaction(self):
            return TransactionalLog("orders").begin()

        def write(self, transaction, batch):
            TransactionalLog("orders").append(transaction, batch)

It stands for a database or a broker on machines that do not fail: it outlives every simulated process, and power
failures too. A transaction is open, then prepared, then committed; or it is aborted. Only what is committed can be
read. An object of this class is no more than a name, so it may be kept, pickled, or made again for each call.

Each call is an operation of the process that makes it, which may be killed there: before anything was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from weakref import WeakKeyDictionary

from .disk import SimulatedDisk
from .file_system import current_disk
from .process import Process


class TransactionError(RuntimeError):
    """What was asked of a transaction cannot be done with it as it is."""


class _Stage(Enum):
    OPEN = "open"
    PREPARED = "prepared"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True)
class _Transaction:
    stage: _Stage = _Stage.OPEN
    records: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class _Contents:
    transactions: dict[str, _Transaction] = field(default_factory=dict)
    committed: list[Any] = field(default_factory=list)


_worlds: WeakKeyDictionary[SimulatedDisk, dict[str, _Contents]] = WeakKeyDictionary()
"""The logs of each world, which is known by its disk."""


@dataclass(frozen=True, slots=True)
class TransactionalLog:
    """The log of this name in the world that is current. Raises RuntimeError outside of all worlds."""

    name: str = "log"

    def begin(self) -> str:
        """Start a transaction; returns its id."""
        contents = self._operate("begins", "a transaction")
        transaction_id = f"{self.name}-{len(contents.transactions) + 1}"
        contents.transactions[transaction_id] = _Transaction()
        return transaction_id

    def append(self, transaction_id: str, records: Iterable[Any]) -> None:
        """Add to an open transaction."""
        contents = self._operate("appends to", transaction_id)
        _in(contents, transaction_id, "append to", _Stage.OPEN).records.extend(records)

    def prepare(self, transaction_id: str) -> None:
        """From now on it can be committed by anybody who knows its id, and takes nothing more. May be repeated."""
        contents = self._operate("prepares", transaction_id)
        _in(contents, transaction_id, "prepare", _Stage.OPEN, _Stage.PREPARED).stage = _Stage.PREPARED

    def commit(self, transaction_id: str) -> None:
        """Make a prepared transaction visible. To commit it again changes nothing."""
        contents = self._operate("commits", transaction_id)
        transaction = _in(contents, transaction_id, "commit", _Stage.PREPARED, _Stage.COMMITTED)
        if transaction.stage is _Stage.PREPARED:
            transaction.stage = _Stage.COMMITTED
            contents.committed.extend(transaction.records)

    def abort(self, transaction_id: str) -> None:
        """Forget a transaction that is not committed. May be repeated."""
        contents = self._operate("aborts", transaction_id)
        _in(contents, transaction_id, "abort", _Stage.OPEN, _Stage.PREPARED, _Stage.ABORTED).stage = _Stage.ABORTED

    def write(self, records: Iterable[Any]) -> None:
        """Without a transaction: visible at once, and permanent."""
        self._operate("writes to", "the log").committed.extend(records)

    def committed(self) -> list[Any]:
        """All that is visible, in the order in which it came to be so."""
        return list(_logs().setdefault(self.name, _Contents()).committed)

    def _operate(self, does: str, what: str) -> _Contents:
        """What somebody in the world does to the log; it may die of it instead."""
        process = current_disk().owner()
        if isinstance(process, Process):
            process.operate()
            process.world.trace.add(process.name, "transaction", does, what)
        return _logs().setdefault(self.name, _Contents())


def logs_of_this_world() -> Sequence[TransactionalLog]:
    """All that anybody has used, by name."""
    return [TransactionalLog(name) for name in sorted(_logs())]


def sizes_of_logs() -> dict[str, int]:
    """How many records of each are visible."""
    return {log.name: len(log.committed()) for log in logs_of_this_world()}


def _logs() -> dict[str, _Contents]:
    return _worlds.setdefault(current_disk(), {})


def _in(contents: _Contents, transaction_id: str, action: str, *wanted: _Stage) -> _Transaction:
    transaction = contents.transactions.get(transaction_id)
    if transaction is None:
        raise TransactionError(f"cannot {action} transaction {transaction_id!r}: there is none")
    if transaction.stage not in wanted:
        stages = " or ".join(stage.value for stage in wanted)
        raise TransactionError(
            f"cannot {action} transaction {transaction_id!r}: it is {transaction.stage.value}, wanted {stages}"
        )
    return transaction
