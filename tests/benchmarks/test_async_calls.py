"""The benchmark of coroutines: its answers, judged, and its sides on real processes."""

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

pytest.importorskip("benchmarks.async_calls", reason="run from the root of the checkout")

from benchmarks import async_calls, contest
from benchmarks.data import Dataset
from benchmarks.digest import digest_of_rows
from benchmarks.even_data import even_dataset, even_pairs, numbered_answer, totals_answer
from benchmarks.measure import Measured
from benchmarks.peers_known import ASYNC, Peer, choose
from benchmarks.side import Order
from benchmarks.venvs import Environment

from ..prepared import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parent.parent.parent
ROWS, KEYS = 1003, 100
WAITING = async_calls.Waiting(wait_ms=1, in_flight=50)
KILLED = {"rows": ROWS, "keys": KEYS, "kills": 2}


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    return even_dataset(tmp_path, ROWS, KEYS)


def rows_of(data: Dataset) -> list[tuple[int, int]]:
    tables = [pq.read_table(path) for path in data.files]
    return [pair for each in tables for pair in zip(each["key"].to_pylist(), each["value"].to_pylist(), strict=True)]


def judged(data: Dataset, rows: list[tuple[int, int, int, int]], **more: Any) -> list[str]:
    said = {"outputs": ROWS, "digest": f"{digest_of_rows(rows):016x}", **more}
    return async_calls.check(Order(ASYNC, data, data.folder), Measured(said, 0.0, 1.0, 1.0, 1.0))


def test_the_answers_are_those_of_one_by_one(data: Dataset) -> None:
    numbers: dict[int, int] = {}
    sums: dict[int, int] = {}
    outputs = []
    for key, value in rows_of(data):
        numbers[key], sums[key] = numbers.get(key, 0) + 1, sums.get(key, 0) + value
        outputs.append((key, numbers[key], value, 0))
    totals = [(key, number, sums[key], 0) for key, number in numbers.items()]
    assert len(outputs) == ROWS
    assert numbered_answer(data) == digest_of_rows(outputs)
    assert totals_answer(data) == digest_of_rows(totals)
    assert judged(data, outputs) == judged(data, totals, answers="totals") == []
    assert np.fromfile(even_pairs(data) / "all.bin", "<i8").reshape(-1, 2).tolist() == [
        list(each) for each in rows_of(data)
    ]


def test_a_wrong_number_or_a_missing_record_is_noticed(data: Dataset) -> None:
    right = [(value % KEYS, value // KEYS + 1, value, 0) for value in range(ROWS)]
    assert judged(data, right) == []
    key, number, value, _ = right[500]
    assert "digest" in judged(data, [*right[:500], (key, number + 1, value, 0), *right[501:]])[0]
    assert "digest" in judged(data, [*right[:500], right[499], *right[501:]])[0]
    assert "1002 outputs" in judged(data, right, outputs=ROWS - 1)[0]


def test_wrong_output_after_kills_is_noticed() -> None:
    ids = np.arange(ROWS)
    right = {"id": ids, "key": ids % KEYS, "number": ids // KEYS + 1}
    said = {"killed": 2, "begun": ROWS + 7}
    assert async_calls.check_killed(said, pa.table(right), KILLED) == []
    twice = right | {"number": np.where(ids == 5, 2, right["number"])}
    assert "numbered" in async_calls.check_killed(said, pa.table(twice), KILLED)[0]
    assert "only 1 of 2 kills" in async_calls.check_killed(said | {"killed": 1}, pa.table(right), KILLED)[0]
    assert "were begun" in async_calls.check_killed(said | {"begun": 3}, pa.table(right), KILLED)[0]


def test_a_peer_that_cannot_be_had_is_named_and_fails_nothing(data: Dataset, tmp_path: Path) -> None:
    ready = tmp_path / "venvs" / "ready"
    (ready / "bin").mkdir(parents=True)
    (ready / "bin" / "python").symlink_to(sys.executable)
    (ready / ".installed").write_text("")
    environment = Environment("ready", ())
    with_api, without = (
        Peer(name, name, "peer", environment, (ASYNC,), "", needs=needs)
        for name, needs in (("with", "import asyncio"), ("without", "import asyncio; asyncio.unheard_of"))
    )
    sides, missing = async_calls.peer_sides([with_api, without], data, tmp_path, WAITING)
    assert [side.name for side in sides] == ["with"]
    assert list(missing) == ["without"]
    assert "unheard_of" in missing["without"]


def test_the_peers_are_those_with_coroutines() -> None:
    assert [peer.module for peer in choose("duckdb,flink,pyflink,pathway", ASYNC, "local")] == [
        "pyflink_async",
        "pathway",
    ]


@pytest.mark.processes
def test_our_sides_and_bare_asyncio_give_the_right_answer(data: Dataset) -> None:
    sides = [*async_calls.waiting_sides(data, WAITING), *async_calls.busy_sides(data)]
    scores = contest.compete(ASYNC, sides, 1, async_calls.check)
    assert contest.problems_of(scores) == []
    assert all(score.report()["checked"] for score in scores)
    assert set(contest.compared(scores[:2])["peers"]["bare-asyncio"]) > {"ratio", "cpu_ratio"}
    assert "threads" in async_calls.details(scores[0])


@pytest.mark.chaos
@pytest.mark.slow
def test_it_runs_as_a_command(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    sizes = ["--rows", "20000", "--busy-rows", "20000", "--keys", "2000", "--in-flight", "1000", "--kills", "1"]
    command = [sys.executable, "-m", "benchmarks", "async", *sizes, "--data-dir", str(tmp_path), "--json", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(path.read_text())
    assert report["checked"] is report["never_waits"]["checked"] is report["killed"]["checked"] is True
    assert report["problems"] == []
    assert report["killed"]["killed"] == 1
    assert {"workload", "rows", "rows_per_s", "wall_s", "peak_rss_mb", "runs", "commit", "versions"} <= set(report)
