"""What checkpoints cost: their duration, pause and size, and the throughput with one a second against without."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import pyarrow.parquet as pq

from .data import Dataset
from .measure import Measured, SideFailed, measure
from .report import finish, over_cases, shared_options
from .side import Order

WORKLOAD = "checkpoint"
INTERVAL_MS = 1000
ROWS = {"columns": 200_000_000, "records": 15_000_000}
"""By kind of state. The first checkpoint costs more than the others, as memory is touched for the first time."""

VARIANTS = {"with": {"checkpoint_interval_ms": INTERVAL_MS}, "without": {"checkpoint_interval_ms": 0}}


def check(out: Path, keys: int, rows: int) -> list[str]:
    """Compare every key's count and sum with what they must be."""
    table = pq.read_table(out / "totals").sort_by("key")
    ids = np.arange(keys)
    counts = rows // keys + (ids < rows % keys)
    sums = counts * ids + keys * (counts * (counts - 1) // 2)
    found = [table[name].to_numpy() for name in ("count", "sum")]
    if len(found[0]) == keys and np.array_equal(found[0], counts) and np.array_equal(found[1], sums):
        return []
    return [f"the totals of {len(found[0])} keys are not those of {keys} keys and {rows} rows"]


def run(options: dict[str, Any]) -> tuple[Measured, list[float], list[str]]:
    """One job: what was measured, the pauses in seconds, and what is wrong."""
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        out = Path(name)
        order = Order(WORKLOAD, Dataset(out, 0, 0), out, options)
        measured = measure([sys.executable, "-m", "benchmarks.sides.checkpoint", order.to_argument()])
        problems = check(out, options["keys"], options["rows"])
        pauses = [float(pause) for path in out.glob("pauses-*.npy") for pause in np.load(path)]
    return measured, pauses, problems


def case_of(options: dict[str, Any], runs: int) -> tuple[dict[str, Any], list[str]]:
    """One number of keys on one backend: with and without checkpoints in turn, and once with a probe for the pause."""
    rates: dict[str, list[float]] = {name: [] for name in VARIANTS}
    problems: list[str] = []
    events: list[dict[str, Any]] = []
    all_measured: list[Measured] = []
    for _ in range(runs):
        for name, variant in VARIANTS.items():
            measured, _, found = run({**options, **variant, "probed": False})
            all_measured.append(measured)
            rates[name].append(options["rows"] / measured.seconds)
            problems += found
            events += measured.said["events"] if name == "with" else []
    measured, pauses, found = run({**options, **VARIANTS["with"], "probed": True})
    all_measured.append(measured)
    periodic = [one for one in events if not one["final"]] or events
    case = {
        **options,
        "rows_per_s": round(median(rates["with"])),
        "rows_per_s_without": round(median(rates["without"])),
        "ratio_to_without": round(median(rates["with"]) / median(rates["without"]), 3),
        "checkpoints": len(periodic),
        "duration_ms": median(one["duration_ms"] for one in periodic),
        "bytes": max(one["bytes"] for one in periodic),
        "pause_ms": round(median(pauses) * 1000, 2) if pauses else None,
        "max_pause_ms": round(max(pauses) * 1000, 2) if pauses else None,
        "wall_s": round(sum(one.wall_s for one in all_measured), 2),
        "peak_rss_mb": round(max(one.peak_rss_mb for one in all_measured)),
        "checked": not problems + found,
    }
    click.echo(f"{options['keys']:>12,} keys  {case['ratio_to_without']}  pause {case['pause_ms']} ms", err=True)
    return case, problems + found


@click.command(WORKLOAD)
@click.option("--keys", default="100000,1000000,10000000", show_default=True, help="Comma-separated.")
@click.option("--backends", default="filesystem", show_default=True, help="Comma-separated: memory,filesystem.")
@click.option("--rows", type=click.IntRange(1), help="Default: enough for several checkpoints, see ROWS.")
@click.option("--state", default="columns", show_default=True, type=click.Choice(["columns", "records"]))
@shared_options
def checkpoint(keys: str, backends: str, rows: int | None, state: str, runs: int, json_path: str | None) -> None:
    """What checkpoints cost, against the number of keys."""
    cases, problems = [], []
    rows = rows or ROWS[state]
    for backend in backends.split(","):
        for number in keys.split(","):
            options = {"keys": int(number), "rows": rows, "state": state, "state_backend": backend}
            try:
                case, found = case_of(options, runs)
            except SideFailed as error:
                case, found = {**options, "checked": False}, [f"{options}: {error}"]
            cases.append(case)
            problems += found
    checked = all(case["checked"] for case in cases)
    figures = {**over_cases(cases), "rows": rows, "runs": runs, "cases": cases, "checked": checked}
    finish({"workload": WORKLOAD, "cluster": "local"}, figures, problems, json_path)
