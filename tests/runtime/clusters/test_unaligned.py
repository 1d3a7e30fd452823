"""Under back-pressure aligned checkpoints take too long; unaligned ones complete, and what is in flight is not lost."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest

from understudy import JobCanceled, JobHandle, LocalCluster
from understudy.actors.checkpoints import long_waits
from understudy.actors.operators.collector import Collector
from understudy.messages import CheckpointAborted, CheckpointCompleted
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.checkpoint_metadata import decode_metadata

from .jobs import WAIT_S, Counting, Witness, counted, counting, counts_of, environment, eventually

COUNT = 2400
"""Makes 60 batches for each of the two subtasks, from each of two sources."""


class Slow(Counting):
    """Takes ten batches a second, so that what fits into its channels takes it many seconds."""

    def process_batch(self, batch: Any, out: Collector) -> None:
        time.sleep(0.1)
        super().process_batch(batch, out)


def submit(
    cluster: LocalCluster, folder: Path, alignment_timeout_ms: int | None, count: int | None = COUNT
) -> JobHandle:
    env = environment(
        batch_rows=20,
        buffer_timeout_ms=0,
        checkpoint_dir=str(folder),
        checkpoint_interval_ms=300,
        checkpoint_timeout_ms=2_000,
        tolerable_checkpoint_failures=1_000,
        retained_checkpoints=100,
        alignment_timeout_ms=alignment_timeout_ms,
    )
    counting(env, count, None, Slow).collect(name="all")
    return cluster.submit(env)


def in_flight(folder: Path, completed: CheckpointCompleted) -> int:
    """How many channels had something in flight that is part of this checkpoint."""
    metadata = decode_metadata(CheckpointStorage(str(folder)).read_sealed(completed.path), completed.path)
    return sum(len(state.channels) for state in metadata.states())


def test_aligned_checkpoints_expire_under_back_pressure(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    job = submit(shared_cluster, tmp_path, None, count=None)
    witness = Witness(job)
    witness.wait(lambda: sum("expired" in event.reason for event in witness.of(CheckpointAborted)) >= 2, "expiry")
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)


def test_the_log_says_what_an_aligned_one_waits_for(
    shared_cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(long_waits, "WAIT_MS", 100)
    job = submit(shared_cluster, tmp_path, None, count=None)
    with caplog.at_level(logging.WARNING, "understudy.job"):
        eventually(lambda: "not acknowledged" in caplog.text, "a line in the log")
    line = next(each.getMessage() for each in caplog.records if "not acknowledged" in each.getMessage())
    assert line.startswith("job 'job'")
    assert ": checkpoint " in line
    assert " not acknowledged it: " in line
    assert "count -> all [" in line
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)


@pytest.mark.parametrize("alignment_timeout_ms", [0, 100])
def test_unaligned_ones_complete_and_the_result_is_exact_after_a_kill(
    shared_cluster: LocalCluster, tmp_path: Path, alignment_timeout_ms: int
) -> None:
    job = submit(shared_cluster, tmp_path, alignment_timeout_ms)
    witness = Witness(job)
    witness.wait(
        lambda: any(in_flight(tmp_path, event) for event in witness.of(CheckpointCompleted)), "elements in flight"
    )
    witness.kill(witness.pids(2)[1])
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert counts_of(job.results("all")) == counted(COUNT)
