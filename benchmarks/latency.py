"""From source to sink, at a given rate, through a shuffle: exactly once, a checkpoint every second."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np

from .data import Dataset
from .measure import measure
from .report import finish, shared_options
from .side import Order

WORKLOAD = "latency"
SETTLED_S = 2.0
"""The first records, which find connections and code cold, do not count for the percentiles."""
LEAST_OF_RATE = 0.95
"""Below this share of the wanted rate the source was held back, and its records' times would hide that."""
SUBTASKS = 2
BLOCK_ROWS = 8192
"""The generator deals its records out to its subtasks in blocks of so many."""

PERCENTILES = {"p50_ms": 50.0, "p99_ms": 99.0, "p99_9_ms": 99.9, "max_ms": 100.0}


def check(arrivals: Any, records: int, rate: float) -> list[str]:
    """Each record once, and at the wanted rate. `arrivals`: rows of id, emitted_ns, arrived_ns."""
    problems = []
    ids, emitted = arrivals[:, 0], arrivals[:, 1]
    if not np.array_equal(np.sort(ids), np.arange(records)):
        problems.append(f"{len(ids)} records arrived, {len(np.unique(ids))} of them distinct; wanted {records}")
    elif (found := _rate(emitted)) < LEAST_OF_RATE * rate:
        problems.append(f"the source emitted {found:,.0f} records a second; wanted {rate:,.0f}")
    return problems


def percentiles(arrivals: Any, since_ns: Any) -> dict[str, float]:
    """Of the time from `since_ns`, one for each record, to its arrival."""
    settled = arrivals[:, 1] >= arrivals[:, 1].min() + SETTLED_S * 1e9
    taken = (arrivals[settled, 2] - since_ns[settled]) / 1e6
    return {name: round(float(np.percentile(taken, at)), 2) for name, at in PERCENTILES.items()}


def due_ns(arrivals: Any, rate: int) -> Any:
    """When each record was due, had the source emitted one after the other at an even pace.

    A source subtask emits what has become due together, and when it is held back it emits late: this shows both.
    """
    blocks, within = np.divmod(arrivals[:, 0], BLOCK_ROWS)
    due = np.empty(len(arrivals))
    interval_ns = 1e9 * SUBTASKS / rate
    for subtask in range(SUBTASKS):
        mine = blocks % SUBTASKS == subtask
        emitted = arrivals[mine, 1]
        together = np.count_nonzero(emitted == emitted.min())
        start_ns = emitted.min() - (together - 1) * interval_ns
        due[mine] = start_ns + (blocks[mine] // SUBTASKS * BLOCK_ROWS + within[mine]) * interval_ns
    return due


def run(rate: int, seconds: float) -> tuple[dict[str, Any], list[str]]:
    """One job at one rate."""
    records = int(rate * seconds)
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        out = Path(name)
        order = Order(WORKLOAD, Dataset(out, 0, 0), out, {"rate": rate, "records": records, "batch_rows": BLOCK_ROWS})
        measured = measure([sys.executable, "-m", "benchmarks.sides.latency", order.to_argument()])
        arrivals = np.concatenate([np.load(path) for path in sorted(out.glob("arrivals-*.npy"))])
    problems = [f"at {rate} records/s: {problem}" for problem in check(arrivals, records, rate)]
    case = {
        "rate": rate,
        "emitted_per_s": round(_rate(arrivals[:, 1])),
        **percentiles(arrivals, arrivals[:, 1]),
        "from_due": percentiles(arrivals, due_ns(arrivals, rate)),
        "checkpoints": measured.said["checkpoints"],
        "wall_s": round(measured.wall_s, 2),
        "peak_rss_mb": round(measured.peak_rss_mb),
    }
    click.echo(f"{rate:>10,} records/s  p50 {case['p50_ms']} ms  p99 {case['p99_ms']} ms", err=True)
    return case, problems


@click.command(WORKLOAD)
@click.option("--rates", default="10000,50000,100000", show_default=True, help="Records a second, comma-separated.")
@click.option("--seconds", default=12.0, show_default=True, help="How long each job runs.")
@shared_options
def latency(rates: str, seconds: float, runs: int, json_path: str | None) -> None:
    """From source to sink, at a given rate."""
    wanted = [int(rate) for rate in rates.split(",")]
    results = [run(rate, seconds) for _ in range(runs) for rate in wanted]
    problems = [problem for _, found in results for problem in found]
    cases = [case for case, _ in results]
    medians = {
        str(rate): {
            name: float(np.median([case[name] for case in cases if case["rate"] == rate])) for name in PERCENTILES
        }
        for rate in wanted
    }
    figures = {"runs": runs, "medians": medians, "cases": cases, "checked": not problems}
    finish({"workload": WORKLOAD, "cluster": "local"}, figures, problems, json_path)


def _rate(emitted_ns: Any) -> float:
    return float(len(emitted_ns) / max((emitted_ns.max() - emitted_ns.min()) / 1e9, 1e-9))
