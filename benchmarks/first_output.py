"""From the start of the user's process to the first output of its job on a LocalCluster, and to the end of the job."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

import click

from .data import Dataset
from .measure import Measured, measure
from .report import finish, shared_options, spread
from .side import Order

WORKLOAD = "first-output"


def run() -> Measured:
    """One process, from its start on."""
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        order = Order(WORKLOAD, Dataset(Path(name), 0, 0), Path(name))
        return measure([sys.executable, "-m", "benchmarks.sides.first_output", order.to_argument()])


@click.command(WORKLOAD)
@shared_options
def first_output(runs: int, json_path: str | None) -> None:
    """From process start to first output."""
    measured = [run() for _ in range(runs)]
    problems = ["the output is wrong" for one in measured if not one.said["right"]]
    firsts = [one.said["first_s"] - one.started_s for one in measured]
    figures = {
        "rows": measured[0].said["rows"],
        "rows_per_s": round(median(one.said["rows"] / one.seconds for one in measured)),
        "wall_s": round(median(one.wall_s for one in measured), 2),
        "runs": runs,
        "first_output_s": [round(first, 3) for first in firsts],
        **spread("s", firsts),
        **spread("committed_s", [one.said["committed_s"] - one.started_s for one in measured]),
        "peak_rss_mb": round(max(one.peak_rss_mb for one in measured)),
        "checked": not problems,
    }
    finish({"workload": WORKLOAD, "cluster": "local"}, figures, problems, json_path)
