"""Count and sum per key and window of event time: tumbling, sliding and session windows, from Parquet."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .contest import Side, compared, compete, problems_of
from .data import Dataset
from .measure import Measured
from .peers_known import choose, timed_peer_sides
from .report import contest_options, finish
from .side import Order
from .timed_data import DELAY_MS, GAP_MS, JITTER_MS, RATE, SHAPES, SIZE_MS, SLIDE_MS, right_answer, timed_dataset

WORKLOAD = "windows"


def check(order: Order, measured: Measured) -> list[str]:
    """Compare the number and the digest of all results with those of windows by the definition."""
    wanted = right_answer(order.data, order.options["shape"])
    found = measured.said.get("outputs"), measured.said.get("digest")
    if found != (wanted.outputs, wanted.digest):
        return [f"{found[0]} results with the digest {found[1]}, wanted {wanted.outputs} with {wanted.digest}"]
    return []


def ours(data: Dataset, shape: str) -> Side:
    setting = "2 TaskManagers (local), exactly once, checkpoint every 1 s"
    command = [sys.executable, "-m", "benchmarks.sides.windows"]
    return Side("understudy", command, data, {"shape": shape}, setting=setting)


@click.command(WORKLOAD)
@click.option("--rows", default=20_000_000, show_default=True, type=click.IntRange(2))
@click.option("--keys", default=100_000, show_default=True, type=click.IntRange(1))
@click.option("--rate", default=RATE, show_default=True, type=click.IntRange(1), help="Rows a second of event time.")
@click.option("--shape", default="tumbling", show_default=True, type=click.Choice(SHAPES))
@contest_options
def windows(
    rows: int, keys: int, rate: int, shape: str, peers: str, runs: int, json_path: str | None, data_dir: Path
) -> None:
    """Aggregates per key and window of event time, against peers."""
    data = timed_dataset(data_dir, rows + rows % 2, keys, rate)
    sides = [ours(data, shape)]
    sides += timed_peer_sides(choose(peers, WORKLOAD, "local"), data, data_dir, WORKLOAD, shape, rate)
    scores = compete(WORKLOAD, sides, runs, check)
    described = {
        "workload": WORKLOAD,
        "shape": shape,
        "keys": keys,
        "rows_per_s_of_event_time": rate,
        "results": right_answer(data, shape).outputs,
        "size_ms": GAP_MS if shape == "session" else SIZE_MS,
        "slide_ms": SLIDE_MS if shape == "sliding" else None,
        "out_of_order_ms": JITTER_MS,
        "watermark_delay_ms": DELAY_MS,
    }
    finish(described, compared(scores), problems_of(scores), json_path)
