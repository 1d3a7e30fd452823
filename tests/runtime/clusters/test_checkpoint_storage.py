"""Checkpoint storage that fails, fills up or rots under a running job."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from understudy import FileSink, JobFailed, JobHandle, JobStatus, LocalCluster, UnusableOutput, fixed_delay, no_restart
from understudy.actors.operators.collector import Collector
from understudy.messages import CheckpointAborted
from understudy.state import UnwritableRoot

from .jobs import (
    WAIT_S,
    Gate,
    Heavy,
    Mark,
    Witness,
    all_names,
    assert_no_gap,
    counted,
    counting,
    counts_of,
    environment,
    eventually,
    files_below,
    read_output,
)

StartCluster = Callable[..., LocalCluster]


def test_a_folder_that_cannot_be_written_is_refused_at_submit(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    env = environment(checkpoint_dir=str(tmp_path / "file" / "checkpoints"))
    counting(env, 10, None).collect(name="all")
    with pytest.raises(UnwritableRoot, match="file/checkpoints"):
        shared_cluster.submit(env)


def test_a_folder_of_an_unknown_protocol_is_refused_at_submit_with_what_to_write(shared_cluster: LocalCluster) -> None:
    """It was fsspec's own ValueError, without the folder."""
    env = environment(checkpoint_dir="nosuch://x")
    counting(env, 10, None).collect(name="all")
    with pytest.raises(
        UnwritableRoot, match=r"nosuch://x: .* knows no protocol 'nosuch': write a local path, or a URL"
    ):
        shared_cluster.submit(env)


def test_the_memory_of_each_process_is_no_place_for_checkpoints_nor_for_output(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    """Checkpoints completed there, and committed records were lost with the first TaskManager."""
    env = environment(checkpoint_dir="memory://checkpoints")
    counting(env, 10, None).collect(name="all")
    with pytest.raises(UnwritableRoot, match=r"memory://checkpoints: .* no other process finds. Write a folder"):
        shared_cluster.submit(env)
    env = environment(checkpoint_dir=str(tmp_path))
    counting(env, 10, None).sink_to(FileSink("memory://out", "jsonl"), name="out")
    with pytest.raises(UnusableOutput, match=r"sink 'out' writes to memory://out, .* Write to a folder"):
        shared_cluster.submit(env)


def test_a_job_in_one_process_takes_it() -> None:
    env = environment(checkpoint_dir="memory://in-one-process")
    counting(env, 10, None).collect(name="all")
    with LocalCluster(debug=True) as cluster:
        assert cluster.submit(env).wait().status is JobStatus.FINISHED


@pytest.mark.parametrize("backend", ["memory", "filesystem"])
def test_a_finished_job_leaves_nothing_in_the_checkpoint_folder_but_what_it_collected(
    shared_cluster: LocalCluster, tmp_path: Path, backend: str
) -> None:
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"), state_backend=backend)
    gate = Gate(tmp_path)
    counting(env, 1000, 2000, Heavy, gate=gate).collect(name="all")
    job = shared_cluster.submit(env)
    Witness(job).checkpoints(3)
    gate.open()
    job.wait(timeout=WAIT_S)
    eventually(lambda: not [name for name in files_below(tmp_path / "checkpoints") if not name.startswith("collected")])
    assert counts_of(job.results("all")) == counted(1000)


@pytest.mark.chaos
@pytest.mark.slow
def test_a_long_job_keeps_only_its_retained_checkpoints(start_cluster: StartCluster, tmp_path: Path) -> None:
    """Not the folders of those that were pushed out either, nor what a killed TaskManager had written."""
    folder = tmp_path / "checkpoints"
    env = environment(checkpoint_dir=str(folder), state_backend="filesystem", retained_checkpoints=2)
    gate = Gate(tmp_path)
    counting(env, 6000, 2000, Heavy, gate=gate).collect(name="all")
    job = start_cluster().submit(env)
    witness = Witness(job)
    for _ in range(2):
        witness.checkpoints(4)
        witness.kill(witness.pids(2)[1])
    witness.checkpoints(4)
    of_job = folder / job.job_id
    eventually(lambda: len(list(of_job.iterdir())) <= 4, f"few folders in {of_job}")
    gate.open()
    job.wait(timeout=WAIT_S)
    eventually(lambda: not of_job.exists() or not list(of_job.iterdir()), f"nothing in {of_job}")


def test_a_storage_that_breaks_fails_the_job_with_its_reason(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    env = environment(
        checkpoint_dir=str(folder), state_backend="filesystem", restart_strategy=fixed_delay(attempts=1, delay_ms=0)
    )
    counting(env, None, 2000, Heavy).sink_to(FileSink(str(tmp_path / "out"), "jsonl"))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(2)
    folder.rename(tmp_path / "aside")
    folder.write_text("no folder any more")
    with pytest.raises(JobFailed, match="UnreachableRoot") as caught:
        job.wait(timeout=WAIT_S)
    assert "checkpoints" in str(caught.value)
    assert caught.value.details.failures[0].error_type == "CheckpointFailed"
    assert "NotADirectoryError" in caught.value.details.failures[0].error_message


def test_tolerable_failures_are_tolerated_and_the_job_goes_on_when_storage_is_back(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    folder = tmp_path / "checkpoints"
    env = environment(checkpoint_dir=str(folder), state_backend="filesystem", tolerable_checkpoint_failures=10_000)
    gate = Gate(tmp_path)
    counting(env, 3000, 2000, Heavy, gate=gate).sink_to(FileSink(str(tmp_path / "out"), "jsonl"))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(1)
    folder.rename(tmp_path / "aside")
    folder.write_text("no folder any more")
    witness.wait(lambda: len(witness.of(CheckpointAborted)) >= 3, "aborted checkpoints")
    folder.unlink()
    (tmp_path / "aside").rename(folder)
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 0
    assert re.match(
        r"declined: .* subtask [01] \(TaskManager \d+ on .*?\): NotADirectoryError",
        witness.of(CheckpointAborted)[0].reason,
    )
    assert read_output(tmp_path / "out", "jsonl") == counted(3000)
    assert all_names(tmp_path / "out") == set()


def test_an_empty_folder_in_place_of_a_volume_gets_no_checkpoint(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    """It would be hidden when the volume is back, and the sinks would have committed what it covers. Nor does a restart
    take what it does not find there for lost.
    """
    folder = tmp_path / "checkpoints"
    env = environment(
        checkpoint_dir=str(folder),
        state_backend="filesystem",
        tolerable_checkpoint_failures=10_000,
        restart_strategy=fixed_delay(attempts=1000, delay_ms=50),
    )
    gate = Gate(tmp_path)
    counting(env, 3000, 2000, Heavy, gate=gate).sink_to(FileSink(str(tmp_path / "out"), "jsonl"))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(2)
    folder.rename(tmp_path / "volume")
    folder.mkdir()
    witness.wait(lambda: len(witness.of(CheckpointAborted)) >= 3, "aborted checkpoints")
    witness.kill(witness.pids(2)[0])
    witness.status(JobStatus.RESTARTING, times=3)
    assert not list(folder.rglob("_metadata"))
    shutil.rmtree(folder)
    (tmp_path / "volume").rename(folder)
    gate.open()
    details = job.wait(timeout=WAIT_S)
    assert any("UnreachableRoot" in aborted.reason for aborted in witness.of(CheckpointAborted))
    assert any(".understudy-root" in failure.error_message for failure in details.failures)
    assert read_output(tmp_path / "out", "jsonl") == counted(3000)


@pytest.mark.slow
@pytest.mark.chaos
def test_a_restart_waits_for_a_storage_that_is_away_and_condemns_no_checkpoint(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    folder = tmp_path / "checkpoints"
    env = environment(
        checkpoint_dir=str(folder),
        state_backend="filesystem",
        restart_strategy=fixed_delay(attempts=1000, delay_ms=50),
        tolerable_checkpoint_failures=10_000,
    )
    gate = Gate(tmp_path)
    counting(env, 3000, 2000, Heavy, gate=gate).sink_to(FileSink(str(tmp_path / "out"), "jsonl"))
    job = start_cluster().submit(env)
    witness = Witness(job)
    witness.checkpoints(3)
    folder.rename(tmp_path / "aside")
    folder.write_text("no folder any more")
    witness.kill(witness.pids(2)[0])
    witness.status(JobStatus.RESTARTING, times=3)
    folder.unlink()
    (tmp_path / "aside").rename(folder)
    gate.open()
    details = job.wait(timeout=WAIT_S)
    assert read_output(tmp_path / "out", "jsonl") == counted(3000)
    assert any("UnreachableRoot" in failure.error_type for failure in details.failures)


def test_a_final_checkpoint_is_tried_until_storage_is_back(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    env = environment(
        checkpoint_dir=str(folder),
        checkpoint_interval_ms=None,
        state_backend="filesystem",
        tolerable_checkpoint_failures=10_000,
    )
    gate = Gate(tmp_path)
    counting(env, 500, None, Heavy, gate=gate).sink_to(FileSink(str(tmp_path / "out"), "jsonl"))
    witness = Witness(job := shared_cluster.submit(env))
    folder.rename(tmp_path / "aside")
    folder.write_text("no folder any more")
    gate.open()
    witness.wait(lambda: witness.of(CheckpointAborted), "an aborted checkpoint")
    folder.unlink()
    (tmp_path / "aside").rename(folder)
    assert job.wait(timeout=WAIT_S).restarts == 0
    assert read_output(tmp_path / "out", "jsonl") == counted(500)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_declines_checkpoints_and_leaves_no_torn_files(
    shared_cluster: LocalCluster, tmp_path: Path, small_disk: Path
) -> None:
    env = environment(checkpoint_dir=str(small_disk), state_backend="filesystem", tolerable_checkpoint_failures=10_000)
    gate = Gate(tmp_path)
    counting(env, 4000, 2000, Heavy, gate=gate).sink_to(FileSink(str(tmp_path / "out"), "jsonl"))
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(1)
    ballast = small_disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    witness.wait(lambda: any("No space left" in event.reason for event in witness.of(CheckpointAborted)), "a full disk")
    ballast.unlink()
    witness.checkpoints(2)
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 0
    assert read_output(tmp_path / "out", "jsonl") == counted(4000)


HOUR_MS = 3_600_000
"""Between the checkpoints of a job whose checkpoints are the test's."""


def newest_of_two(job: JobHandle, folder: Path) -> Path:
    """Of the two checkpoints that this takes, behind some records."""
    job.ready().result(timeout=WAIT_S)
    for number in (500, 1000):
        eventually(lambda number=number: sum(each.records_in for each in job.details().tasks) > number)  # type: ignore[misc]
        taken = job.trigger_checkpoint().result(timeout=WAIT_S)
    return folder / taken.path


def corrupt(checkpoint: Path) -> None:
    """Turn a byte over in every state file of a checkpoint, as a rotten disk might."""
    states = [path for path in checkpoint.iterdir() if path.name != "_metadata"]
    assert states, "its state lies in files"
    for path in states:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)


class Corrupting(Heavy):
    """Fails once, after the mark of the test's that the checkpoints have been corrupted."""

    def __init__(self, go: str, mark: Mark) -> None:
        self.go, self.mark = go, mark

    def process(self, record: int, out: Collector) -> None:
        if os.path.exists(self.go) and self.mark.take():
            raise ValueError("now")
        super().process(record, out)


@pytest.mark.parametrize("sink", [pytest.param("collect", marks=pytest.mark.slow), "files"])
def test_a_rotten_checkpoint_is_passed_over_for_the_older_one_and_the_result_is_exact(
    shared_cluster: LocalCluster, tmp_path: Path, sink: str
) -> None:
    """No new checkpoint begins while the newest is corrupted: its interval is long, and the trigger is the test's."""
    folder, go = tmp_path / "checkpoints", tmp_path / "go"
    env = environment(
        checkpoint_dir=str(folder), checkpoint_interval_ms=HOUR_MS, state_backend="filesystem", retained_checkpoints=2
    )
    stream = counting(env, None, 2000, Corrupting(str(go), Mark(tmp_path, "failed")))
    if sink == "collect":
        stream.collect(name="all")
    else:
        stream.sink_to(FileSink(str(tmp_path / "out"), "jsonl"))
    job = shared_cluster.submit(env)
    corrupt(newest_of_two(job, folder))
    go.touch()
    eventually(lambda: job.details().restarts == 2, "the restart from the older one")
    job.stop().result(timeout=WAIT_S)
    details = job.wait(timeout=WAIT_S)
    assert details.status is JobStatus.FINISHED
    assert details.restarts == 2
    assert "CorruptState" in str(details.failures[1])
    found = counts_of(job.results("all")) if sink == "collect" else read_output(tmp_path / "out", "jsonl")
    assert_no_gap(found)


def test_when_all_retained_checkpoints_rot_the_job_fails_and_commits_nothing_twice(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    folder, go, out = tmp_path / "checkpoints", tmp_path / "go", tmp_path / "out"
    env = environment(checkpoint_dir=str(folder), checkpoint_interval_ms=HOUR_MS, state_backend="filesystem")
    counting(env, None, 2000, Corrupting(str(go), Mark(tmp_path, "failed"))).sink_to(FileSink(str(out), "jsonl"))
    job = shared_cluster.submit(env)
    corrupt(newest_of_two(job, folder))
    go.touch()
    with pytest.raises(JobFailed, match="NoRestorableCheckpoint") as caught:
        job.wait(timeout=WAIT_S)
    assert "CorruptState" in str(caught.value)
    assert "Submit the job again from a savepoint that is whole (`understudy state verify PATH` says so" in str(
        caught.value
    )
    assert max(read_output(out, "jsonl").values()) == 1


def test_without_checkpoints_a_failure_is_final_and_says_why(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    mark = Mark(tmp_path, "failed")
    go = tmp_path / "go"
    go.touch()
    env = environment(checkpoint_interval_ms=None, restart_strategy=no_restart())
    counting(env, 1000, None, Corrupting(str(go), mark)).collect(name="all")
    job: Any = shared_cluster.submit(env)
    with pytest.raises(JobFailed, match="ValueError: now"):
        job.wait(timeout=WAIT_S)
    assert job.results("all") == []
