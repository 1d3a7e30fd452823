"""LedgerSink: exactly once, whatever fails when. Kills at every point: tests/runtime/simulation and the kit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from understudy import CheckpointCompleted, MarkerMismatch, OutsideUnavailable, StreamEnvironment
from understudy.actors.errors import UserCodeError
from understudy.testing import HarnessSnapshot, OperatorHarness, SimulatedCluster

from .ledger_store import LEDGERS, IntoLedger, Ledger


@pytest.fixture
def ledger(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    LEDGERS["it"] = Ledger()
    yield LEDGERS["it"]
    del LEDGERS["it"]


def harness(**options: Any) -> OperatorHarness:
    return OperatorHarness(IntoLedger("it"), **options)


def taken(running: OperatorHarness, *records: Any) -> HarnessSnapshot:
    """A checkpoint that covers these records, too."""
    running.process(list(records))
    return running.snapshot()


class TestWithoutFailures:
    def test_nothing_is_applied_before_the_checkpoint_is_complete(self, ledger: Ledger) -> None:
        with harness() as running:
            first = taken(running, "a")
            assert ledger.acts == []
            running.complete(first)
            assert ledger.rows == ["a"]

    def test_an_act_per_checkpoint_and_none_for_an_empty_one(self, ledger: Ledger) -> None:
        with harness() as running:
            for record in "ab":
                running.complete(taken(running, record))
            running.complete(running.snapshot())
            running.complete(taken(running, "c"))
        assert [(each.after, each.sequence) for each in ledger.acts] == [(0, 1), (1, 2), (2, 3)]
        assert ledger.reads == 0, "where nothing has failed, the marker is where this attempt has put it"

    def test_checkpoints_that_complete_together_are_one_act(self, ledger: Ledger) -> None:
        with harness() as running:
            taken(running, "a")
            running.complete(taken(running, "b"))
        assert [(each.after, each.sequence) for each in ledger.acts] == [(0, 2)]

    def test_an_aborted_checkpoint_is_covered_by_the_next(self, ledger: Ledger) -> None:
        with harness() as running:
            running.abort(taken(running, "a"))
            running.complete(taken(running, "b"))
        assert ledger.rows == ["a", "b"]

    def test_columns_stay_columns(self, ledger: Ledger) -> None:
        batch = pa.RecordBatch.from_pydict({"n": [1, 2]})
        with harness() as running:
            running.process(batch)
            running.complete(running.snapshot())
        assert ledger.rows == [batch]


class TestRestores:
    def test_what_was_staged_is_applied_by_the_next_attempt(self, ledger: Ledger) -> None:
        running = harness()
        first = taken(running, "a")
        running.crash()
        with running.restored(first) as after:
            assert ledger.rows == ["a"]
            after.complete(taken(after, "b"))
        assert ledger.rows == ["a", "b"]
        assert len(ledger.markers) == 1, "a failover goes on under the same name"

    def test_and_not_again_when_it_was_applied(self, ledger: Ledger) -> None:
        running = harness()
        first = taken(running, "a")
        running.complete(first)
        running.crash()
        with running.restored(first) as after:
            after.complete(taken(after, "b"))
        assert ledger.rows == ["a", "b"]

    def test_an_older_checkpoint_repeats_what_came_after_it_and_loses_nothing(self, ledger: Ledger) -> None:
        """apache/iceberg#10892: with the old key, all of it would be dropped without a word."""
        running = harness()
        first = taken(running, "a")
        running.complete(first)
        running.complete(taken(running, "b"))
        running.complete(taken(running, "c"))
        running.crash()
        with running.restored(first) as after:
            after.complete(taken(after, "b again"))
        assert ledger.rows == ["a", "b", "c", "b again"]
        assert len(ledger.markers) == 2

    def test_a_savepoint_taken_twice_is_two_forks(self, ledger: Ledger) -> None:
        running = harness()
        savepoint = taken(running, "a")
        with harness(restore_from=savepoint) as one, harness(restore_from=savepoint) as other:
            running.complete(savepoint)
            one.complete(taken(one, "one"))
            other.complete(taken(other, "other"))
            running.complete(taken(running, "b"))
        assert ledger.rows == ["a", "one", "other", "b"]
        assert {name.partition("-")[0] for name in ledger.markers} == {next(iter(ledger.markers)).partition("-")[0]}

    def test_a_stateless_start_of_the_same_job_has_keys_of_its_own(self, ledger: Ledger) -> None:
        """apache/iceberg#18098: with the ids of job and checkpoint as key, all of it would be dropped."""
        for record in "ab":
            with harness() as running:
                running.complete(taken(running, record))
        assert ledger.rows == ["a", "b"]

    def test_rescaled_from_four_to_two_to_three(self, ledger: Ledger) -> None:
        four = [harness(subtask_index=index, parallelism=4) for index in range(4)]
        for index, each in enumerate(four):
            taken(each, f"{index} first")
        snapshots = [taken(each, f"{index} second") for index, each in enumerate(four)]
        four[1].complete(snapshots[1])
        for each in four:
            each.crash()
        two = [four[0].restored(snapshots, parallelism=2, subtask_index=index) for index in range(2)]
        again = [taken(each, f"two {index}") for index, each in enumerate(two)]
        for each in two:
            each.crash()
        three = [two[0].restored(again, parallelism=3, subtask_index=index) for index in range(3)]
        for index, each in enumerate(three):
            each.complete(taken(each, f"three {index}"))
        wanted = [f"{index} {which}" for index in range(4) for which in ("first", "second")]
        wanted += [*(f"two {index}" for index in range(2)), *(f"three {index}" for index in range(3))]
        assert sorted(ledger.rows) == sorted(wanted)
        assert len(ledger.markers) == 4 + 2 + 3

    def test_what_could_not_be_applied_goes_through_several_restores(self, ledger: Ledger) -> None:
        running = harness()
        first = taken(running, "a")
        ledger.is_away = True
        second_attempt = running.restored(first)
        second = taken(second_attempt, "b")
        second_attempt.crash()
        ledger.is_away = False
        with second_attempt.restored(second):
            assert ledger.rows == ["a", "b"]


class TestZombies:
    def test_a_zombie_that_wakes_after_its_successor_writes_nothing(self, ledger: Ledger) -> None:
        zombie = harness()
        first = taken(zombie, "a")
        with zombie.restored(first):
            zombie.complete(first)
        assert ledger.rows == ["a"]

    def test_one_whose_successor_has_gone_on_fails(self, ledger: Ledger) -> None:
        zombie = harness()
        first = taken(zombie, "a")
        with zombie.restored(first) as after:
            after.complete(taken(after, "b"))
            with pytest.raises(UserCodeError) as caught:
                zombie.complete(first)
        assert isinstance(caught.value.__cause__, MarkerMismatch)
        assert ledger.rows == ["a", "b"]

    def test_a_successor_that_comes_second_writes_nothing_again(self, ledger: Ledger) -> None:
        zombie = harness()
        first = taken(zombie, "a")
        ledger.is_away = True
        after = zombie.restored(first)
        ledger.is_away = False
        zombie.complete(first)
        after.advance(1_000)
        after.process(["b"])
        after.complete(after.snapshot())
        assert ledger.rows == ["a", "b"]


class TestFailures:
    def test_an_act_whose_answer_was_lost_is_not_done_again(self, ledger: Ledger) -> None:
        with harness() as running:
            ledger.bad_day = ["loses the answer"]
            running.complete(taken(running, "a"))
            running.advance(200)
            running.complete(taken(running, "b"))
        assert ledger.rows == ["a", "b"]
        assert ledger.reads == 1

    def test_one_that_was_refused_is_done_again(self, ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
        with harness() as running:
            ledger.bad_day = ["refuses", "refuses"]
            first = taken(running, "a")
            running.complete(first)
            for _ in range(2):
                running.advance(10_000)
                running.complete(first)
        assert ledger.rows == ["a"]
        assert len(caplog.messages) == 2, "once when it is away, and once when it is back"

    def test_time_alone_brings_the_next_try(self, ledger: Ledger) -> None:
        with harness() as running:
            ledger.bad_day = ["refuses", "refuses"]
            running.complete(taken(running, "a"))
            assert ledger.rows == []
            running.advance(1_000)
            assert ledger.rows == ["a"]

    def test_an_older_checkpoint_that_completes_last_holds_nothing_back(self, ledger: Ledger) -> None:
        """As a savepoint whose files took long does; the job may end next."""
        with harness() as running:
            older, newer = taken(running, "a"), taken(running, "b")
            ledger.bad_day = ["refuses"]
            running.complete(newer)
            running.complete(older)
            running.advance(1_000)
            assert ledger.rows == ["a", "b"]

    def test_it_is_patient_no_longer_than_it_says(self, ledger: Ledger) -> None:
        running = harness()
        first = taken(running, "a")
        ledger.is_away = True
        running.complete(first)
        with pytest.raises(UserCodeError) as caught:
            running.advance(61_000)
        assert isinstance(caught.value.__cause__, OutsideUnavailable)
        assert "the ledger is away" in str(caught.value.__cause__)
        ledger.is_away = False
        with running.restored(first):
            assert ledger.rows == ["a"]

    def test_an_error_that_says_that_it_stays_is_raised_at_once(self, ledger: Ledger) -> None:
        class Refused(Exception):
            may_pass = False

        class Refusing(IntoLedger):
            def apply(self, batches: list[Any], marker: Any) -> None:
                raise Refused("column amount is missing")

        running = OperatorHarness(Refusing("it"))
        with pytest.raises(UserCodeError) as caught:
            running.complete(taken(running, "a"))
        assert type(caught.value.__cause__).__name__ == "Refused"

    def test_a_mistake_in_the_program_is_raised_at_once(self, ledger: Ledger) -> None:
        class Mistaken(IntoLedger):
            def apply(self, batches: list[Any], marker: Any) -> None:
                self.legder.act(batches, marker)  # type: ignore[attr-defined]

        running = OperatorHarness(Mistaken("it"))
        with pytest.raises(UserCodeError) as caught:
            running.complete(taken(running, "a"))
        assert "legder" in str(caught.value.__cause__)

    def test_a_ledger_that_has_lost_what_it_had_is_not_written_to(self, ledger: Ledger) -> None:
        running = harness()
        running.complete(taken(running, "a"))
        running.complete(taken(running, "b"))
        third = taken(running, "c")
        ledger.markers.clear()
        with pytest.raises(UserCodeError) as caught:
            running.restored(third)
        assert isinstance(caught.value.__cause__, MarkerMismatch)
        assert "has lost what was written" in str(caught.value.__cause__)

    def test_while_the_ledger_is_away_no_records_are_taken(self, ledger: Ledger) -> None:
        with harness() as running:
            assert not running.operator._wants_no_input
            ledger.is_away = True
            running.complete(taken(running, "a"))
            assert running.operator._wants_no_input
            assert not running.operator._has_applied_all
            ledger.is_away = False
            running.advance(1_000)
            running.complete(1)
            assert not running.operator._wants_no_input
            assert running.operator._has_applied_all


class Files(IntoLedger):
    """Puts aside what comes as it comes, and stages its name."""

    files: dict[str, list[Any]] = {}  # noqa: RUF012 - they outlive the operator

    def open(self) -> None:
        self.rows: list[Any] = []

    def write(self, batch: Any) -> None:
        self.rows += batch

    def stage(self, batches: list[Any]) -> str | None:
        assert not batches
        name, rows, self.rows = f"file-{len(self.files)}", self.rows, []
        if rows:
            self.files[name] = rows
        return name if rows else None

    def unstage(self, handle: str) -> list[str]:
        return [handle]

    def apply(self, batches: list[str], marker: Any) -> None:
        self.ledger.act(batches, marker)


def test_a_sink_that_writes_files_stages_their_names(ledger: Ledger) -> None:
    with OperatorHarness(Files("it")) as running:
        running.process([1])
        running.process([2])
        first = running.snapshot()
        assert running.operator.staged() == ["file-0"]
        running.complete(first)
        assert running.operator.staged() == []
        running.complete(running.snapshot())
    assert ledger.rows == ["file-0"]


class TestInAJob:
    """In this process, in virtual time."""

    def test_it_does_not_finish_before_all_is_applied(self, ledger: Ledger) -> None:
        """The data has ended, the last checkpoint is complete, and the ledger is away for a while."""
        ledger.bad_day = ["refuses"] * 5 + ["loses the answer"]
        restarts, _ = run(list(range(100)), per_second=None, interval_ms=60_000)
        assert restarts == 0
        assert sorted(ledger.rows) == list(range(100))

    def test_while_the_ledger_is_away_records_wait_and_checkpoints_go_on(self, ledger: Ledger) -> None:
        ledger.bad_day = [None, *["refuses"] * 8]
        restarts, completed = run(list(range(200)), per_second=10, interval_ms=500)
        assert restarts == 0
        assert sorted(ledger.rows) == list(range(200))
        assert completed > len(ledger.acts) + 8


def run(records: list[int], per_second: float | None, interval_ms: int) -> tuple[int, int]:
    """How often the job was restarted, and how many checkpoints were complete."""
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=interval_ms)
    env.from_collection(records, records_per_second=per_second).sink_to(IntoLedger("it"))
    completed = 0

    def count(event: Any) -> None:
        nonlocal completed
        completed += isinstance(event, CheckpointCompleted)

    with SimulatedCluster(1) as cluster:
        job = cluster.submit(env)
        job.on_event(count)
        return job.wait().restarts, completed
