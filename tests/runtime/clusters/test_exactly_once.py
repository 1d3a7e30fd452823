"""Committed output is exact to the record whatever is killed. Flink: the end-to-end tests with random task kills."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import FileSink, JobStatus, LocalCluster
from understudy.actors.operators.operator import Collector
from understudy.messages import CheckpointCompleted

from .jobs import (
    Counting,
    Mark,
    Reader,
    Witness,
    all_names,
    counted,
    counting,
    counts_of,
    environment,
    kill,
    read_output,
    template_of,
)

COUNT, RATE = 4000, 4000
StartCluster = Callable[..., LocalCluster]


@pytest.mark.chaos
@pytest.mark.parametrize("format", ["parquet", "jsonl", "csv"])
def test_files_are_exact_and_whole_at_every_moment_when_a_task_manager_is_killed(
    start_cluster: StartCluster, tmp_path: Path, format: str
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    env, out = environment(), tmp_path / "out"
    counting(env, COUNT, RATE).sink_to(FileSink(str(out), format))
    with Reader(out, format, counted(COUNT)) as reader:
        job = start_cluster().submit(env)
        witness = Witness(job)
        witness.checkpoints(chance.randint(1, 5))
        time.sleep(chance.uniform(0, 0.05))
        kill(chance.choice(list(witness.pids(2).values())))
        details = job.wait(timeout=60)
    assert details.restarts == 1
    assert read_output(out, format) == counted(COUNT)
    assert reader.problems == []
    assert reader.reads
    assert all_names(out) == set()


@pytest.mark.chaos
def test_collected_records_are_exact_when_a_task_manager_is_killed(start_cluster: StartCluster) -> None:
    env = environment()
    counting(env, COUNT, RATE).collect(name="all")
    job = start_cluster().submit(env)
    witness = Witness(job)
    witness.checkpoints(3)
    kill(witness.pids(2)[1])
    assert job.wait(timeout=60).restarts == 1
    assert counts_of(job.results("all")) == counted(COUNT)
