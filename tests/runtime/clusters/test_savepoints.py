"""Savepoints of jobs on real processes, and what is left of them on a real disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from understudy import JobHandle, JobStatus, LocalCluster, Savepoint
from understudy.actors.ask_errors import ActorDead
from understudy.messages import JobList, ListJobs
from understudy.runtime.clusters.job_errors import JobCanceled, SavepointFailed, SavepointNotDisposed

from .jobs import WAIT_S, Heavy, Mark, Witness, counting, environment, eventually, files_below

pytestmark = pytest.mark.every_run

StartCluster = Callable[..., LocalCluster]


def config(tmp_path: Path) -> dict[str, str]:
    return {"savepoints.state.backend": "filesystem", "savepoints.state.backend.fs.dir": str(tmp_path / "savepoints")}


def run(cluster: LocalCluster, tmp_path: Path, state_backend: str = "filesystem") -> tuple[JobHandle, Witness]:
    """A job without an end, and with some checkpoints."""
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"), state_backend=state_backend)
    counting(env, None, 500, Heavy).collect(name="all")
    job = cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(2)
    return job, witness


@pytest.mark.parametrize("state_backend", ["filesystem", "memory"])
def test_a_savepoint_lasts_until_it_is_disposed_of_by_another_cluster(
    start_cluster: StartCluster, tmp_path: Path, state_backend: str
) -> None:
    """With the memory backend its metadata holds the state's bytes, and so lasts as well."""
    cluster = start_cluster(1, config=config(tmp_path))
    job, witness = run(cluster, tmp_path, state_backend)
    path = job.trigger_savepoint("daily").result(timeout=WAIT_S)
    assert path.startswith(str(tmp_path / "savepoints" / "daily" / "savepoint-"))
    witness.checkpoints(3)
    job.cancel().result(timeout=WAIT_S)
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)
    cluster.close()
    own = tmp_path / "checkpoints" / job.job_id
    (folder,) = os.listdir(own)
    assert folder.startswith("chk-")
    assert len([name for name in files_below(own) if "/" in name]) == (2 if state_backend == "filesystem" else 1)

    later = start_cluster(1, config=config(tmp_path))
    assert later.dispose_savepoint(path).result(timeout=WAIT_S) == path
    assert not own.exists()
    assert files_below(tmp_path / "savepoints") == set()
    with pytest.raises(SavepointNotDisposed, match="missing savepoint"):
        later.dispose_savepoint(path).result(timeout=WAIT_S)


class SlowToEnd(LocalCluster):
    """The last that its tasks do is to finish the file of a snapshot."""

    late: Callable[[], None]

    def _stop_launcher(self) -> None:
        super()._stop_launcher()
        self.late()


@pytest.mark.parametrize("has_savepoint", [True, False])
def test_what_a_task_writes_when_its_job_has_been_cancelled_goes_with_the_cluster(
    tmp_path: Path, has_savepoint: bool
) -> None:
    with SlowToEnd(config=config(tmp_path)) as cluster:
        job, _ = run(cluster, tmp_path)
        path = Path(job.trigger_savepoint().result(timeout=WAIT_S)) if has_savepoint else None
        own = tmp_path / "checkpoints" / job.job_id

        def write() -> None:
            for name in ("chk-7000/late", "shared/7000-late", "chk-7001/.writing-late-.1"):
                (own / name).parent.mkdir(parents=True, exist_ok=True)
                (own / name).write_bytes(b"of a checkpoint that never completed")

        cluster.late = write
    if path is None:
        assert not own.exists()
    else:
        assert path.is_file()
        (kept,) = own.iterdir()
        assert {"_metadata"} < {file.name for file in kept.iterdir()}


def test_what_was_written_before_a_kill_goes_once_the_job_has_a_checkpoint_again(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """Of checkpoints that never completed; the job goes on meanwhile, and its savepoint is whole."""
    cluster = start_cluster(1, config=config(tmp_path))
    job, witness = run(cluster, tmp_path)
    path = job.trigger_savepoint().result(timeout=WAIT_S)
    witness.checkpoints(2)
    own = tmp_path / "checkpoints" / job.job_id
    before, later = own / "chk-1" / "map-0-killed", own / "chk-7000" / "map-0-killed"
    for each in (before, later):
        each.parent.mkdir(exist_ok=True)
        each.write_bytes(b"state")
    witness.checkpoints(2)
    assert before.exists(), "a job that was not restarted has lost nothing, and looks for nothing"
    witness.kill(witness.pids(1)[0])
    witness.checkpoints(2)
    eventually(lambda: not before.parent.exists(), "the end of what was left")
    assert later.exists()
    assert Savepoint.verify(path).is_whole
    assert job.details().status is JobStatus.RUNNING


def test_a_broken_or_foreign_path_harms_neither_the_job_nor_its_savepoint(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster(1, config=config(tmp_path))
    job, witness = run(cluster, tmp_path)
    path = Path(job.trigger_savepoint().result(timeout=WAIT_S))
    metadata = next(Path(tmp_path / "checkpoints" / job.job_id).glob("*/_metadata"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    for wrong, text in [
        (str(path), "CorruptState"),
        (str(metadata), "OutsideRoot"),
        ("/etc/passwd", "OutsideRoot"),
        ("jobmanager://savepoints/savepoint-1", "WrongSavepointStore"),
        (f"{path}-not", "MissingSavepoint"),
    ]:
        with pytest.raises(SavepointNotDisposed, match=text):
            cluster.dispose_savepoint(wrong).result(timeout=WAIT_S)
    witness.checkpoints(2)
    assert job.details().status is JobStatus.RUNNING
    path.write_bytes(whole)
    assert cluster.dispose_savepoint(str(path)).result(timeout=WAIT_S) == str(path)


def test_savepoints_on_files_of_checkpoints_that_go_with_the_cluster_are_refused(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster(1, config=config(tmp_path))
    env = environment()
    counting(env, None, 500).collect(name="all")
    job = cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(1)
    for ask in (job.trigger_savepoint, job.stop_with_savepoint, job.cancel_with_savepoint):
        with pytest.raises(SavepointFailed, match="set checkpoint_dir on the StreamEnvironment"):
            ask().result(timeout=WAIT_S)
    witness.checkpoints(1)
    assert job.status is JobStatus.RUNNING


def test_a_job_that_loses_its_task_manager_goes_on_from_a_savepoint_that_was_disposed_of(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster(1, config=config(tmp_path))
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"), checkpoint_interval_ms=600_000)
    counting(env, None, 500, Heavy).collect(name="all")
    job = cluster.submit(env)
    witness = Witness(job)
    job.ready().result(timeout=WAIT_S)  # it may have begun to run before there was a witness
    eventually(lambda: sum(task.records_in for task in job.details().tasks) > 100, "some records")
    path = job.trigger_savepoint().result(timeout=WAIT_S)
    cluster.dispose_savepoint(path).result(timeout=WAIT_S)
    witness.kill(witness.pids(1)[0])
    eventually(lambda: job.details().restarts == 1, "the restart")
    job.ready().result(timeout=WAIT_S)
    eventually(lambda: sum(task.records_in for task in job.details().tasks) > 100, "some records")
    last = job.stop_with_savepoint().result(timeout=WAIT_S)
    assert job.wait(timeout=WAIT_S).restarts == 1
    numbers = sorted((each["key"], each["number"]) for each in job.results("all"))
    assert len(numbers) == len(set(numbers))
    cluster.dispose_savepoint(last).result(timeout=WAIT_S)
    eventually(lambda: not (tmp_path / "checkpoints" / job.job_id).exists(), "the end of its files")


def test_a_cluster_that_closes_breaks_an_open_promise(start_cluster: StartCluster, tmp_path: Path) -> None:
    """The job's operator is busy, so that no barrier comes through."""
    cluster = start_cluster(1, config=config(tmp_path))
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"), checkpoint_interval_ms=600_000)
    busy = Mark(tmp_path, "busy")

    def take_long(record: int) -> int:
        busy.take()
        time.sleep(600)  # until the cluster ends its process
        return record

    env.generate(lambda index: index, None, records_per_second=500).map(take_long).collect(name="all")
    job = cluster.submit(env)
    busy.wait()
    job.ready().result(timeout=WAIT_S)
    answer = job.trigger_savepoint()
    with pytest.raises(TimeoutError, match="the savepoint of job"):
        answer.result(timeout=0.2)
    cluster.close()
    with pytest.raises((SavepointFailed, ActorDead)):
        answer.result(timeout=WAIT_S)
    assert files_below(tmp_path / "savepoints") == set()


def test_listed_jobs_are_those_that_run_and_the_last_that_ended(start_cluster: StartCluster) -> None:
    cluster = start_cluster(1)
    env = environment()
    counting(env, 10, None).collect(name="all")
    job = cluster.submit(env, name="short")
    job.wait(timeout=WAIT_S)
    _, job_manager = cluster._running()
    listed: JobList = job_manager.ask(ListJobs()).result(timeout=WAIT_S)
    (summary,) = listed.jobs
    assert (summary.job_id, summary.name, summary.status) == (job.job_id, "short", JobStatus.FINISHED)
    assert 0 < summary.started_ms <= summary.ended_ms
