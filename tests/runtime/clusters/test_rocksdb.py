"""state_backend="rocksdb" and local_recovery on real processes: exact through kills."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from understudy import LocalCluster

from .jobs import WAIT_S, Counting, Gate, Heavy, Witness, counted, counting, counts_of, environment

COUNT, RATE = 3000, 1500


@pytest.mark.chaos
@pytest.mark.parametrize("backend", ["rocksdb", pytest.param("filesystem", marks=pytest.mark.slow)])
def test_records_are_exact_when_a_task_manager_is_killed_and_reads_its_local_copies(
    shared_cluster: LocalCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture, backend: str
) -> None:
    caplog.set_level(logging.INFO, logger="understudy")
    local = tmp_path / "local"
    env = environment(state_backend=backend, state_dir=str(local), local_recovery=True)
    gate = Gate(tmp_path)
    counting(env, COUNT, RATE, Heavy if backend == "filesystem" else Counting, gate=gate).collect(name="all")
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(3)
    assert list(local.iterdir())
    witness.kill(witness.pids(2)[1])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert counts_of(job.results("all")) == counted(COUNT)
    assert any("restored from the local copy" in record.getMessage() for record in caplog.records)


@pytest.mark.chaos
@pytest.mark.slow
def test_records_are_exact_through_many_kills_and_a_rescale(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    count, found = 12_000, []
    settings: dict[str, Any] = {"state_backend": "rocksdb", "checkpoint_dir": str(tmp_path / "checkpoints")}
    savepoint = None
    for run, parallelism in enumerate((2, 1, 2)):
        env, gate = environment(parallelism=parallelism, **settings), Gate(tmp_path / f"{run}")
        os.makedirs(tmp_path / f"{run}")
        counting(env, count, 3000, gate=gate).collect(name="all")
        job = shared_cluster.submit(env, from_savepoint=savepoint)
        witness = Witness(job)
        for kills in range(1, 4):
            witness.checkpoints(3 * kills)
            witness.kill(witness.pids(parallelism)[0])
        if parallelism == 2 and found:
            gate.open()
            job.wait(timeout=WAIT_S)
        else:
            witness.checkpoints(10)
            savepoint = job.stop_with_savepoint().result(timeout=WAIT_S)
            job.wait(timeout=WAIT_S)
        found += job.results("all")
    assert counts_of(found) == counted(count)
