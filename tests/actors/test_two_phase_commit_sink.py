"""TwoPhaseCommitSink: Flink's scenarios (TwoPhaseCommitSinkFunctionTest), and what must hold when a hook fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from understudy.actors.operators.two_phase_commit_sink import TwoPhaseCommitSink

from ..runtime.connectors.harness import ManualClock, Running, Snapshot

VECTORS = Path(__file__).parent.parent / "vectors" / "two_phase_commit.json"
SCENARIOS = json.loads(VECTORS.read_text())["scenarios"]


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


class Scenario:
    """Plays the steps of one vector."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.store, self.clock = Store(), ManualClock()
        self.snapshots: dict[str, Snapshot] = {}
        self.attempt = 0
        self.running: Running[StoreSink] | None = self.start(None)

    def start(self, snapshot: Snapshot | None) -> Running[StoreSink]:
        sink = StoreSink(self.store)
        sink.transaction_timeout_ms = self.scenario.get("timeout_ms")
        sink.ignore_failures_after_timeout = self.scenario.get("ignore_failures_after_timeout", False)
        return Running(sink, snapshot, clock=self.clock, attempt=self.attempt)

    def play(self) -> None:
        for step in self.scenario["steps"]:
            match step:
                case {"at_ms": at_ms}:
                    self.clock.ms = at_ms
                case {"write": record}:
                    self.sink().take(record)
                case {"snapshot": checkpoint_id}:
                    self.snapshot(checkpoint_id, step)
                case {"notify_complete": checkpoint_id}:
                    self.sink().complete(checkpoint_id)
                case {"restart_from": name}:
                    self.restart(self.snapshots[name], step.get("expect", "ok"))
                case _:
                    pytest.fail(f"unknown step {step}")

    def sink(self) -> Running[StoreSink]:
        assert self.running is not None
        return self.running

    def snapshot(self, checkpoint_id: int, step: dict[str, Any]) -> None:
        self.store.fail_pre_commits = step.get("fails", False)
        if self.store.fail_pre_commits:
            with pytest.raises(OSError, match="disk full"):
                self.sink().checkpoint(checkpoint_id)
        else:
            self.snapshots[step.get("as", "")] = self.sink().checkpoint(checkpoint_id)
        self.store.fail_pre_commits = False

    def restart(self, snapshot: Snapshot, expect: str) -> None:
        if self.running is not None:
            self.running.operator.close()
            self.running = None
        self.attempt += 1
        self.store.fail_commits = self.scenario.get("commit_on_recovery_fails", False)
        if expect == "error":
            with pytest.raises(OSError, match="does not answer"):
                self.start(snapshot)
        else:
            self.running = self.start(snapshot)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_flinks_scenario(scenario: dict[str, Any]) -> None:
    played = Scenario(scenario)
    played.play()
    expect = scenario["expect"]
    assert played.store.visible == expect["visible"]
    if "open_transactions" in expect:
        assert len(played.store.open) == expect["open_transactions"]
    if "open_transactions_after_close" in expect:
        played.sink().operator.close()
        assert len(played.store.open) == expect["open_transactions_after_close"]


def test_a_failed_commit_raises_and_is_done_on_restore() -> None:
    store = Store()
    running = Running(StoreSink(store))
    running.take("a")
    first = running.checkpoint(1)
    store.fail_commits = True
    with pytest.raises(OSError, match="does not answer"):
        running.complete(1)
    running.operator.close()
    assert store.visible == []
    store.fail_commits = False
    Running(StoreSink(store), first, attempt=1)
    assert store.visible == ["a"]


def test_commits_come_in_order_and_stop_at_the_one_that_fails() -> None:
    store = Store()
    running = Running(StoreSink(store))
    for checkpoint_id in (1, 2, 3):
        running.take(checkpoint_id)
        running.checkpoint(checkpoint_id)
    store.fail_commits = True
    with pytest.raises(OSError, match="does not answer"):
        running.complete(3)
    assert running.operator.calls == ["commit 0"]
    store.fail_commits = False
    running.complete(2)
    assert store.visible == [1, 2]


def test_a_later_checkpoint_covers_an_aborted_one() -> None:
    store = Store()
    running = Running(StoreSink(store))
    running.take("a")
    running.checkpoint(1)
    running.operator.on_checkpoint_aborted(1)  # type: ignore[arg-type]
    running.take("b")
    running.checkpoint(2)
    running.complete(2)
    assert store.visible == ["a", "b"]


def test_closing_aborts_the_open_transaction_and_leaves_the_pending_ones() -> None:
    store = Store()
    running = Running(StoreSink(store))
    running.take("a")
    snapshot = running.checkpoint(1)
    running.take("b")
    running.operator.close()
    assert store.open == {0: ["a"]}
    Running(StoreSink(store), snapshot, attempt=1)
    assert store.visible == ["a"]


def test_an_operator_that_was_never_opened_can_be_closed() -> None:
    StoreSink(Store()).close()


def test_a_replaced_handle_is_the_one_that_is_committed() -> None:
    class Renaming(StoreSink):
        def pre_commit(self, transaction: int) -> int | None:
            self.store.open[transaction + 1000] = self.store.open.pop(transaction)
            return transaction + 1000

    store = Store()
    running = Running(Renaming(store))
    running.take("a")
    running.checkpoint(1)
    running.complete(1)
    assert store.committed == {1000: ["a"]}


def test_without_the_permission_an_old_transaction_is_never_given_up() -> None:
    store, clock = Store(), ManualClock()
    sink = StoreSink(store)
    sink.transaction_timeout_ms = 10
    running = Running(sink, clock=clock)
    running.take("a")
    snapshot = running.checkpoint(1)
    clock.ms, store.fail_commits = 1e9, True
    again = StoreSink(store)
    again.transaction_timeout_ms = 10
    with pytest.raises(OSError, match="does not answer"):
        Running(again, snapshot, clock=clock, attempt=1)
