"""A job whose checkpoints lie in S3 is exact when TaskManagers are killed, and when the store has faults or is away for
a while; and it leaves none behind.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from understudy import FileSink, JobFailed, JobStatus, LocalCluster, fixed_delay
from understudy.messages import CheckpointAborted, FailureCause

from ...systems.faulty_s3 import FaultyS3, Weather, faulty
from ...systems.s3 import S3Server, s3, s3_server
from .jobs import WAIT_S, Gate, Heavy, Witness, counted, counting, environment, eventually, read_output

__all__ = ["faulty", "s3", "s3_server"]

COUNT, RATE = 2000, 1000


@pytest.mark.chaos
@pytest.mark.slow
def test_what_is_counted_is_exact_when_a_task_manager_is_killed(
    start_cluster: Callable[..., LocalCluster], s3: S3Server, tmp_path: Path
) -> None:
    bucket, gate = s3.bucket(), Gate(tmp_path)
    env = environment(
        checkpoint_interval_ms=200, checkpoint_dir=f"s3://{bucket}/checkpoints", state_backend="filesystem"
    )
    counting(env, COUNT, RATE, Heavy, gate=gate).sink_to(FileSink(str(tmp_path / "out"), "jsonl"))
    job = start_cluster(2).submit(env)
    witness = Witness(job)
    for _ in range(2):
        witness.checkpoints(2)
        assert any("/chk-" in key for key in s3.keys(bucket))
        witness.kill(witness.pids(2)[0])
    witness.checkpoints(2)
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts >= 2
    assert read_output(tmp_path / "out", "jsonl") == counted(COUNT)
    eventually(lambda: not s3.keys(bucket), "no checkpoint of a finished job")


@pytest.mark.chaos
def test_a_job_on_a_store_with_faults_is_exact_when_task_managers_are_killed(
    start_cluster: Callable[..., LocalCluster], s3: S3Server, faulty: FaultyS3, tmp_path: Path
) -> None:
    """From submit on each tenth request gets 500, is cut off or half, or its answer is; first reads get 404."""
    bucket, gate = s3.bucket(), Gate(tmp_path)
    env = environment(
        checkpoint_interval_ms=200,
        checkpoint_dir=f"s3://{bucket}/checkpoints",
        state_backend="filesystem",
        tolerable_checkpoint_failures=10_000,
    )
    counting(env, COUNT, RATE, Heavy, gate=gate).sink_to(FileSink(str(tmp_path / "out"), "jsonl"))
    faulty.fault = Weather(0.1, seed=7)
    job = start_cluster(2).submit(env)
    witness = Witness(job)
    for _ in range(3):
        witness.checkpoints(2)
        witness.kill(witness.pids(2)[0])
    witness.checkpoints(2)
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts >= 3
    assert read_output(tmp_path / "out", "jsonl") == counted(COUNT)
    assert {fault for _, fault in faulty.done} == {"404", "500", "cut", "forged", "half", "lost", "short"}


def chained(failure: FailureCause) -> list[str]:
    """The types of a failure's errors, the outermost first."""
    return [failure.error_type, *(chained(failure.cause) if failure.cause else ())]


@pytest.mark.chaos
@pytest.mark.slow
def test_a_store_that_is_away_declines_checkpoints_and_is_waited_for_by_restarts(
    start_cluster: Callable[..., LocalCluster], s3: S3Server, faulty: FaultyS3, tmp_path: Path
) -> None:
    """It condemns no checkpoint: the job goes on from its newest one, and never from the beginning."""
    bucket, gate = s3.bucket(), Gate(tmp_path)
    env = environment(
        checkpoint_interval_ms=200,
        checkpoint_dir=f"s3://{bucket}/checkpoints",
        state_backend="filesystem",
        tolerable_checkpoint_failures=10_000,
        restart_strategy=fixed_delay(attempts=1000, delay_ms=100),
    )
    counting(env, COUNT, RATE, Heavy, gate=gate).sink_to(FileSink(str(tmp_path / "out"), "jsonl"))
    job = start_cluster(2).submit(env)
    witness = Witness(job)
    witness.checkpoints(2)
    faulty.always("cut")
    witness.wait(lambda: len(witness.of(CheckpointAborted)) >= 3, "aborted checkpoints")
    assert witness.statuses()[-1] is JobStatus.RUNNING, "who needs no checkpoint works on"
    newest = job.details().latest_checkpoint_id
    witness.kill(witness.pids(2)[0])
    witness.status(JobStatus.RESTARTING, times=3)
    faulty.fault = lambda _: None
    witness.checkpoints(1)
    restored = job.checkpoint_history().restored_checkpoint_id
    gate.open()
    details = job.wait(timeout=WAIT_S)
    assert restored == newest
    assert read_output(tmp_path / "out", "jsonl") == counted(COUNT)
    met = [failure for failure in details.failures if "RequestFailed" in chained(failure)]
    assert met
    assert all(f"s3://{bucket}/checkpoints" in str(failure) for failure in met)


@pytest.mark.chaos
def test_a_store_that_stays_away_ends_the_job_by_its_name(
    start_cluster: Callable[..., LocalCluster], s3: S3Server, faulty: FaultyS3, tmp_path: Path
) -> None:
    bucket, out = s3.bucket(), tmp_path / "out"
    env = environment(
        checkpoint_interval_ms=200,
        checkpoint_dir=f"s3://{bucket}/checkpoints",
        state_backend="filesystem",
        tolerable_checkpoint_failures=10_000,
        restart_strategy=fixed_delay(attempts=2, delay_ms=0),
    )
    counting(env, None, RATE, Heavy).sink_to(FileSink(str(out), "jsonl"))
    job = start_cluster(2).submit(env)
    witness = Witness(job)
    witness.checkpoints(2)
    faulty.always("cut")
    witness.kill(witness.pids(2)[0])
    with pytest.raises(JobFailed, match=rf"RequestFailed.*s3://{bucket}/checkpoints/.*3 tries"):
        job.wait(timeout=WAIT_S)
    faulty.fault = lambda _: None
    assert max(read_output(out, "jsonl").values()) == 1
