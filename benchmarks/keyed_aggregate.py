"""Count and sum per key of rows with a Zipf skew: exactly once, a checkpoint every second, start-up left out."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import numpy as np

from .contest import Side, compared, compete, problems_of
from .data import Dataset, dataset
from .measure import Measured
from .peers_known import WARM_UP_ROWS, choose, peer_sides
from .report import contest_options, finish
from .side import Order, read_totals

WORKLOAD = "keyed-aggregate"
FILTERED, DRAIN, DRAIN_FILTERED = "understudy-filtered", "drained", "drained-filtered"


def check(order: Order, _measured: Measured) -> list[str]:
    """Compare each key's count and sum with those that NumPy made when the data was made."""
    try:
        found = read_totals(order.out)
    except (OSError, ValueError) as error:
        return [f"no answer: {error}"]
    wanted = order.data.totals
    if found.shape != wanted.shape:
        return [f"{len(found)} rows for {len(wanted)} keys"]
    wrong = np.flatnonzero((found != wanted).any(axis=1))
    if len(wrong):
        return [f"{len(wrong)} keys are wrong; the first: found {found[wrong[0]]}, wanted {wanted[wrong[0]]}"]
    return []


def ours(data: Dataset, emit: str | None, batch_rows: int | None) -> Side:
    options = {"emit": emit, "batch_rows": batch_rows}
    setting = f"2 TaskManagers (local), exactly once, checkpoint every 1 s, results {emit or 'once at the end'}"
    return Side(
        "understudy", [sys.executable, "-m", "benchmarks.sides.keyed_aggregate"], data, options, setting=setting
    )


def ours_on_spark(data: Dataset, warm_up: Dataset, emit: str | None) -> list[Side]:
    """From a DataFrame that only scans files, and from one whose rows come through Spark; and, as the limits, those
    DataFrames drained, which gives no answer to check.
    """
    command = [sys.executable, "-m", "benchmarks.sides.on_spark"]
    options = {"emit": emit, "warm_up": str(warm_up.parquet)}
    setting = (
        f"2 TaskManagers (Spark local[2]), exactly once, checkpoint every 1 s, results {emit or 'once at the end'}"
    )
    drained = "mapInArrow that returns nothing, local[2]"
    return [
        Side(name, command, data, {**options, "way": way}, setting=told, answers=not way.startswith("drain"))
        for name, way, told in (
            ("understudy", "scan", f"{setting}; a scan of files"),
            (FILTERED, "filtered", f"{setting}; a filter after the scan"),
            (DRAIN, "drain", f"{drained}; a scan of files"),
            (DRAIN_FILTERED, "drain-filtered", f"{drained}; a filter after the scan"),
        )
    ]


@click.command(WORKLOAD)
@click.option("--rows", default=20_000_000, show_default=True, type=click.IntRange(2))
@click.option("--keys", default=100_000, show_default=True, type=click.IntRange(1))
@click.option("--cluster", default="local", show_default=True, type=click.Choice(["local", "spark"]))
@click.option("--emit", type=click.Choice(["end", "updates"]), help="Ours: when results go out. Default: as the API.")
@click.option("--batch-rows", type=click.IntRange(1), help="Ours: at most so many rows a batch. Default: as the API.")
@contest_options
def keyed_aggregate(
    rows: int,
    keys: int,
    cluster: str,
    emit: str | None,
    batch_rows: int | None,
    peers: str,
    runs: int,
    json_path: str | None,
    data_dir: Path,
) -> None:
    """Count and sum per key, against peers."""
    data = dataset(data_dir, rows + rows % 2, keys)
    if cluster == "local":
        sides = [ours(data, emit, batch_rows)]
    else:
        sides = ours_on_spark(data, dataset(data_dir, min(data.rows, WARM_UP_ROWS), keys), emit)
    sides += peer_sides(choose(peers, WORKLOAD, cluster), data, data_dir, WORKLOAD)
    scores = compete(WORKLOAD, sides, runs, check)
    finish({"workload": WORKLOAD, "cluster": cluster, "keys": keys}, compared(scores), problems_of(scores), json_path)
