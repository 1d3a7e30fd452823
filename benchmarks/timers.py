"""A Python function per record that registers a timer per key and 10 s of event time, and another that they fire."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .contest import Side, compete, problems_of
from .data import Dataset
from .peers_known import choose, timed_peer_sides
from .report import contest_options, finish
from .stateful_function import COMPILED, figures
from .timed_data import DELAY_MS, JITTER_MS, RATE, SIZE_MS, TIMERS, right_answer, timed_dataset
from .windows import check


def ours(data: Dataset, *, compiled: bool = False) -> Side:
    command = [sys.executable, "-m", "benchmarks.sides.timers"]
    setting = "2 TaskManagers (local), exactly once, checkpoint every 1 s"
    options: dict[str, Any] = {"shape": TIMERS}
    if not compiled:
        return Side("understudy", command, data, options, setting=setting)
    return Side(COMPILED, command, data, options | {"compiled": True}, setting=f"{setting}; both compiled by Numba")


@click.command(TIMERS)
@click.option("--rows", default=20_000_000, show_default=True, type=click.IntRange(2))
@click.option("--keys", default=100_000, show_default=True, type=click.IntRange(1))
@click.option("--rate", default=RATE, show_default=True, type=click.IntRange(1), help="Rows a second of event time.")
@click.option("--compiled", is_flag=True, help="Ours: with a second side, the same operator compiled by Numba.")
@contest_options
def timers(
    rows: int, keys: int, rate: int, compiled: bool, peers: str, runs: int, json_path: str | None, data_dir: Path
) -> None:
    """A timer per key and 10 s in a Python function per record, against peers."""
    data = timed_dataset(data_dir, rows + rows % 2, keys, rate)
    sides = [ours(data), *([ours(data, compiled=True)] if compiled else [])]
    sides += timed_peer_sides(choose(peers, TIMERS, "local"), data, data_dir, TIMERS, TIMERS, rate)
    scores = compete(TIMERS, sides, runs, check)
    described = {
        "workload": TIMERS,
        "keys": keys,
        "rows_per_s_of_event_time": rate,
        "timers": right_answer(data, TIMERS).outputs,
        "every_ms": SIZE_MS,
        "out_of_order_ms": JITTER_MS,
        "watermark_delay_ms": DELAY_MS,
    }
    finish(described, figures(scores), problems_of(scores), json_path)
