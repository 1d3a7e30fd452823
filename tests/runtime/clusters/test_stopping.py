"""Stop with savepoint on real processes: with and without drain, through kills, and what is told of checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from understudy import JobHandle, JobStatus, LocalCluster
from understudy.actors.operators.collector import Collector
from understudy.messages import CheckpointCompleted
from understudy.runtime.clusters.job_errors import JobCanceled, SavepointFailed

from .jobs import KEYS, Counting, Witness, assert_no_gap, counted, counting, counts_of, environment, kill

StartCluster = Callable[..., LocalCluster]
WAIT_S = 120


class CountingToTheEnd(Counting):
    """Says so when its input has ended."""

    def on_end(self, out: Collector) -> None:
        out.collect({"key": -1, "number": 0, "index": 0})


def endless(cluster: LocalCluster, **settings: Any) -> tuple[JobHandle, Witness]:
    env = environment(**settings)
    counting(env, None, 2000, CountingToTheEnd).collect(name="all")
    job = cluster.submit(env)
    return job, Witness(job)


def numbered(job: JobHandle) -> tuple[Counter[tuple[int, int, int]], int]:
    """What a finished job put out, and how many of its subtasks said that their input had ended."""
    found = counts_of(job.results("all"))
    said = found.pop((-1, 0, 0), 0)
    return found, said


def test_a_job_that_is_stopped_with_a_savepoint_finishes_without_ending_its_data(shared_cluster: LocalCluster) -> None:
    job, witness = endless(shared_cluster)
    witness.checkpoints(3)
    assert job.stop_with_savepoint().result(timeout=WAIT_S)
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    found, said = numbered(job)
    assert_no_gap(found)
    assert said == 0
    assert [each.final for each in witness.of(CheckpointCompleted)].count(True) == 1
    assert witness.statuses() == [JobStatus.RUNNING, JobStatus.FINISHED]


def test_a_job_that_is_drained_into_a_savepoint_ends_its_data(shared_cluster: LocalCluster) -> None:
    job, witness = endless(shared_cluster)
    witness.checkpoints(3)
    assert job.stop_with_savepoint(drain=True).result(timeout=WAIT_S)
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    found, said = numbered(job)
    assert_no_gap(found)
    assert said == 2


def test_what_a_stopped_job_has_committed_reaches_exactly_to_its_savepoint(shared_cluster: LocalCluster) -> None:
    """A job that goes on from the savepoint puts out the rest, and nothing of it again."""
    job, witness = endless(shared_cluster)
    witness.checkpoints(3)
    path = job.stop_with_savepoint().result(timeout=WAIT_S)
    job.wait(timeout=WAIT_S)
    before, _ = numbered(job)
    count = (max(index for _, _, index in before) // KEYS + 100) * KEYS
    env = environment()
    counting(env, count, None, CountingToTheEnd).collect(name="all")
    after_job = shared_cluster.submit(env, from_savepoint=path)
    assert after_job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    after, said = numbered(after_job)
    assert before + after == counted(count)
    assert said == 2


@pytest.mark.chaos
@pytest.mark.parametrize("drain", [False, True], ids=["stopped", "drained"])
def test_a_job_that_is_killed_while_it_stops_finishes_or_goes_on(start_cluster: StartCluster, drain: bool) -> None:
    """Whenever the kill comes: a promise that is kept ends the job, and after one that broke the job goes on."""
    job, witness = endless(start_cluster())
    witness.checkpoints(3)
    pid = witness.pids(2)[0]
    promise = job.stop_with_savepoint(drain=drain)
    kill(pid)
    try:
        assert promise.result(timeout=WAIT_S)
    except SavepointFailed:
        assert not drain, "the promise of a drain stays open through restarts"
        witness.checkpoints(2)
        job.stop()
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    found, said = numbered(job)
    assert_no_gap(found)
    assert said in ((0, 2) if not drain else (2,))


def test_what_checkpoints_cost_is_told_by_subtask(shared_cluster: LocalCluster) -> None:
    job, witness = endless(shared_cluster)
    witness.checkpoints(3)
    history = job.checkpoint_history()
    assert history.triggered >= history.completed >= 3
    assert history.restored_checkpoint_id == 0
    completed = [each for each in history.checkpoints if each.status == "completed"]
    assert completed == sorted(completed, key=lambda each: each.checkpoint_id, reverse=True)
    for each in completed:
        assert (each.kind, each.failure, bool(each.path)) == ("checkpoint", "", True)
        assert len({(one.vertex_id, one.subtask_index) for one in each.subtasks}) == each.subtasks_total
        assert each.state_size_bytes == sum(one.state_size_bytes for one in each.subtasks)
        assert all(one.acknowledged_ms <= each.duration_ms for one in each.subtasks)
    told = {message.checkpoint_id: message.sync_ms for message in witness.of(CheckpointCompleted)}
    for each in completed:
        if each.checkpoint_id in told:
            assert told[each.checkpoint_id] == max(one.metrics.sync_ms for one in each.subtasks)
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)


def test_a_second_savepoint_beside_a_stop_is_told_why_not(shared_cluster: LocalCluster) -> None:
    """The stop is over quickly: what comes beside it or after it is refused all the same, each with its reason."""
    job, witness = endless(shared_cluster)
    witness.checkpoints(2)
    stop, other = job.stop_with_savepoint(), job.stop_with_savepoint()
    assert stop.result(timeout=WAIT_S)
    with pytest.raises(SavepointFailed, match=r"stop_with_savepoint_under_way|job_is_ending|the job is finished"):
        other.result(timeout=WAIT_S)
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
