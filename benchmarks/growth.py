"""How the throughput of keyed-aggregate changes with keys, parallelism, operators in the chain, and batch size."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .contest import Score, Side, compete, problems_of
from .data import dataset
from .keyed_aggregate import check
from .report import CACHE, finish, over_cases, shared_options

WORKLOAD = "growth"
KEYS = 100_000
AXES: dict[str, tuple[int, ...]] = {
    "keys": (1_000, 100_000, 1_000_000, 10_000_000),
    "task_managers": (1, 2, 4),
    "chain": (0, 4, 16),
    "batch_rows": (1_024, 8_192, 65_536, 262_144),
}
COMMAND = (sys.executable, "-m", "benchmarks.sides.keyed_aggregate")


def sides(axis: str, rows: int, data_dir: Path) -> list[Side]:
    """One per value of the axis; all else is as in keyed-aggregate."""
    made = []
    for value in AXES[axis]:
        keys = value if axis == "keys" else KEYS
        options: dict[str, Any] = {} if axis == "keys" else {axis: value}
        made.append(Side(f"{axis}={value}", COMMAND, dataset(data_dir, rows, keys), options))
    return made


def cases_of(axis: str, scores: list[Score]) -> list[dict[str, Any]]:
    """The figures of each value, and its throughput relative to the first value's."""
    reports = [score.report() for score in scores]
    first = reports[0].get("rows_per_s")
    return [
        {"axis": axis, "value": value, "relative": round(report["rows_per_s"] / first, 3)}
        | {name: report[name] for name in ("rows", "runs", "rows_per_s", "seconds", "wall_s", "peak_rss_mb", "checked")}
        for value, report in zip(AXES[axis], reports, strict=True)
        if first and "rows_per_s" in report
    ]


@click.command(WORKLOAD)
@click.option("--rows", default=20_000_000, show_default=True, type=click.IntRange(2))
@click.option("--axes", default=",".join(AXES), show_default=True, help="Comma-separated.")
@click.option("--data-dir", default=CACHE, type=click.Path(file_okay=False, path_type=Path))
@shared_options
def growth(rows: int, axes: str, data_dir: Path, runs: int, json_path: str | None) -> None:
    """Throughput against keys, parallelism, chain length and batch size."""
    cases, problems = [], []
    for axis in axes.split(","):
        scores = compete(WORKLOAD, sides(axis, rows + rows % 2, data_dir), runs, check)
        cases += cases_of(axis, scores)
        problems += problems_of(scores)
    figures = {**over_cases(cases), "rows": rows, "runs": runs, "cases": cases, "checked": not problems}
    finish({"workload": WORKLOAD, "cluster": "local"}, figures, problems, json_path)
