"""TwoPhaseCommitSink: what must hold when a hook fails. Flink's scenarios are in tests/conformance."""

from __future__ import annotations

import pytest

from ...runtime.connectors.harness import ManualClock, Running, rescaled
from .transaction_store import Store, StoreSink


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


def test_what_several_subtasks_had_prepared_is_committed_in_the_order_of_the_checkpoints() -> None:
    """A sink that appends shows them in the order in which they are committed."""
    store, clock = Store(), ManualClock()
    before = [Running(StoreSink(store), subtask=index, parallelism=2, clock=clock) for index in range(2)]
    snapshots = []
    for checkpoint_id in (1, 2):
        for index, each in enumerate(before):
            each.take(f"{index} at {checkpoint_id}")
        snapshots = [each.checkpoint(checkpoint_id) for each in before]
        clock.ms += 10
    (share,) = rescaled(snapshots, 1)
    Running(StoreSink(store), share, attempt=1, clock=clock)
    assert store.visible == ["0 at 1", "1 at 1", "0 at 2", "1 at 2"]


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


def test_a_snapshot_holds_what_is_prepared_and_the_transaction_that_was_begun_after_it() -> None:
    """Not the prepared one twice: a restore would commit it, and abort it then."""
    store = Store()
    running = Running(StoreSink(store))
    running.take("a")
    snapshot = running.checkpoint(1)
    running.take("b")
    again = Running(StoreSink(store), snapshot, attempt=1)
    assert store.visible == ["a"]
    assert again.operator.calls == ["recover 0", "commit 0", "abort 1"]


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


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "has been open for" in each.getMessage()]


def sink_that_warns(store: Store, warn_after: float | None = 0.5) -> StoreSink:
    sink = StoreSink(store)
    sink.transaction_timeout_ms, sink.warn_after = 10_000, warn_after
    return sink


class TestTransactionsThatGrowOld:
    """Flink: TwoPhaseCommitSinkFunctionTest.testLogTimeoutAlmostReachedWarningDuringCommit and ...DuringRecovery."""

    def test_a_commit_warns(self, caplog: pytest.LogCaptureFixture) -> None:
        clock = ManualClock()
        running = Running(sink_that_warns(Store()), clock=clock)
        running.take("a")
        running.checkpoint(1)
        clock.ms = 5_001
        running.complete(1)
        (text,) = warnings_of(caplog)
        assert "transaction 0 has been open for 5.0 s" in text
        assert "after 10.0 s" in text

    def test_the_age_counts_from_its_own_begin(self, caplog: pytest.LogCaptureFixture) -> None:
        clock = ManualClock()
        running = Running(sink_that_warns(Store()), clock=clock)
        running.take("a")
        clock.ms = 4_000
        running.checkpoint(1)
        clock.ms = 5_001
        running.complete(1)
        assert len(warnings_of(caplog)) == 1

    def test_a_restore_warns(self, caplog: pytest.LogCaptureFixture) -> None:
        store, clock = Store(), ManualClock()
        running = Running(sink_that_warns(store), clock=clock)
        running.take("a")
        snapshot = running.checkpoint(1)
        clock.ms = 5_001
        Running(sink_that_warns(store), snapshot, clock=clock, attempt=1)
        assert len(warnings_of(caplog)) == 1

    @pytest.mark.parametrize(("age_ms", "warn_after"), [(5_000, 0.5), (1e9, None)])
    def test_a_young_one_or_none_wanted_is_quiet(
        self, age_ms: float, warn_after: float | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock = ManualClock()
        running = Running(sink_that_warns(Store(), warn_after), clock=clock)
        running.take("a")
        running.checkpoint(1)
        clock.ms = age_ms
        running.complete(1)
        assert warnings_of(caplog) == []
