"""What a job leaves of its checkpoints when it fails or is canceled, and how another goes on from there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from understudy import FileSink, JobCanceled, JobFailed, JobHandle, JobStatus, LocalCluster, no_restart
from understudy.actors.operators.collector import Collector

from .jobs import (
    WAIT_S,
    Counting,
    Heavy,
    Witness,
    all_names,
    counted,
    counting,
    environment,
    eventually,
    files_below,
    read_output,
)

StartCluster = Callable[..., LocalCluster]


class Faulty(Counting):
    """Has a bug, which shows once the test says so."""

    def __init__(self, go: str) -> None:
        self.go = go

    def process(self, record: int, out: Collector) -> None:
        if os.path.exists(self.go):
            raise ZeroDivisionError("the bug")
        super().process(record, out)


def failed(job: JobHandle) -> JobFailed:
    with pytest.raises(JobFailed) as caught:
        job.wait(timeout=WAIT_S)
    return caught.value


def canceled(job: JobHandle) -> JobCanceled:
    job.cancel().result(timeout=WAIT_S)
    with pytest.raises(JobCanceled) as caught:
        job.wait(timeout=WAIT_S)
    return caught.value


def folders_of(job: JobHandle, checkpoints: Path) -> list[str]:
    """What is left of a job; a checkpoint that was given up last may be on its way out."""
    folder = checkpoints / job.job_id
    eventually(lambda: not folder.exists() or all((each / "_metadata").exists() for each in folder.iterdir()))
    return sorted(os.listdir(folder)) if folder.exists() else []


@pytest.mark.parametrize("backend", ["memory", "filesystem"])
def test_a_failed_job_goes_on_with_fixed_code_where_its_last_checkpoint_was(
    shared_cluster: LocalCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture, backend: str
) -> None:
    """What its sink had not committed is committed or withdrawn, once: the output of both is exact."""
    checkpoints, out, go = tmp_path / "checkpoints", tmp_path / "out", tmp_path / "go"
    settings = {"checkpoint_dir": str(checkpoints), "state_backend": backend}
    env = environment(**settings, restart_strategy=no_restart())
    counting(env, None, 1000, Faulty(str(go))).sink_to(FileSink(str(out), "jsonl"), name="out")
    job = shared_cluster.submit(env)
    Witness(job).checkpoints(3)
    go.touch()
    error = failed(job)
    path = error.details.retained_checkpoint_path
    newest = f"chk-{error.details.latest_checkpoint_id}"
    assert path == f"{checkpoints}/{job.job_id}/{newest}/_metadata"
    assert str(error).endswith(f"its checkpoint is kept; to go on from there: from_savepoint={path!r}")
    (end,) = [each for each in caplog.messages if "has ended after 0 restarts" in each]
    assert f"its checkpoint is kept; to go on from there: from_savepoint={path!r}" in end
    assert folders_of(job, checkpoints) == [newest]

    fixed = environment(**settings)
    counting(fixed, 5000, None).sink_to(FileSink(str(out), "jsonl"), name="out")
    second = shared_cluster.submit(fixed, from_savepoint=path)
    assert second.wait(timeout=WAIT_S).retained_checkpoint_path == ""
    assert read_output(out, "jsonl") == counted(5000)
    assert all_names(out) == set()
    assert folders_of(job, checkpoints) == [newest], "it is its user's"
    assert folders_of(second, checkpoints) == []


def test_a_canceled_job_leaves_its_checkpoint_only_where_that_was_asked_for(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    left = {}
    for retention in ("on_cancellation", "on_failure", "never"):
        env = environment(checkpoint_dir=str(tmp_path), retain_checkpoints=retention, retained_checkpoints=2)
        counting(env, None, 500, Heavy).collect(name="all")
        job = shared_cluster.submit(env)
        Witness(job).checkpoints(3)
        error = canceled(job)
        if retention != "on_cancellation":
            eventually(lambda job=job: not folders_of(job, tmp_path), "its checkpoints gone")  # type: ignore[misc]
        left[retention] = len(folders_of(job, tmp_path))
        assert ("from_savepoint=" in str(error)) is (retention == "on_cancellation")
    assert left == {"on_cancellation": 2, "on_failure": 0, "never": 0}


def test_a_job_that_never_keeps_leaves_nothing_when_it_fails(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    go = tmp_path / "go"
    for settings in ({"checkpoint_dir": str(tmp_path / "checkpoints"), "retain_checkpoints": "never"}, {}):
        env = environment(**settings, restart_strategy=no_restart())
        counting(env, None, 500, Faulty(str(go))).collect(name="all")
        job = shared_cluster.submit(env)
        Witness(job).checkpoints(1)
        go.touch()
        assert "from_savepoint" not in str(failed(job)), "the cluster's own folder goes with the cluster"
        go.unlink()
        if settings:
            eventually(lambda job=job: not folders_of(job, tmp_path / "checkpoints"), "its checkpoints gone")  # type: ignore[misc]


def test_a_cluster_that_closes_keeps_what_a_crash_keeps_where_asked(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    checkpoints, out = tmp_path / "checkpoints", tmp_path / "out"
    settings = {"checkpoint_dir": str(checkpoints), "retain_checkpoints": "on_cancellation"}
    cluster = start_cluster(2)
    env = environment(**settings)
    counting(env, None, 1000).sink_to(FileSink(str(out), "jsonl"), name="out")
    job = cluster.submit(env)
    Witness(job).checkpoints(3)
    cluster.close()
    with pytest.raises(JobCanceled, match="from_savepoint="):
        job.wait(timeout=WAIT_S)
    (newest,) = folders_of(job, checkpoints)

    bounded = environment(**settings)
    counting(bounded, 5000, None).sink_to(FileSink(str(out), "jsonl"), name="out")
    second = start_cluster(1).submit(bounded, from_savepoint=checkpoints / job.job_id / newest)
    assert second.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert read_output(out, "jsonl") == counted(5000)
    assert folders_of(job, checkpoints) == [newest]


@pytest.mark.parametrize("is_canceled", [True, False])
def test_a_checkpoint_that_somebody_has_deleted_is_not_said_to_be_kept(
    shared_cluster: LocalCluster, tmp_path: Path, is_canceled: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has named it before storage was looked at: it says so, too."""
    checkpoints, go = tmp_path / "checkpoints", tmp_path / "go"
    settings = {"checkpoint_dir": str(checkpoints), "retain_checkpoints": "on_cancellation"}
    env = environment(**settings, checkpoint_interval_ms=600_000, restart_strategy=no_restart())
    counting(env, None, 1000, Faulty(str(go))).print()
    job = shared_cluster.submit(env)
    job.ready().result(timeout=WAIT_S)
    job.trigger_checkpoint().result(timeout=WAIT_S)
    shutil.rmtree(checkpoints)
    go.touch() if not is_canceled else None
    error = canceled(job) if is_canceled else failed(job)
    assert "is kept" not in str(error)
    assert job.details().retained_checkpoint_path == job.retained_checkpoint_path == ""
    gone = [each for each in caplog.messages if "the checkpoint that it leaves is not there: " in each]
    assert [str(checkpoints) in each for each in gone] == ([] if is_canceled else [True])


def test_a_savepoint_that_is_the_newest_cut_is_what_a_failed_job_goes_on_from(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    """Sinks have committed what it covers; and it stays, although its user has disposed of it."""
    checkpoints, out, go = tmp_path / "checkpoints", tmp_path / "out", tmp_path / "go"
    settings = {"checkpoint_dir": str(checkpoints), "checkpoint_interval_ms": 600_000}
    env = environment(**settings, restart_strategy=no_restart())
    counting(env, None, 1000, Faulty(str(go))).sink_to(FileSink(str(out), "jsonl"), name="out")
    job = shared_cluster.submit(env)
    eventually(lambda: sum(task.records_in for task in job.details().tasks) > 200, "some records")
    savepoint = job.trigger_savepoint().result(timeout=WAIT_S)
    assert shared_cluster.dispose_savepoint(savepoint).result(timeout=WAIT_S) == savepoint
    go.touch()
    path = failed(job).details.retained_checkpoint_path
    fixed = environment(checkpoint_dir=str(checkpoints))
    counting(fixed, 5000, None).sink_to(FileSink(str(out), "jsonl"), name="out")
    shared_cluster.submit(fixed, from_savepoint=path).wait(timeout=WAIT_S)
    assert read_output(out, "jsonl") == counted(5000)


class TestSavepointsWithoutAConfiguration:
    def test_they_lie_below_the_checkpoint_directory_for_the_next_cluster(
        self, start_cluster: StartCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checkpoints, out = tmp_path / "checkpoints", tmp_path / "out"
        cluster = start_cluster(1)
        env = environment(checkpoint_dir=str(checkpoints))
        counting(env, None, 1000).sink_to(FileSink(str(out), "jsonl"), name="out")
        job = cluster.submit(env)
        Witness(job).checkpoints(2)
        path = Path(job.stop_with_savepoint(Path("daily")).result(timeout=WAIT_S))
        assert path.parent == checkpoints / "savepoints" / "daily"
        job.wait(timeout=WAIT_S)
        cluster.close()

        later = start_cluster(1)
        bounded = environment(checkpoint_dir=str(checkpoints))
        counting(bounded, 3000, None).sink_to(FileSink(str(out), "jsonl"), name="out")
        monkeypatch.chdir(path.parent)
        later.submit(bounded, from_savepoint=path.name).wait(timeout=WAIT_S)
        assert read_output(out, "jsonl") == counted(3000)
        monkeypatch.chdir("/")
        assert later.dispose_savepoint(f"daily/{path.name}").result(timeout=WAIT_S) == str(path)
        assert {name for name in files_below(checkpoints) if not name.startswith("collected")} == set()

    def test_each_job_has_its_own(self, shared_cluster: LocalCluster, tmp_path: Path) -> None:
        found = {}
        for name in ("a", "b"):
            env = environment(checkpoint_dir=str(tmp_path / name))
            counting(env, None, 500).collect(name="all")
            job = shared_cluster.submit(env)
            Witness(job).checkpoints(1)
            found[name] = job.trigger_savepoint().result(timeout=WAIT_S)
            canceled(job)
        assert {name: Path(path).parent for name, path in found.items()} == {
            name: tmp_path / name / "savepoints" for name in ("a", "b")
        }
        for path in found.values():
            assert shared_cluster.dispose_savepoint(Path(path)).result(timeout=WAIT_S) == path
        assert [name for name in files_below(tmp_path) if "savepoint" in name or "chk-" in name] == []
