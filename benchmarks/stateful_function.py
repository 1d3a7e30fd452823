"""A Python function per record with state per key (count, last value, maximum) and one output for each input."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import click

from .contest import Side, compared, compete, problems_of
from .data import Dataset, dataset
from .digest import running_answer
from .measure import Measured
from .peers_known import choose, peer_sides
from .report import contest_options, finish
from .side import Order

WORKLOAD = "stateful-function"


def check(order: Order, measured: Measured) -> list[str]:
    """Compare the number and the digest of all outputs."""
    problems = []
    if (outputs := measured.said.get("outputs")) != order.data.rows:
        problems.append(f"{outputs} outputs for {order.data.rows} inputs")
    wanted = f"{_answer(order.data):016x}"
    if (found := measured.said.get("digest")) != wanted:
        problems.append(f"the outputs' digest is {found}, wanted {wanted}")
    return problems


def ours(data: Dataset, batch_rows: int | None) -> Side:
    command = [sys.executable, "-m", "benchmarks.sides.stateful_function"]
    setting = "2 TaskManagers (local), exactly once, checkpoint every 1 s"
    return Side("understudy", command, data, {"batch_rows": batch_rows}, setting=setting)


@click.command(WORKLOAD)
@click.option("--rows", default=2_000_000, show_default=True, type=click.IntRange(2))
@click.option("--keys", default=100_000, show_default=True, type=click.IntRange(1))
@click.option("--batch-rows", type=click.IntRange(1), help="Ours: at most so many rows a batch. Default: as the API.")
@contest_options
def stateful_function(
    rows: int, keys: int, batch_rows: int | None, peers: str, runs: int, json_path: str | None, data_dir: Path
) -> None:
    """A stateful Python function per record, against peers."""
    data = dataset(data_dir, rows + rows % 2, keys)
    sides = [ours(data, batch_rows), *peer_sides(choose(peers, WORKLOAD, "local"), data, data_dir, WORKLOAD)]
    scores = compete(WORKLOAD, sides, runs, check)
    finish({"workload": WORKLOAD, "cluster": "local", "keys": keys}, compared(scores), problems_of(scores), json_path)


@cache
def _answer(data: Dataset) -> int:
    return running_answer(data)
