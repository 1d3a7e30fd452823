"""Savepoints as a client, a job and the disk see them, whatever happens meanwhile.

All on the simulated cluster, so that "while", "before" and "during" are moments of virtual time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from understudy import CannotRestore
from understudy.actors.job_manager.savepoint_coordinator import STOPPED
from understudy.messages import (
    CheckpointAborted,
    CheckpointCompleted,
    JobId,
    JobStatus,
    JobStatusChanged,
    ListJobs,
    TriggerSavepoint,
    TriggerSavepointFailure,
)
from understudy.runtime.clusters.job_errors import JobCanceled, SavepointFailed
from understudy.runtime.clusters.job_future import JobFuture
from understudy.runtime.clusters.job_handle import JobHandle
from understudy.runtime.simulation.world.cluster import SimulatedCluster
from understudy.runtime.simulation.world.faults import Fault, KillProcess
from understudy.state import CheckpointStorage

from ..world.test_cluster import COUNTED, counting

CONFIG = {"savepoints.state.backend.fs.dir": "sim://storage/savepoints"}
POINTERS = "/storage/savepoints/"
CHECKPOINTS = "/storage/checkpoints/"


@contextmanager
def cluster_with(*faults: Fault, seed: int = 1, **settings: Any) -> Iterator[SimulatedCluster]:
    with SimulatedCluster(1, seed=seed, faults=faults, config=CONFIG, **settings) as cluster:
        yield cluster


def files(cluster: SimulatedCluster, below: str) -> list[str]:
    return sorted(path.removeprefix(below) for path, _ in cluster.disk.files() if path.startswith(below))


def checkpoints_of(cluster: SimulatedCluster, job: JobHandle) -> list[str]:
    return files(cluster, f"{CHECKPOINTS}{job.job_id}/")


def events_of(job: JobHandle) -> list[Any]:
    events: list[Any] = []
    job.on_event(events.append)
    return events


def completed(events: list[Any]) -> list[int]:
    return [event.checkpoint_id for event in events if isinstance(event, CheckpointCompleted)]


def statuses(events: list[Any]) -> list[JobStatus]:
    return [event.status for event in events if isinstance(event, JobStatusChanged)]


def failure_of(answer: JobFuture[str]) -> str:
    with pytest.raises(SavepointFailed) as error:
        answer.result(timeout=60)
    return str(error.value)


def test_a_savepoint_while_a_checkpoint_is_pending_has_an_id_of_its_own() -> None:
    with cluster_with() as cluster:
        job = cluster.submit(counting())
        events = events_of(job)
        cluster.run_until(lambda: bool(completed(events)))
        cluster.run_for(499)  # the next one begins now
        path = job.trigger_savepoint().result(timeout=10)
        job.wait()
        assert sorted(job.results("out")) == COUNTED
        ids = completed(events)
        assert len(ids) == len(set(ids))
        assert len(files(cluster, POINTERS)) == 1
        assert path.endswith(files(cluster, POINTERS)[0])


def test_two_at_once_are_two_savepoints_of_two_checkpoints() -> None:
    with cluster_with() as cluster:
        job = cluster.submit(counting(checkpoint_interval_ms=None, records=100))
        events = events_of(job)
        cluster.run_for(1_500)
        answers = [job.trigger_savepoint("a"), job.trigger_savepoint("b")]
        paths = [answer.result(timeout=10) for answer in answers]
        assert len(set(paths)) == 2
        cluster.run_for(100)
        assert sorted(completed(events)) == [1, 2]
        for path in paths:
            cluster.dispose_savepoint(path).result(timeout=10)
        assert {path.partition("/")[0] for path in checkpoints_of(cluster, job)} == {"chk-2"}  # the newest cut


def test_a_savepoint_of_a_job_that_fails_and_restarts_meanwhile_fails_and_can_be_had_later() -> None:
    with cluster_with(KillProcess(at_ms=2_000, who=0)) as cluster:
        job = cluster.submit(counting(records=100))
        events = events_of(job)
        cluster.run_for(1_990)
        outcomes: list[str] = []
        answer = job.trigger_savepoint()
        cluster.run_until(
            lambda: any(isinstance(e, JobStatusChanged) and e.status is JobStatus.RESTARTING for e in events)
        )
        for asked in (answer, job.trigger_savepoint()):
            try:
                outcomes.append(asked.result(timeout=30))
            except SavepointFailed as error:
                outcomes.append(str(error))
        assert "failed" in outcomes[1]
        cluster.run_for(5_000)
        assert job.trigger_savepoint().result(timeout=10) not in outcomes
        assert len(files(cluster, POINTERS)) == 1 + (not outcomes[0].startswith("the savepoint"))
        job.wait()
        assert len(job.results("out")) == 100


def test_the_clients_departure_before_the_answer_harms_nobody() -> None:
    with cluster_with() as cluster:
        job = cluster.submit(counting(records=100))
        cluster.run_for(1_000)
        with pytest.raises(Exception, match="no answer within"):
            cluster._job_manager.ask(TriggerSavepoint(job.job_id), timeout_ms=1).result(timeout=10)  # type: ignore[union-attr]
        cluster.run_for(2_000)
        assert len(files(cluster, POINTERS)) == 1
        assert job.trigger_savepoint().result(timeout=10)
        job.wait()


def test_the_job_managers_stop_breaks_an_open_promise() -> None:
    with cluster_with() as cluster:
        job = cluster.submit(counting(records=1_000))
        cluster.run_for(1_000)
        answer = job.trigger_savepoint()
        system, job_manager = cluster._running()
        system.stop(job_manager._ref)  # type: ignore[attr-defined]
        assert STOPPED in failure_of(answer)


def test_an_unknown_job_is_a_failure_that_names_those_that_are_known() -> None:
    with cluster_with() as cluster:
        job = cluster.submit(counting())
        answer = cluster._job_manager.ask(TriggerSavepoint(JobId("nobody"))).result(timeout=10)  # type: ignore[union-attr]
        assert answer == TriggerSavepointFailure(JobId("nobody"), f"no job 'nobody' here; known: {job.job_id}")


def test_a_job_that_has_ended_takes_none() -> None:
    with cluster_with() as cluster:
        job = cluster.submit(counting())
        job.wait()
        for ask in (job.trigger_savepoint, job.stop_with_savepoint, job.cancel_with_savepoint):
            assert "the job is finished" in failure_of(ask())


def test_a_job_whose_tasks_do_not_run_yet_takes_none() -> None:
    with cluster_with() as cluster:
        job = cluster.submit(counting())
        assert "tasks_not_ready" in failure_of(job.trigger_savepoint())


def test_cancel_with_savepoint_cancels_once_the_savepoint_is_there_and_nothing_newer_completes() -> None:
    with cluster_with() as cluster:
        job = cluster.submit(counting(records=1_000))
        events = events_of(job)
        cluster.run_for(2_000)
        path = job.cancel_with_savepoint("last").result(timeout=10)
        with pytest.raises(JobCanceled):
            job.wait()
        assert [path.rpartition("/")[2]] == [name.rpartition("/")[2] for name in files(cluster, POINTERS)]
        cluster.run_for(30_000)
        newest = max(completed(events))
        assert {name.partition("/")[0] for name in checkpoints_of(cluster, job)} == {f"chk-{newest}"}


def test_a_job_that_was_to_be_cancelled_goes_on_when_its_savepoint_fails() -> None:
    with cluster_with() as cluster:
        job = cluster.submit(counting())
        assert "tasks_not_ready" in failure_of(job.cancel_with_savepoint())
        assert job.wait().status is JobStatus.FINISHED
        assert sorted(job.results("out")) == COUNTED


@pytest.mark.parametrize("drain", [False, True])
def test_stop_with_savepoint_ends_the_job_with_its_savepoint(drain: bool) -> None:
    with cluster_with() as cluster:
        job = cluster.submit(counting(records=1_000))
        cluster.run_for(2_000)
        path = job.stop_with_savepoint(drain=drain).result(timeout=10)
        assert job.wait().status is JobStatus.FINISHED
        cluster.run_for(30_000)
        assert path.endswith(files(cluster, POINTERS)[0])
        assert len({name.partition("/")[0] for name in checkpoints_of(cluster, job)}) == 1
        cluster.dispose_savepoint(path).result(timeout=10)
        assert checkpoints_of(cluster, job) == []


def test_a_pointer_that_cannot_be_stored_fails_the_savepoint_and_leaves_nothing_of_it() -> None:
    """Where its folder should be there is a file by now. A job that was to stop goes on."""
    with cluster_with() as cluster:
        job = cluster.submit(counting(records=100))
        events = events_of(job)
        cluster.run_for(1_000)
        CheckpointStorage("sim://storage/savepoints").write("blocked", b"a file")
        cause = failure_of(job.stop_with_savepoint("blocked"))
        assert "metadata_failed" in cause
        cluster.run_for(100)
        assert any(isinstance(event, CheckpointAborted) for event in events)
        assert job.wait().status is JobStatus.FINISHED
        assert len(job.results("out")) == 100
        assert files(cluster, POINTERS) == ["blocked"]
        cluster.run_for(30_000)
        assert checkpoints_of(cluster, job) == []


def test_a_savepoint_outlives_its_job_and_goes_whole_when_it_is_disposed_of() -> None:
    with cluster_with() as cluster:
        job = cluster.submit(counting())
        cluster.run_for(1_200)
        path = job.trigger_savepoint("daily").result(timeout=10)
        job.wait()
        cluster.run_for(30_000)
        folders = {name.partition("/")[0] for name in checkpoints_of(cluster, job)}
        assert len(folders) == 1
        cluster.dispose_savepoint(path).result(timeout=10)
        assert checkpoints_of(cluster, job) == []
        assert files(cluster, POINTERS) == []


def test_disposing_of_the_newest_cut_does_not_take_it_from_the_running_job() -> None:
    """The job is killed before its next checkpoint: what its sink committed by the savepoint is not committed again."""
    with cluster_with(KillProcess(at_ms=4_000, who=0)) as cluster:
        job = cluster.submit(counting(records=100, checkpoint_interval_ms=60_000))
        cluster.run_for(3_000)
        path = job.trigger_savepoint().result(timeout=10)
        cluster.run_for(200)
        cluster.dispose_savepoint(path).result(timeout=10)
        assert files(cluster, POINTERS) == []
        assert checkpoints_of(cluster, job) != []
        assert job.wait().restarts == 1
        assert sorted(job.results("out")) == [(key, count) for key in (0, 1) for count in range(1, 51)]
        cluster.run_for(30_000)
        assert checkpoints_of(cluster, job) == []


def test_jobs_are_listed_in_the_order_of_their_submission() -> None:
    with cluster_with() as cluster:
        first, second = cluster.submit(counting(), name="first"), cluster.submit(counting(records=1_000), name="second")
        first.wait()
        listed = cluster._job_manager.ask(ListJobs()).result(timeout=10).jobs  # type: ignore[union-attr]
        assert [(each.job_id, each.name, each.status) for each in listed] == [
            (first.job_id, "first", JobStatus.FINISHED),
            (second.job_id, "second", JobStatus.RUNNING),
        ]
        assert listed[0].started_ms <= listed[0].ended_ms
        assert listed[1].ended_ms == 0
        assert (listed[1].tasks_running, listed[1].tasks_total) == (2, 2)


def test_what_never_became_a_checkpoint_goes_at_the_jobs_end_and_its_savepoint_stays() -> None:
    with cluster_with() as cluster:
        job = cluster.submit(counting())
        cluster.run_for(1_200)
        path = job.trigger_savepoint().result(timeout=10)
        storage = CheckpointStorage("sim://storage/checkpoints")
        for left in ("chk-900/count-0-attempt", "chk-900/.writing-count-0-attempt", "chk-1/of-somebody-killed"):
            storage.write(f"{job.job_id}/{left}", b"never acknowledged")
        job.wait()
        cluster.run_for(30_000)
        assert {name.partition("/")[0] for name in checkpoints_of(cluster, job)} != set()
        assert not any("900" in name or "killed" in name for name in checkpoints_of(cluster, job))
        cluster.dispose_savepoint(path).result(timeout=10)
        assert checkpoints_of(cluster, job) == []


def test_a_job_started_from_a_savepoint_keeps_it_until_its_own_first_checkpoint() -> None:
    """It is disposed of at once, and the new job killed before it has a checkpoint of its own."""
    with cluster_with(KillProcess(at_ms=6_000, who=0)) as cluster:
        first = cluster.submit(counting(records=80), name="first")
        cluster.run_for(3_000)
        path = first.stop_with_savepoint().result(timeout=10)
        first.wait()
        settings: dict[str, Any] = {"records": 80, "checkpoint_interval_ms": 60_000}
        second = cluster.submit(counting(**settings), name="second", from_savepoint=path)
        cluster.dispose_savepoint(path).result(timeout=10)
        assert files(cluster, POINTERS) == []
        assert checkpoints_of(cluster, first) != []
        with pytest.raises(CannotRestore, match="missing savepoint"):
            cluster.submit(counting(**settings), name="third", from_savepoint=path)
        assert second.wait().restarts == 1
        results = sorted(first.results("out") + second.results("out"))
        assert results == [(key, count) for key in (0, 1) for count in range(1, 41)]
        cluster.run_for(30_000)
        assert checkpoints_of(cluster, first) == checkpoints_of(cluster, second) == []


def test_a_savepoint_that_is_disposed_of_while_a_job_is_started_from_it_is_either_there_or_missing() -> None:
    for delay_ms in range(0, 40, 4):
        with cluster_with(seed=delay_ms) as cluster:
            first = cluster.submit(counting(records=40), name="first")
            cluster.run_for(3_000)
            path = first.stop_with_savepoint().result(timeout=10)
            first.wait()
            disposal = cluster.dispose_savepoint(path)
            cluster.run_for(delay_ms)
            try:
                second = cluster.submit(counting(records=40), name="second", from_savepoint=path)
            except CannotRestore:
                assert len(cluster._job_manager.ask(ListJobs()).result(timeout=10).jobs) == 1  # type: ignore[union-attr]
            else:
                assert second.wait().restarts == 0
            disposal.result(timeout=10)
            cluster.run_for(30_000)
            assert checkpoints_of(cluster, first) == []
