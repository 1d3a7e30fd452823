"""From source to sink, at a given rate, through a shuffle: exactly once, a checkpoint every second."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np

from .data import Dataset
from .measure import cpu_pressure_s, measure
from .report import finish, over_cases, shared_options
from .side import Order

WORKLOAD = "latency"
SETTLED_S = 2.0
"""The first records, which find connections and code cold, do not count for the percentiles."""
LEAST_OF_RATE = 0.95
"""Below this share of the wanted rate the source was held back, and its records' times would hide that."""
SUBTASKS = 2
BLOCK_ROWS = 256
"""The generator deals its records out to its subtasks in blocks of so many."""

PERCENTILES = {"p50_ms": 50.0, "p99_ms": 99.0, "p99_9_ms": 99.9, "max_ms": 100.0}


def check(arrivals: Any, records: int) -> list[str]:
    """Each record once. `arrivals`: rows of id, emitted_ns, arrived_ns."""
    ids = arrivals[:, 0]
    if not np.array_equal(np.sort(ids), np.arange(records)):
        return [f"{len(ids)} records arrived, {len(np.unique(ids))} of them distinct; wanted {records}"]
    return []


def kept_up(arrivals: Any, rate: float) -> bool:
    """Whether the source was hardly held back."""
    return emission_rate(settled(arrivals)) >= LEAST_OF_RATE * rate


def settled(arrivals: Any) -> Any:
    """Those of the records emitted after the first seconds."""
    return arrivals[arrivals[:, 1] >= arrivals[:, 1].min() + SETTLED_S * 1e9]


def emission_rate(arrivals: Any) -> float:
    """Records a second, of the source."""
    emitted = arrivals[:, 1]
    return float(len(emitted) / max((emitted.max() - emitted.min()) / 1e9, 1e-9))


def percentiles(arrivals: Any, since_ns: Any) -> dict[str, float]:
    """Of the time from `since_ns`, one for each record, to its arrival."""
    taken = (arrivals[:, 2] - since_ns) / 1e6
    return {name: round(float(np.percentile(taken, at)), 2) for name, at in PERCENTILES.items()}


def due_ns(arrivals: Any, rate: int) -> Any:
    """When each record was due, had each source subtask emitted one after the other at an even pace since its first.

    A source subtask emits what has become due together, and when it is held back it emits late: this shows both.
    """
    blocks, within = np.divmod(arrivals[:, 0], BLOCK_ROWS)
    positions = blocks // SUBTASKS * BLOCK_ROWS + within
    due = np.empty(len(arrivals))
    interval_ns = 1e9 * SUBTASKS / rate
    for subtask in np.unique(blocks % SUBTASKS):
        mine = blocks % SUBTASKS == subtask
        emitted = arrivals[mine, 1]
        just_due = positions[mine][emitted == emitted.min()].max()
        due[mine] = emitted.min() + (positions[mine] - just_due) * interval_ns
    return due


def run(rate: int, seconds: float) -> tuple[dict[str, Any], list[str]]:
    """One job at one rate."""
    records = int(rate * seconds)
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        out = Path(name)
        order = Order(WORKLOAD, Dataset(out, 0, 0), out, {"rate": rate, "records": records, "batch_rows": BLOCK_ROWS})
        pressure_s = cpu_pressure_s()
        measured = measure([sys.executable, "-m", "benchmarks.sides.latency", order.to_argument()])
        pressed_s = (cpu_pressure_s() or 0.0) - (pressure_s or 0.0)
        arrivals = np.concatenate([np.load(path) for path in sorted(out.glob("arrivals-*.npy"))])
    problems = [f"at {rate} records/s: {problem}" for problem in check(arrivals, records)]
    counted = settled(arrivals)
    case = {
        "rate": rate,
        "rows": records,
        "rows_per_s": round(records / measured.seconds),
        "emitted_per_s": round(emission_rate(counted)),
        "kept_up": kept_up(arrivals, rate),
        **percentiles(counted, counted[:, 1]),
        "from_due": percentiles(counted, due_ns(counted, rate)),
        "checkpoints": measured.said["checkpoints"],
        "cpu_pressure": None if pressure_s is None else round(pressed_s / measured.wall_s, 2),
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
    figures = {**over_cases(cases), "runs": runs, "medians": medians, "cases": cases, "checked": not problems}
    finish({"workload": WORKLOAD, "cluster": "local"}, figures, problems, json_path)
