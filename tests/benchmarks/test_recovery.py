"""A benchmark that does not notice a wrong answer is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.runtime.cli.saboteur import Recovery

benchmark: Any = pytest.importorskip("benchmarks.recovery", reason="run from the root of the checkout")

ROOT = Path(__file__).resolve().parent.parent.parent
ROWS = 3 * benchmark.KEYS
RECOVERED = Recovery(killed_ms=100, lost_ms=110, registered_ms=130, first_batch_ms=150)


def options(kills: int = 1) -> Any:
    return benchmark.Options("local", "", kills, 1)


def outcome(folder: Path, ids: Any, keys: Any, numbers: Any, killed: int = 1, recovered: int = 1) -> Any:
    table = pa.table({"id": ids, "key": keys, "number": numbers}, schema=benchmark.COUNTED)
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / "part.parquet")
    return benchmark.Outcome(ROWS, killed, [RECOVERED] * recovered, folder)


def right() -> tuple[Any, Any, Any]:
    ids = np.arange(ROWS)
    return ids, ids % benchmark.KEYS, ids // benchmark.KEYS + 1


def test_an_exact_answer_is_right_in_any_order(tmp_path: Path) -> None:
    order = np.random.default_rng(1).permutation(ROWS)
    assert benchmark.check(outcome(tmp_path, *(column[order] for column in right())), options()) == []


def test_a_wrong_answer_is_noticed(tmp_path: Path) -> None:
    ids, keys, numbers = right()
    wrong = {
        "lost": (ids[1:], keys[1:], numbers[1:]),
        "doubled": tuple(np.append(column, column[0]) for column in right()),
        "lost and doubled": tuple(np.append(column[1:], column[5]) for column in right()),
        "wrong key": (ids, np.roll(keys, 1), numbers),
        "counted twice": (ids, keys, np.where(ids == 5, 2, numbers)),
        "counted from a later state": (ids, keys, np.where(keys == 5, numbers + 1, numbers)),
    }
    for what, columns in wrong.items():
        assert len(benchmark.check(outcome(tmp_path, *columns), options())) == 1, what


def test_kills_that_did_not_happen_and_recoveries_that_did_not_come_are_noticed(tmp_path: Path) -> None:
    assert "only 1 of 2 kills" in benchmark.check(outcome(tmp_path, *right()), options(kills=2))[0]
    assert "0 recoveries from 1 kills" in benchmark.check(outcome(tmp_path, *right(), recovered=0), options())[0]


def test_the_report_gives_each_recovery_and_its_phases(tmp_path: Path) -> None:
    report = benchmark.report([outcome(tmp_path, *right())], options(), 1.5, [])
    assert report["recovery_ms"] == [50]
    assert (report["median_ms"], report["min_ms"], report["max_ms"]) == (50, 50, 50)
    assert report["phases_ms"] == {"detect": 10, "restart": 20, "restore": 20}
    assert report["kills"] == 1
    assert report["checked"] is True
    assert {"commit", "versions", "machine", "seed", "wall_s", "workload", "cluster"} <= set(report)


@pytest.mark.chaos
@pytest.mark.slow
def test_it_runs_as_a_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "recovery", "--kills", "1", "--json", str(tmp_path / "report.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["checked"] is True
    assert len(report["recovery_ms"]) == report["kills"] == 1
    assert report["problems"] == []
