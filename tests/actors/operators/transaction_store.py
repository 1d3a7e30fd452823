"""An outside system that keeps transactions, and a TwoPhaseCommitSink into it, for tests."""

from __future__ import annotations

from typing import Any

from understudy.actors.operators.two_phase_commit_sink import TwoPhaseCommitSink


class Store:
    """The outside system: transactions by number, which survive the sink."""

    def __init__(self) -> None:
        self.open: dict[int, list[Any]] = {}
        self.committed: dict[int, list[Any]] = {}
        self.fail_commits = False
        self.fail_pre_commits = False

    @property
    def visible(self) -> list[Any]:
        return [record for records in self.committed.values() for record in records]


class StoreSink(TwoPhaseCommitSink[int]):
    def __init__(self, store: Store) -> None:
        self.store = store
        self.calls: list[str] = []

    def begin_transaction(self) -> int:
        transaction = len(self.store.open) + len(self.store.committed) + 100 * self.context.attempt_number
        self.store.open[transaction] = []
        return transaction

    def write(self, transaction: int, batch: list[Any]) -> None:
        self.store.open[transaction].extend(batch)

    def pre_commit(self, transaction: int) -> int | None:
        if self.store.fail_pre_commits:
            raise OSError("disk full")
        return None

    def commit(self, transaction: int) -> None:
        self.calls.append(f"commit {transaction}")
        if self.store.fail_commits:
            raise OSError("the store does not answer")
        if transaction in self.store.open:
            self.store.committed[transaction] = self.store.open.pop(transaction)

    def abort(self, transaction: int) -> None:
        self.calls.append(f"abort {transaction}")
        self.store.open.pop(transaction, None)

    def recover_and_commit(self, transaction: int) -> None:
        self.calls.append(f"recover {transaction}")
        self.commit(transaction)
