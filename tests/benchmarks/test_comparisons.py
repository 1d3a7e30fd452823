"""keyed-aggregate and stateful-function: right answers pass, wrong ones are noticed, and our sides run."""

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
from click.testing import CliRunner

pytest.importorskip("benchmarks.contest", reason="run from the root of the checkout")

from benchmarks import contest, growth, keyed_aggregate, stateful_function, timers, windows
from benchmarks.data import Dataset, dataset, raw_pairs, read, whole_halves
from benchmarks.digest import combined, digest, digest_of_rows
from benchmarks.kafka import kafka
from benchmarks.measure import Measured, SideFailed, measure
from benchmarks.peers_known import choose
from benchmarks.report import over_cases
from benchmarks.side import Order, write_totals
from benchmarks.timed_data import SIZE_MS, TIMERS, Answer, right_answer, timed_dataset

from ..prepared import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parent.parent.parent
ROWS, KEYS = 3_000, 50


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return dataset(tmp_path_factory.mktemp("cache"), ROWS, KEYS)


def order(data: Dataset, out: Path, workload: str = "keyed-aggregate", **options: Any) -> Order:
    return Order(workload, data, out, options)


def measured(**said: Any) -> Measured:
    return Measured({"seconds": 1.0, "versions": {}, **said}, 0.0, 2.0, 100.0, 50.0)


# -- data


def test_the_same_rows_are_made_each_time(data: Dataset, tmp_path: Path) -> None:
    again = dataset(tmp_path, ROWS, KEYS)
    assert [path.read_bytes() for path in again.files] == [path.read_bytes() for path in data.files]


def test_all_rows_of_a_key_are_in_one_half(data: Dataset) -> None:
    first, second = (np.concatenate([keys for keys, _ in read(data.half(half))]) for half in (0, 1))
    assert len(first) == len(second) == ROWS // 2
    assert not set(first.tolist()) & set(second.tolist())


def test_halves_are_the_same_row_groups(data: Dataset) -> None:
    for half, path in enumerate(sorted(whole_halves(data).iterdir())):
        files = data.half(half)
        assert pq.read_table(path).equals(pa.concat_tables(map(pq.read_table, files)))
        assert pq.ParquetFile(path).num_row_groups == len(files)


def test_raw_pairs_are_the_same_rows(data: Dataset) -> None:
    for half, path in enumerate(sorted(raw_pairs(data).iterdir())):
        pairs = np.fromfile(path, dtype="<i8").reshape(-1, 2)
        assert np.array_equal(pairs.T, np.concatenate([np.array(part) for part in read(data.half(half))], axis=1))


def test_an_odd_number_of_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="even number"):
        dataset(tmp_path, 7)


# -- keyed-aggregate's check


def test_the_right_totals_pass_in_any_order(data: Dataset, tmp_path: Path) -> None:
    write_totals(order(data, tmp_path), *data.totals[::-1].T)
    assert keyed_aggregate.check(order(data, tmp_path), measured()) == []


@pytest.mark.parametrize("column", [0, 1, 2])
def test_one_wrong_number_is_noticed(data: Dataset, tmp_path: Path, column: int) -> None:
    wrong = data.totals.copy()
    wrong[7, column] += 1
    write_totals(order(data, tmp_path), *wrong.T)
    assert len(keyed_aggregate.check(order(data, tmp_path), measured())) == 1


def test_a_missing_key_and_a_missing_answer_are_noticed(data: Dataset, tmp_path: Path) -> None:
    assert "no answer" in keyed_aggregate.check(order(data, tmp_path), measured())[0]
    write_totals(order(data, tmp_path), *data.totals[1:].T)
    assert "keys" in keyed_aggregate.check(order(data, tmp_path), measured())[0]


# -- stateful-function's check


def outputs_of(data: Dataset) -> list[tuple[int, int, int, int]]:
    """Computed one by one, as a user would."""
    seen: dict[int, tuple[int, int, int]] = {}
    rows = []
    for keys, values in read(data.files):
        for key, value in zip(keys.tolist(), values.tolist(), strict=True):
            count, last, maximum = seen.get(key, (0, 0, value))
            seen[key] = count + 1, value, max(maximum, value)
            rows.append((key, count + 1, value - last, max(maximum, value)))
    return rows


def test_the_right_outputs_pass_in_any_order_and_division(data: Dataset, tmp_path: Path) -> None:
    rows = outputs_of(data)[::-1]
    parts = combined([digest_of_rows(rows[:1000]), digest_of_rows(rows[1000:]), digest_of_rows([])])
    said = measured(outputs=ROWS, digest=f"{parts:016x}")
    assert stateful_function.check(order(data, tmp_path), said) == []


def test_wrong_outputs_are_noticed(data: Dataset, tmp_path: Path) -> None:
    rows = outputs_of(data)
    changed = [(rows[0][0], rows[0][1], rows[0][2] + 1, rows[0][3]), *rows[1:]]
    doubled = [rows[1], *rows[1:]]
    for wrong in (changed, doubled):
        said = measured(outputs=ROWS, digest=f"{digest_of_rows(wrong):016x}")
        assert "digest" in stateful_function.check(order(data, tmp_path), said)[0]
    assert "2999 outputs" in stateful_function.check(order(data, tmp_path), measured(outputs=2999, digest=""))[0]


def test_the_digest_is_that_of_the_peers_arithmetic() -> None:
    """One row, by hand, modulo 2^64."""
    multipliers = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)
    row = (3, -5, 7, -11)
    mixed = sum(number * by for number, by in zip(row, multipliers, strict=True)) % 2**64
    mixed = (mixed ^ (mixed >> 32)) * 0xBF58476D1CE4E5B9 % 2**64
    assert digest(*np.array([row]).T) == digest_of_rows([row]) == mixed ^ (mixed >> 29)


# -- timers


def test_the_answer_of_timers_is_that_of_one_by_one(tmp_path: Path) -> None:
    data = timed_dataset(tmp_path, ROWS, KEYS, rate=30)
    ends: dict[int, set[int]] = {}
    for path in data.files:
        table = pq.read_table(path)
        for key, time_ms in zip(table["key"].to_pylist(), table["time"].to_pylist(), strict=True):
            ends.setdefault(key, set()).add(time_ms - time_ms % SIZE_MS + SIZE_MS - 1)
    rows = []
    for key, found in ends.items():
        before = 0
        for number, end in enumerate(sorted(found), 1):
            rows.append((key, end, number, end - before))
            before = end
    assert right_answer(data, TIMERS) == Answer(len(rows), f"{digest_of_rows(rows):016x}")


@pytest.mark.processes
@pytest.mark.parametrize("is_compiled", [False, True])
def test_our_side_of_timers_gives_the_right_answer(tmp_path: Path, is_compiled: bool) -> None:
    if is_compiled:
        pytest.importorskip("numba")
    data = timed_dataset(tmp_path, ROWS, KEYS, rate=30)
    (score,) = contest.compete(TIMERS, [timers.ours(data, compiled=is_compiled)], 1, windows.check)
    assert score.problems == []
    assert score.report()["checked"] is True


# -- the comparison


def test_a_report_has_medians_and_ratios(data: Dataset) -> None:
    ours, peer, limit = (
        contest.Score(contest.Side(name, [], data, answers=answers), [measured()] * 3)
        for name, answers in (("understudy", True), ("peer", True), ("drained", False))
    )
    slow = Measured({"seconds": 4.0, "versions": {"peer": "1"}}, 0.0, 5.0, 400.0, 50.0)
    peer.measured = [slow] * 3
    report = contest.compared([ours, peer, limit])
    assert report["rows_per_s"] == ROWS
    assert report["checked"] is True
    assert report["peers"]["peer"]["ratio"] == 4.0
    assert report["peers"]["peer"]["memory_ratio"] == 0.25
    assert report["peers"]["peer"]["versions"] == {"peer": "1"}
    assert report["peers"]["drained"]["checked"] is False
    assert {"rows", "rows_per_s", "wall_s", "peak_rss_mb", "runs", "checked"} <= set(report["peers"]["peer"])


def test_a_report_of_cases_says_what_they_took_together() -> None:
    cases = [
        {"rows": 10, "rows_per_s": 5, "wall_s": 1.5, "peak_rss_mb": 100},
        {"rows": 30, "rows_per_s": 15, "wall_s": 2.5, "peak_rss_mb": 300},
        {"checked": False},
    ]
    assert over_cases(cases) == {"rows": 40, "rows_per_s": 10, "wall_s": 4.0, "peak_rss_mb": 300}
    assert over_cases([])["rows_per_s"] is None


def test_a_growth_report_is_relative_to_the_first_value(data: Dataset) -> None:
    scores = [contest.Score(side, [measured()] * 2) for side in growth_sides(data)]
    scores[1].measured = [Measured({"seconds": 2.0, "versions": {}}, 0.0, 5.0, 400.0, 50.0)] * 2
    cases = growth.cases_of("chain", scores)
    assert [case["relative"] for case in cases] == [1.0, 0.5, 1.0]
    assert [case["value"] for case in cases] == list(growth.AXES["chain"])
    assert {"rows", "rows_per_s", "wall_s", "peak_rss_mb", "runs", "checked"} <= set(cases[0])


def growth_sides(data: Dataset) -> list[contest.Side]:
    return [contest.Side(f"chain={value}", [], data) for value in growth.AXES["chain"]]


def test_a_peer_that_fails_is_reported_and_not_checked(data: Dataset) -> None:
    failing = contest.Side("failing", [sys.executable, "-c", "raise SystemExit('it broke')"], data)
    (score,) = contest.compete("keyed-aggregate", [failing], 2, keyed_aggregate.check)
    assert len(score.problems) == 1
    assert "it broke" in score.problems[0]
    assert score.report()["checked"] is False


def test_a_side_that_takes_too_long_is_ended() -> None:
    with pytest.raises(SideFailed, match="did not end in time"):
        measure([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.3)


def test_peers_are_chosen_by_name_and_workload() -> None:
    assert [peer.name for peer in choose("flink,duckdb", "keyed-aggregate", "local")] == ["flink", "duckdb"]
    assert [peer.name for peer in choose("flink,flink-pairs", "timers", "local")] == ["flink", "flink-pairs"]
    assert [peer.name for peer in choose("pyflink", "stateful-function", "local")] == ["pyflink", "pyflink-thread"]
    assert [peer.name for peer in choose("bytewax", "stateful-function", "local")] == ["bytewax", "bytewax-batch"]
    assert [peer.name for peer in choose("bytewax", "keyed-aggregate", "local")] == ["bytewax"]
    assert [peer.name for peer in choose("flink,spark", "keyed-aggregate", "spark")] == ["spark"]
    with pytest.raises(Exception, match="nonsense"):
        choose("nonsense", "keyed-aggregate", "local")


def test_an_unknown_peer_of_kafka_is_refused_before_a_broker_starts() -> None:
    refused = CliRunner().invoke(kafka, ["--peers", "bytewax,nonsense"])
    assert refused.exit_code == 2
    assert "wanted some of bytewax,quix, found 'nonsense'" in refused.output


# -- our sides


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [["keyed-aggregate"], ["keyed-aggregate", "--emit", "updates"], ["stateful-function", "--compiled"]],
    ids=" ".join,
)
def test_it_runs_as_a_command(arguments: list[str], tmp_path: Path) -> None:
    report = _report([*arguments, "--rows", "20000", "--keys", "500", "--data-dir", str(tmp_path)], tmp_path)
    assert report["rows"] == 20_000
    assert report["rows_per_s"] > 0
    assert report["peak_rss_mb"] > 0
    assert {"workload", "wall_s", "runs", "commit", "versions", "machine"} <= set(report)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["latency", "--rates", "2000", "--seconds", "5"],
        ["checkpoint", "--keys", "1000", "--rows", "200000"],
        ["checkpoint", "--keys", "1000", "--rows", "50000", "--state", "records"],
        ["first-output"],
        ["outlet", "--rows", "200000"],
    ],
    ids=" ".join,
)
def test_the_other_workloads_run_as_commands(arguments: list[str], tmp_path: Path) -> None:
    _report(arguments, tmp_path)


def _report(arguments: list[str], folder: Path) -> Any:
    path = folder / "report.json"
    command = [sys.executable, "-m", "benchmarks", *arguments, "--json", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(path.read_text())
    assert report["checked"] is True
    assert report["problems"] == []
    assert {"workload", "rows", "rows_per_s", "wall_s", "peak_rss_mb", "runs", "commit", "versions"} <= set(report)
    return report
