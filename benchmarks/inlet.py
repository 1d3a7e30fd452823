"""Into a running job: single records from many senders, then batches, each answered once it lasts."""

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

WORKLOAD = "inlet"
EACH = 1 << 40
"""As the side has it."""


def check(ids: Any, counts: list[int]) -> list[str]:
    """Each record that was acknowledged came out, once, and those of a sender in their order. `ids`: in that order."""
    problems = []
    for sender, count in enumerate(counts):
        own = ids[ids // EACH == sender] % EACH
        if not np.array_equal(own, np.arange(count)):
            problems.append(
                f"of sender {sender} {len(own)} records came out, {len(np.unique(own))} of them distinct; "
                f"{count} were acknowledged"
            )
    wanted = sum(counts)
    return problems or ([] if len(ids) == wanted else [f"{len(ids)} records came out, wanted {wanted}"])


def run(senders: int, rows: int, seconds: float) -> tuple[dict[str, Any], list[str]]:
    """One job. `rows`: of each batch; 0: single records."""
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        out = Path(name)
        options = {"senders": senders, "rows": rows, "seconds": seconds}
        order = Order(WORKLOAD, Dataset(out, 0, 0), out, options)
        measured = measure([sys.executable, "-m", "benchmarks.sides.inlet", order.to_argument()])
        ids = np.load(out / "ids.npy")
    said = measured.said
    case = {
        "senders": senders,
        "batch_rows": rows or 1,
        "rows": sum(said["counts"]),
        "rows_per_s": said["rows_per_s"],
        **{name: value for name, value in said.items() if name.endswith("_ms")},
        "wall_s": round(measured.wall_s, 2),
        "peak_rss_mb": round(measured.peak_rss_mb),
    }
    click.echo(
        f"{senders} senders, {rows or 1} a send: {case['rows_per_s']:,} records/s, durable answer p50 {case['p50_ms']} "
        f"ms, p99 {case['p99_ms']} ms; in a checkpoint p50 {case['checkpoint_p50_ms']} ms",
        err=True,
    )
    return case, check(ids, said["counts"])


@click.command(WORKLOAD)
@click.option("--senders", default=64, show_default=True, help="Of single records.")
@click.option("--batches", default="8x5000", show_default=True, help="Senders of batches, and rows of a batch.")
@click.option("--seconds", default=8.0, show_default=True, help="How long each job is sent into.")
@shared_options
def inlet(senders: int, batches: str, seconds: float, runs: int, json_path: str | None) -> None:
    """Into a running job: durable answers."""
    batch_senders, rows = map(int, batches.split("x"))
    results = [run(*size, seconds) for _ in range(runs) for size in ((senders, 0), (batch_senders, rows))]
    problems = [problem for _, found in results for problem in found]
    cases = [case for case, _ in results]
    figures = {**over_cases(cases), "runs": runs, "cases": cases, "checked": not problems}
    finish({"workload": WORKLOAD, "cluster": "local"}, figures, problems, json_path)
