"""A job whose checkpoints lie in S3 is exact when a TaskManager is killed, and leaves none behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from understudy import FileSink, LocalCluster

from ...systems.s3 import S3Server, s3, s3_server
from .jobs import WAIT_S, Gate, Witness, counted, counting, environment, eventually, read_output
from .test_checkpoint_storage import Heavy

__all__ = ["s3", "s3_server"]

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
