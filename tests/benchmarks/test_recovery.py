"""A benchmark that does not notice a wrong answer is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy.messages import (
    CheckpointCompleted,
    CheckpointId,
    ExecutionAttemptId,
    FirstBatchProcessed,
    JobId,
    SubtaskIndex,
    VertexId,
)
from understudy.runtime.chaos.saboteur import Recovery

pytest.importorskip("benchmarks.recovery", reason="run from the root of the checkout")

from benchmarks import recovery as benchmark
from benchmarks.measure import Measured
from benchmarks.sides import recovery as side

from ..prepared import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parent.parent.parent
KEYS = 50
ROWS = 3 * KEYS + 7
STEPS = {"lost": 10, "registered": 30, "first_batch": 50, "all": 60}
JOB, HOLDER, OTHER = JobId("job"), VertexId("holder"), VertexId("other")


def options(kills: int = 1, keys: int = KEYS, state: str = "records") -> Any:
    return benchmark.Options("local", "", state, keys, kills, 1)


def said(killed: int = 1, recovered: int = 1) -> dict[str, Any]:
    return {
        "seconds": 3.0,
        "killed": killed,
        "recoveries": [STEPS] * recovered,
        "checkpoint_ms": [7, 9],
        "state_bytes": 1000,
        "versions": {"understudy": "1"},
    }


def outcome(problems: list[str]) -> Any:
    return benchmark.Outcome(Measured(said(), 0.0, 4.0, 200.0, 100.0), problems)


def right() -> dict[str, Any]:
    ids = np.arange(ROWS)
    return {"id": ids, "key": ids % KEYS, "number": ids // KEYS + 1}


def updates() -> dict[str, Any]:
    """What a columnar job emits if every record makes an update of its own."""
    records = right()
    sums = [sum(range(one % KEYS, one + 1, KEYS)) for one in range(ROWS)]
    return {"key": records["key"], "number": records["number"], "ids": np.array(sums)}


def found(columns: dict[str, Any]) -> list[str]:
    judge = benchmark.check_records if "id" in columns else benchmark.check_columns
    problems: list[str] = judge(pa.table(columns), ROWS, KEYS)
    return problems


@pytest.mark.parametrize("answer", [right, updates])
def test_an_exact_answer_is_right_in_any_order(answer: Any) -> None:
    order = np.random.default_rng(1).permutation(ROWS)
    assert found({name: column[order] for name, column in answer().items()}) == []


def test_a_wrong_record_is_noticed() -> None:
    ids, keys, numbers = right().values()
    wrong = {
        "lost": (ids[1:], keys[1:], numbers[1:]),
        "doubled": tuple(np.append(column, column[0]) for column in right().values()),
        "lost and doubled": tuple(np.append(column[1:], column[5]) for column in right().values()),
        "wrong key": (ids, np.roll(keys, 1), numbers),
        "counted twice": (ids, keys, np.where(ids == 5, 2, numbers)),
        "counted from a later state": (ids, keys, np.where(keys == 5, numbers + 1, numbers)),
    }
    for what, columns in wrong.items():
        assert len(found(dict(zip(right(), columns, strict=True)))) == 1, what


def test_a_wrong_count_or_sum_of_a_key_is_noticed() -> None:
    keys, numbers, sums = updates().values()
    last = (keys == 5) & (numbers == numbers[keys == 5].max())
    wrong = {
        "key lost": (keys[keys != 5], numbers[keys != 5], sums[keys != 5]),
        "last update lost": (keys[~last], numbers[~last], sums[~last]),
        "told twice": tuple(np.append(column, column[0]) for column in updates().values()),
        "counted from a later state": (keys, np.where(last, numbers + 1, numbers), sums),
        "another record's sum": (keys, numbers, np.where(last, sums + 1, sums)),
    }
    for what, columns in wrong.items():
        assert len(found(dict(zip(updates(), columns, strict=True)))) == 1, what


def test_kills_that_did_not_happen_and_recoveries_that_did_not_come_are_noticed() -> None:
    answer = pa.table(right())
    wanted = options(kills=2)
    exact = pa.table({name: np.resize(column, 0) for name, column in right().items()})
    assert "only 1 of 2 kills" in benchmark.check(said(), answer, wanted)[0]
    assert "0 recoveries from 1 kills" in benchmark.check(said(recovered=0), exact, options())[0]


def test_the_report_gives_each_recovery_and_its_phases() -> None:
    case = benchmark.case_of([outcome([]), outcome([])], options())
    assert case["recovery_ms"] == [50, 50]
    assert (case["median_ms"], case["min_ms"], case["max_ms"], case["median_ms_to_all"]) == (50, 50, 50, 60)
    assert case["phases_ms"] == {"detect": 10, "restart": 20, "restore": 20}
    assert (case["kills"], case["state_bytes"], case["checkpoint_ms"]) == (2, 1000, 8)
    report = benchmark.report([case], 2, {"understudy": "1"})
    assert report["cases"] == [case]
    assert {"rows", "rows_per_s", "wall_s", "peak_rss_mb", "runs", "recovery_ms", "median_ms"} <= set(report)
    assert report["checked"] is True


def test_one_wrong_case_leaves_the_whole_unchecked() -> None:
    cases = [benchmark.case_of([outcome(problems)], options()) for problems in ([], ["wrong"])]
    assert [case["checked"] for case in cases] == [True, False]
    assert benchmark.report(cases, 1, {})["checked"] is False


def test_many_keys_come_first_and_once() -> None:
    few, many = options(keys=1_000), options(keys=100_000)
    assert (few.fill, many.fill) == (0, 100_000)
    assert many.rows > 100_000 + few.rows
    batch = side.rows_of(many.keys)(0, many.fill)
    assert batch["key"].to_pylist() == list(range(100_000))


# -- what the saboteur hears


class Heard:
    def __init__(self) -> None:
        self.events: list[Any] = []

    def on_event(self, event: Any) -> None:
        self.events.append(event)


def completed(begun_ms: int, ended_ms: int) -> CheckpointCompleted:
    return CheckpointCompleted(JOB, CheckpointId(1), ended_ms - begun_ms, 10, ended_ms, "")


def first_batch(vertex: VertexId, subtask: int, attempt: int, at_ms: int) -> FirstBatchProcessed:
    return FirstBatchProcessed(JOB, ExecutionAttemptId("a"), vertex, SubtaskIndex(subtask), attempt, at_ms)


def test_a_checkpoint_begun_before_the_state_was_whole_calls_for_no_kill() -> None:
    heard = Heard()
    witness = side.Witness(heard)
    events = [completed(50, 60), completed(99, 120), completed(101, 120)]
    witness.on_event(events[0])
    witness.whole(HOLDER, 100)
    for event in events[1:]:
        witness.on_event(event)
    assert heard.events == witness.checkpoints == events[2:]


def test_only_tasks_that_hold_state_have_recovered() -> None:
    heard = Heard()
    witness = side.Witness(heard)
    witness.whole(HOLDER, 100)
    events = [first_batch(OTHER, 0, 1, 205), first_batch(HOLDER, 1, 1, 240), first_batch(HOLDER, 0, 1, 230)]
    for event in events:
        witness.on_event(event)
    assert heard.events == events[1:]
    recovery = Recovery(killed_ms=200, lost_ms=210, registered_ms=220, first_batch_ms=240)
    steps = side.steps_of(recovery, witness.first_batches)
    assert steps == {"lost": 10, "registered": 20, "first_batch": 40, "all": 40}


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--state", "columns"], ["--keys", "1000,30000"]], ids=" ".join)
def test_it_runs_as_a_command(arguments: list[str], tmp_path: Path) -> None:
    report_path = tmp_path / "report.json"
    command = [sys.executable, "-m", "benchmarks", "recovery", "--kills", "1", *arguments, "--json", str(report_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(report_path.read_text())
    assert report["checked"] is True
    assert report["problems"] == []
    assert all(len(case["recovery_ms"]) == case["kills"] == 1 for case in report["cases"])
    assert {"workload", "rows", "wall_s", "peak_rss_mb", "runs", "commit", "versions", "machine"} <= set(report)
