"""Recovery: what an attempt does with the transactions of attempts before it. Flink: KafkaCommitter, its aborters.

A prepared transaction of the restored checkpoint is committed: if its mark is not to be seen, by an EndTxn with its
producer's number and epoch. Its id was not used again before it was committed, so this transaction is the one that the
id has open. If the broker refuses, the marks are read once more, when nothing is being ended; without the mark it is
lost.

All other ids of the pools that this subtask takes over are fenced: what they have open is aborted, and a zombie cannot
write. A pool is `<prefix>-<subtask>-0`, `-1`, ...; its end is the first id that the broker does not know. Subtask i of
p takes over the pools of i, i + p, i + 2p, ...
"""

from __future__ import annotations

import logging

from .client_settings import ClientSettings
from .coordinator import ErrorCode, TransactionCoordinator
from .errors import TransactionLost
from .marks import Book, is_marked
from .transactional_producer import PreparedTransaction

log = logging.getLogger(__name__)


class Recovery:
    """`topic`: where marks are kept. Blocks, each call for as long as `timeout_ms` at most."""

    def __init__(self, settings: ClientSettings, topic: str, timeout_ms: int) -> None:
        self._settings, self._topic, self._timeout_ms = settings, topic, timeout_ms
        self._coordinator = TransactionCoordinator(settings, timeout_ms)
        self._books: dict[str, Book] = {}
        self._done: set[tuple[str, str, int]] = set()

    def reach(self, pool: str) -> None:
        """Raises KafkaRefused, KafkaUnavailable, before anything else is tried that may say less."""
        self._coordinator.describe(f"{pool}-0")

    def book(self, name: str) -> Book:
        """Of a subtask."""
        if name not in self._books:
            self._books[name] = Book(self._settings, name, self._topic, self._timeout_ms)
        return self._books[name]

    def commit(self, transaction: PreparedTransaction) -> None:
        """Whichever attempt has prepared it. Raises TransactionLost, KafkaUnavailable, KafkaRefused."""
        if not transaction["id"]:
            return
        which = (transaction["book"], transaction["branch"], transaction["sequence"])
        if which in self._done:
            return
        if not is_marked(transaction, self.book(transaction["book"]).read(settled=False)):
            self._end(transaction)
        self._done.add(which)

    def abort_pools(self, prefix: str, first: int, step: int, at_least: int) -> None:
        """Fence the pools of the subtasks `first`, `first + step`, ...: all below `at_least`, and all that are there
        behind them. Whatever they have to commit is committed before.
        """
        subtask = first
        while self._abort_pool(f"{prefix}-{subtask}") or subtask < at_least:
            subtask += step

    def close(self) -> None:
        self._coordinator.close()

    def _abort_pool(self, pool: str) -> bool:
        """Whether the broker knows any id of it."""
        slot = 0
        while (state := self._coordinator.describe(f"{pool}-{slot}")) is not None:
            self._coordinator.fence(f"{pool}-{slot}")
            if state.state == "Ongoing":
                log.info("aborted the transaction that an earlier attempt had open: %s-%d", pool, slot)
            slot += 1
        return slot > 0

    def _end(self, transaction: PreparedTransaction) -> None:
        which = (transaction["id"], transaction["producer_id"], transaction["epoch"])
        answer = self._coordinator.end(*which, commit=True)
        if answer == ErrorCode.NONE:
            return
        if is_marked(transaction, self.book(transaction["book"]).read(settled=True)):
            return
        try:
            reason = ErrorCode(answer).name
        except ValueError:
            reason = f"error {answer}"
        raise TransactionLost(
            f"transaction {which[0]} (producer {which[1]}, epoch {which[2]}) was prepared for a completed checkpoint, "
            f"and the broker has not committed it and does not commit it now ({reason}): it was open for longer than "
            "its timeout, or another job used the same transactional_id_prefix. Its records are in no output. Go on "
            "from an older savepoint, which writes later output again, or set ignore_failures_after_timeout to go on "
            "without these records; then give transaction_timeout_ms more time"
        )
