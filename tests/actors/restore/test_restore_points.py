"""RestorePoints: when a restore is the failover from the newest completed checkpoint of the same job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from understudy.actors.restore.restore_points import Origin, RestorePoints
from understudy.messages import CheckpointId, FailureCause, FailureKind, JobId, VertexId
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint, StandaloneCompletedCheckpointStore

from ..graphs import graph, vertex

REGION = frozenset({VertexId("a")})
ROTTEN = FailureCause("CorruptState", "chk-2 is torn", kind=FailureKind.UNREADABLE_STATE)


class Job:
    def __init__(self, origin: Origin | None = None, retained: int = 3) -> None:
        self.store = StandaloneCompletedCheckpointStore(retained)
        self.points = RestorePoints(graph(vertex("a")), self.store, origin)

    def completes(self, *ids: int, is_savepoint: bool = False) -> None:
        for each in ids:
            self.store.add(checkpoint(each, is_savepoint=is_savepoint))
            self.points.completed(CheckpointId(each))

    def restored(self) -> tuple[int, bool]:
        chosen = self.points.choose(REGION)
        assert chosen is not None
        return chosen.checkpoint_id, self.points.is_failover(chosen)

    def rots(self, failure: FailureCause = ROTTEN) -> None:
        self.points.failed_to_restore(REGION, failure)


def checkpoint(checkpoint_id: int, job_id: str = "job", *, is_savepoint: bool = False) -> CompletedCheckpoint:
    return CompletedCheckpoint(JobId(job_id), CheckpointId(checkpoint_id), 0, 0, 0, {}, is_savepoint=is_savepoint)


def test_the_newest_of_the_same_job_is_a_failover() -> None:
    job = Job()
    job.completes(1, 2)
    assert job.restored() == (2, True)
    job.completes(3)
    assert job.restored() == (3, True)


def test_an_older_one_is_not_however_often_it_is_restored() -> None:
    job = Job()
    job.completes(1, 2)
    assert job.restored() == (2, True)
    job.rots()
    assert job.restored() == (1, False)
    assert job.restored() == (1, False)
    job.completes(3)
    assert job.restored() == (3, True)


def test_one_that_the_program_cannot_take_is_not_passed_over() -> None:
    """Its state is whole: an older one would commit results again."""
    job = Job()
    job.completes(1, 2)
    assert job.restored() == (2, True)
    job.rots(FailureCause("ValueError", "deserialize: not a point"))
    assert job.restored() == (2, True)


def test_savepoints_count_too_in_whatever_order_they_complete() -> None:
    job = Job()
    job.completes(1)
    job.completes(3, is_savepoint=True)
    job.completes(2, is_savepoint=True)
    assert job.restored() == (3, True)


@pytest.mark.parametrize("is_savepoint", [False, True])
def test_another_jobs_checkpoint_is_not(is_savepoint: bool) -> None:
    job = Job(Origin(checkpoint(7, "another"), "file:///elsewhere", is_savepoint))
    assert job.restored() == (7, False)
    job.completes(8)
    assert job.restored() == (8, True)


def test_nor_is_one_that_was_complete_before_this_job_manager_began() -> None:
    """It may be that a newer one was, and its pointer is lost."""
    job = Job()
    job.store.add(checkpoint(5))
    assert job.restored() == (5, False)


def test_a_job_never_goes_back_to_its_origin_once_it_has_a_checkpoint_of_its_own() -> None:
    """Sinks have committed what came after; not even where all of its own are unreadable."""
    job = Job(Origin(checkpoint(7, "another"), "file:///elsewhere"))
    job.completes(8)
    assert job.restored() == (8, True)
    assert not job.points.are_used_up
    job.rots()
    assert job.points.origin is None
    assert job.points.choose(REGION) is None
    assert job.points.are_used_up


def test_what_user_code_raised_says_nothing_of_the_checkpoint() -> None:
    """Though it be the very error of a file that cannot be read; what is no user's code may be put around one."""
    job = Job()
    job.completes(1, 2)
    assert job.restored() == (2, True)
    job.rots(FailureCause("UserCodeError", "operator 'a' raised", kind=FailureKind.USER_CODE, cause=ROTTEN))
    assert job.restored() == (2, True)
    job.rots(FailureCause("RestoreFailed", "operator 'a' cannot be restored", cause=ROTTEN))
    assert job.restored() == (1, False)


def test_logs_of_inlets_of_earlier_runs_are_read_until_a_checkpoint_says_how_far() -> None:
    """After that, what it remembers of their senders may be less than all that they have sent."""
    earlier = replace(graph(vertex("a")), earlier_inlets=("job-0/inlets/orders/0",))
    origin = checkpoint(7, "another")
    points = RestorePoints(earlier, StandaloneCompletedCheckpointStore(1), Origin(origin, "root"))
    for restored, read in ((None, True), (origin, True), (checkpoint(8), False)):
        assert bool(points.restore_of(restored, REGION).earlier_inlets) is read
