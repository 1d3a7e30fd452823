"""From an outlet to one reader: rows a second of what is committed, and the time from a commit to the reader."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np

from .data import Dataset
from .measure import measure
from .report import finish, over_cases, shared_options
from .side import Order

WORKLOAD = "outlet"
KINDS = ("columns", "records")
ROWS = {"columns": 10_000_000, "records": 2_000_000}
PERCENTILES = {"p50_ms": 50.0, "p99_ms": 99.0, "max_ms": 100.0}


RATE = 10_000
PACED_SECONDS = 5
"""Of the job whose reader follows it."""


def check(read: dict[str, Any], rows: int, paced_rows: int) -> list[str]:
    """Each row once, and in one order for both readers of one outlet. `read`: what they say of what they took."""
    problems = []
    for name, number in (("fast", rows), ("following", paced_rows), ("again", paced_rows)):
        wanted = {"rows": number, "sum": number * (number - 1) // 2, "distinct": number}
        found = {key: read[name][key] for key in wanted}
        if found != wanted:
            problems.append(f"the {name} reader took {found}, wanted {wanted}")
    if read["following"]["order"] != read["again"]["order"]:
        problems.append("two readers took the rows in two orders")
    return problems


def run(kind: str, rows: int) -> tuple[dict[str, Any], list[str]]:
    """Two jobs: as fast as can be, and paced."""
    paced = {"rate": RATE, "paced_rows": RATE * PACED_SECONDS}
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        out = Path(name)
        order = Order(WORKLOAD, Dataset(out, 0, 0), out, {"kind": kind, "rows": rows, **paced})
        measured = measure([sys.executable, "-m", "benchmarks.sides.outlet", order.to_argument()])
    said = measured.said
    problems = [f"{kind}: {problem}" for problem in check(said, rows, paced["paced_rows"])]
    lags_ms = said["lags_ms"]
    case = {
        "kind": kind,
        "rows": rows,
        "rows_per_s": round(rows / measured.seconds),
        "written_per_s": round(rows / said["job_s"]),
        "batches": said["fast"]["batches"],
        "commits": len(lags_ms),
        **{name: round(float(np.percentile(lags_ms, at)), 2) for name, at in PERCENTILES.items() if lags_ms},
        "wall_s": round(measured.wall_s, 2),
        "peak_rss_mb": round(measured.peak_rss_mb),
    }
    click.echo(f"{kind:>10}  {case['rows_per_s']:,} rows/s  {case.get('p50_ms')} ms from commit to reader", err=True)
    return case, problems


@click.command(WORKLOAD)
@click.option("--kinds", default=",".join(KINDS), show_default=True, help="Comma-separated.")
@click.option("--rows", type=click.IntRange(1), help="Default: enough for some seconds, see ROWS.")
@shared_options
def outlet(kinds: str, rows: int | None, runs: int, json_path: str | None) -> None:
    """What one reader takes from an outlet."""
    results = [run(kind, rows or ROWS[kind]) for _ in range(runs) for kind in kinds.split(",")]
    problems = [problem for _, found in results for problem in found]
    cases = [case for case, _ in results]
    figures = {**over_cases(cases), "runs": runs, "cases": cases, "checked": not problems}
    finish({"workload": WORKLOAD, "cluster": "local"}, figures, problems, json_path)
