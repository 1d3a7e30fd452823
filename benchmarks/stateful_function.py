"""A Python function per record with state per key (count, last value, maximum) and one output for each input."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import click

from .contest import Score, Side, compared, compete, problems_of
from .data import Dataset, dataset
from .digest import running_answer
from .measure import Measured
from .peers_known import choose, peer_sides
from .report import contest_options, finish
from .side import Order

WORKLOAD, COMPILED = "stateful-function", "understudy-compiled"


def check(order: Order, measured: Measured) -> list[str]:
    """Compare the number and the digest of all outputs."""
    problems = []
    if (outputs := measured.said.get("outputs")) != order.data.rows:
        problems.append(f"{outputs} outputs for {order.data.rows} inputs")
    wanted = f"{_answer(order.data):016x}"
    if (found := measured.said.get("digest")) != wanted:
        problems.append(f"the outputs' digest is {found}, wanted {wanted}")
    return problems


def ours(data: Dataset, batch_rows: int | None, *, compiled: bool = False) -> Side:
    command = [sys.executable, "-m", "benchmarks.sides.stateful_function"]
    setting = "2 TaskManagers (local), exactly once, checkpoint every 1 s"
    options: dict[str, Any] = {"batch_rows": batch_rows}
    if not compiled:
        return Side("understudy", command, data, options, setting=setting)
    options["compiled"] = True
    return Side(COMPILED, command, data, options, setting=f"{setting}; the method compiled by Numba")


@click.command(WORKLOAD)
@click.option("--rows", default=20_000_000, show_default=True, type=click.IntRange(2))
@click.option("--keys", default=100_000, show_default=True, type=click.IntRange(1))
@click.option("--batch-rows", type=click.IntRange(1), help="Ours: at most so many rows a batch. Default: as the API.")
@click.option("--compiled", is_flag=True, help="Ours: with a second side, the same method compiled by Numba.")
@contest_options
def stateful_function(
    rows: int,
    keys: int,
    batch_rows: int | None,
    compiled: bool,
    peers: str,
    runs: int,
    json_path: str | None,
    data_dir: Path,
) -> None:
    """A stateful Python function per record, against peers."""
    data = dataset(data_dir, rows + rows % 2, keys)
    sides = [ours(data, batch_rows), *([ours(data, batch_rows, compiled=True)] if compiled else [])]
    sides += peer_sides(choose(peers, WORKLOAD, "local"), data, data_dir, WORKLOAD)
    scores = compete(WORKLOAD, sides, runs, check)
    finish({"workload": WORKLOAD, "cluster": "local", "keys": keys}, figures(scores), problems_of(scores), json_path)


def figures(scores: list[Score]) -> dict[str, Any]:
    """Ours against all others; and under `compiled` the compiled side against all others, ours among them."""
    others = [score for score in scores if score.side.name != COMPILED]
    figures = compared(others)
    for score in scores:
        if score.side.name == COMPILED:
            figures["compiled"] = compared([score, *others])
    return figures


@cache
def _answer(data: Dataset) -> int:
    return running_answer(data)
