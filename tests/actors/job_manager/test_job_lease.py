"""JobLease: when a claim is renewed and given up, and what may be deleted meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy.actors.job_manager.job_lease import RENEWALS, JobLease
from understudy.actors.job_manager.storage_answers import ForJob, LeaseTold
from understudy.messages import CheckpointId, JobId, JobStatus
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.job_runs import Claimant, JobRun, JobRuns, RunOutcome, RunOwner

JOB = JobId("job-1")
LEASE_MS = 6_000


class World:
    """A context of an actor, whose blocking work is done when the test says so."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self.clock = self
        self.time_ms = 0.0
        self.suspended_ms = 0
        self.work: list[Callable[[], Any]] = []
        owner = RunOwner("host", 1, "app.py", "machine", "1")
        self.runs = JobRuns(storage, "orders", Claimant(owner, lambda _: True, self.wall_ms, LEASE_MS))
        self.lease = JobLease(self, JOB, self.runs.claim(JOB))  # type: ignore[arg-type]

    def now_ms(self) -> float:
        return self.time_ms

    def wall_ms(self) -> int:
        return int(self.time_ms) + self.suspended_ms

    def run_blocking(self, function: Callable[[], Any]) -> Callable[[], Any]:
        return function

    def pipe_to_self(self, work: Callable[[], Any], success: Any, failure: Any) -> None:
        def run() -> ForJob:
            try:
                return success(work())  # type: ignore[no-any-return]
            except Exception as error:  # noqa: BLE001
                return failure(error)  # type: ignore[no-any-return]

        self.work.append(run)

    def pass_ms(self, duration_ms: float) -> None:
        self.time_ms += duration_ms
        self.lease.beat()

    def write(self) -> None:
        """Do what is asked for, and hand back what came of it."""
        (work,), self.work = self.work, []
        event = work().event
        assert isinstance(event, LeaseTold)
        self.lease.told(event.error)

    def stored(self) -> JobRun:
        return self.runs._run(1)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(CheckpointStorage(str(tmp_path)))


def test_it_is_renewed_several_times_before_it_would_end(world: World) -> None:
    world.pass_ms(LEASE_MS / RENEWALS - 1)
    assert world.work == []
    world.pass_ms(1)
    world.pass_ms(1)
    world.write()
    assert world.stored().renewed_ms == world.time_ms
    assert world.work == []


def test_after_a_suspension_of_the_machine_it_is_sure_of_nothing_before_it_is_renewed(world: World) -> None:
    """The monotonic clock of Linux stands still meanwhile, and another process may have the name."""
    assert world.lease.is_sure
    world.suspended_ms = LEASE_MS
    assert not world.lease.is_sure
    world.pass_ms(LEASE_MS / RENEWALS)
    world.write()
    assert world.lease.is_sure


def test_the_first_checkpoint_is_written_at_once_the_others_with_the_renewals(world: World) -> None:
    world.lease.completed(CheckpointId(4))
    world.write()
    assert world.stored().newest_id == 4
    world.lease.completed(CheckpointId(5))
    assert world.work == []
    world.pass_ms(LEASE_MS)
    world.write()
    assert world.stored().newest_id == 5


@pytest.mark.parametrize(
    ("status", "stopped", "outcome"),
    [
        (JobStatus.FINISHED, False, RunOutcome.FINISHED),
        (JobStatus.FINISHED, True, RunOutcome.STOPPED),
        (JobStatus.CANCELED, False, RunOutcome.CANCELED),
        (JobStatus.FAILED, False, RunOutcome.FAILED),
    ],
)
def test_nothing_is_deleted_between_a_jobs_end_and_the_word_of_it(
    world: World, status: JobStatus, stopped: bool, outcome: RunOutcome
) -> None:
    deleted: list[str] = []
    world.lease.delete(lambda: deleted.append("while it runs"), has_ended=False)
    if stopped:
        world.lease.stopped_with_savepoint()
    world.lease.delete(lambda: deleted.append("at its end"), has_ended=True)
    world.lease.end(status)
    assert deleted == ["while it runs"]
    world.write()
    assert deleted == ["while it runs", "at its end"]
    assert world.stored().outcome is outcome
    world.lease.delete(lambda: deleted.append("later"), has_ended=True)
    assert deleted[-1] == "later"
    world.pass_ms(10 * LEASE_MS)
    assert world.work == []


def test_an_end_waits_for_the_renewal_under_way_and_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.pass_ms(LEASE_MS)
    world.lease.end(JobStatus.FINISHED)
    assert len(world.work) == 1
    world.write()
    assert world.stored().outcome is RunOutcome.NONE

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStorage, "write_sealed", full)
        for _ in range(3):
            world.write()
            world.pass_ms(1)
    assert caplog.text.count("the disk is full") == 1
    world.write()
    assert world.stored().outcome is RunOutcome.FINISHED


def test_one_whose_claim_was_written_long_ago_is_renewed_at_once(world: World) -> None:
    """To find what the job goes on from may have taken most of the time."""
    world.time_ms += LEASE_MS - 1
    lease = JobLease(world, JOB, world.lease._claim)  # type: ignore[arg-type]
    assert lease.is_sure
    lease.beat()
    assert len(world.work) == 1


def test_trouble_that_comes_again_is_said_again(world: World, caplog: pytest.LogCaptureFixture) -> None:
    away = OSError("storage is away")
    for error in (away, away, None, away):
        world.lease.told(error)
    assert caplog.text.count("storage is away") == 2


def test_it_is_sure_as_long_as_the_last_word_that_was_written_holds(world: World) -> None:
    world.pass_ms(LEASE_MS - 1)
    assert world.lease.is_sure
    world.pass_ms(1)
    assert not world.lease.is_sure
    world.pass_ms(5)
    world.write()
    assert world.lease.is_sure, "the write was asked for at 5,999 ms, and has succeeded"
    world.pass_ms(LEASE_MS - 6)
    assert not world.lease.is_sure


def test_who_has_lost_the_name_writes_and_deletes_nothing(world: World) -> None:
    deleted: list[str] = []
    world.lease.delete(lambda: deleted.append("waiting"), has_ended=True)
    world.lease.lose()
    world.lease.delete(lambda: deleted.append("now"), has_ended=False)
    world.lease.end(JobStatus.FAILED)
    world.pass_ms(LEASE_MS)
    assert (deleted, world.work, world.lease.is_lost) == ([], [], True)
