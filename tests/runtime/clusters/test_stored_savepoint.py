"""Savepoints that earlier versions stored (`stored/`, taken by `stored_job`) restore in this one.

0.1.0: taken at commit f536b7c, before modules moved to other folders.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import cloudpickle
import pytest

from understudy import LocalCluster

from . import stored_job
from .stored_job import COUNT, KEYS, job

cloudpickle.register_pickle_by_value(stored_job)

STORED = Path(__file__).parent / "stored"


def indices_of(key: int) -> list[int]:
    return list(range(key, COUNT, KEYS))


@pytest.mark.parametrize(("parallelism", "backend"), [(2, "filesystem"), (3, "filesystem"), (3, "rocksdb")])
@pytest.mark.parametrize("version", [folder.name for folder in sorted(STORED.iterdir())])
def test_a_stored_savepoint_restores(version: str, parallelism: int, backend: str, tmp_path: Path) -> None:
    """Every kind of state holds what came before the savepoint, and each record after it comes once."""
    folder = tmp_path / "checkpoints"
    shutil.copytree(STORED / version, folder)
    (pointer,) = (folder / "savepoints").iterdir()
    with LocalCluster(parallelism) as cluster:
        restored = cluster.submit(job(folder, parallelism, COUNT, None, backend), from_savepoint=pointer)
        restored.wait(timeout=120)
        results = {name: restored.results(name) for name in ("kinds", "machine code", "columns", "notes")}
    expected = {key: indices_of(key) for key in range(KEYS)}
    assert sorted(results["kinds"]) == [
        (key, len(of_key), of_key, of_key, sum(of_key), (len(of_key), of_key[-1])) for key, of_key in expected.items()
    ]
    assert sorted(results["machine code"]) == [(key, len(of_key), sum(of_key)) for key, of_key in expected.items()]
    assert sorted(tuple(row) for row in results["columns"]) == [
        (key, len(of_key), sum(of_key)) for key, of_key in expected.items()
    ]
    noted = [index for part in results["notes"] for index in part]
    assert sorted(noted) == list(range(0, COUNT, 100))
