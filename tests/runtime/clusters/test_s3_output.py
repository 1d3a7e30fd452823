"""FileSink in S3 is exact when a TaskManager is killed, and leaves no upload behind."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from understudy import FileSink, LocalCluster
from understudy.runtime.connectors.files.folder_owner import FOLDER as OWNER

from ...systems.s3 import S3Server, s3, s3_server
from .jobs import WAIT_S, Gate, Witness, counted, counting, counts_of, environment

__all__ = ["s3", "s3_server"]

COUNT, RATE = 2000, 1000


@pytest.mark.chaos
def test_what_is_committed_is_exact_when_a_task_manager_is_killed(
    start_cluster: Callable[..., LocalCluster], s3: S3Server, tmp_path: Path
) -> None:
    bucket, gate = s3.bucket(), Gate(tmp_path)
    env = environment(checkpoint_interval_ms=200)
    counting(env, COUNT, RATE, gate=gate).sink_to(FileSink(f"s3://{bucket}/out", "jsonl"))
    job = start_cluster(2).submit(env)
    witness = Witness(job)
    witness.checkpoints(2)
    witness.kill(random.choice(list(witness.pids(2).values())))
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    keys = [key for key in s3.keys(bucket) if not key.startswith(f"{bucket}/out/{OWNER}/")]
    assert all(key.startswith(f"{bucket}/out/part-") for key in keys)
    records = [json.loads(line) for key in keys for line in s3.fs.cat_file(key).splitlines()]
    assert counts_of(records) == counted(COUNT)
    assert s3.uploads(bucket) == []
