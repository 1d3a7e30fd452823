"""PageRank in rounds, over columns: `bulk_iterate` with a join, a window per round and a sum; the answer is NumPy's."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from .data import Dataset
from .measure import measure
from .report import finish, over_cases, shared_options
from .side import Order

WORKLOAD = "pagerank"
DAMPING = 0.85
ROW_GROUP = 1 << 19
QUADRANTS = (0.57, 0.19, 0.19)
"""Of RMAT: the chances that a link lies in each quarter of the matrix but the last."""

Ints = npt.NDArray[np.int64]


def links(scale: int, count: int, seed: int) -> tuple[Ints, Ints]:
    """From which page to which; there are 2 ** scale pages. The same for the same seed."""
    chance, cuts = np.random.default_rng(seed), np.cumsum(QUADRANTS)
    source, target = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for bit in range(scale):
        quadrant = np.searchsorted(cuts, chance.random(count), side="right")
        source |= (quadrant >> 1) << bit
        target |= (quadrant & 1) << bit
    return source, target


def ranks(source: Ints, target: Ints, pages: int, rounds: int) -> npt.NDArray[np.float64]:
    degree, found = np.bincount(source, minlength=pages), np.full(pages, 1 / pages)
    for _ in range(rounds):
        parts = found[source] / degree[source]
        found = (1 - DAMPING) / pages + DAMPING * np.bincount(target, weights=parts, minlength=pages)
    return found


def run(
    scale: int, count: int, rounds: int, seed: int, kills: int, incremental: bool
) -> tuple[dict[str, Any], list[str]]:
    pages = 1 << scale
    source, target = links(scale, count, seed)
    began_s = time.perf_counter()
    wanted = ranks(source, target, pages, rounds)
    numpy_s = time.perf_counter() - began_s
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name:
        out = Path(name)
        table = {"source": source, "target": target, "degree": np.bincount(source, minlength=pages)[source]}
        pq.write_table(pa.table(table), out / "links.parquet", row_group_size=ROW_GROUP)
        first = {"page": np.arange(pages), "rank": np.full(pages, 1 / pages)}
        pq.write_table(pa.table(first), out / "pages.parquet", row_group_size=ROW_GROUP)
        options = {"pages": pages, "rounds": rounds, "kills": kills, "seed": seed, "incremental": incremental}
        order = Order(WORKLOAD, Dataset(out, 0, 0), out, options)
        measured = measure([sys.executable, "-m", "benchmarks.sides.pagerank", order.to_argument()])
        found = np.load(out / "ranks.npy")
    problems = [] if found.shape == wanted.shape else [f"{len(found)} ranks, wanted {len(wanted)}"]
    if not problems and not np.allclose(found, wanted, rtol=1e-9, atol=0):
        problems = [f"a rank is {np.abs(found - wanted).max()} off"]
    if measured.said["killed"] < kills:
        problems.append(f"only {measured.said['killed']} of {kills} kills happened before the job ended")
    case = {
        "links": count,
        "pages": pages,
        "rounds": rounds,
        "kills": kills,
        "incremental": incremental,
        "restarts": measured.said["restarts"],
        "rows_per_s": round(count * rounds / measured.seconds),
        "seconds": round(measured.seconds, 2),
        "numpy_s": round(numpy_s, 2),
        "checkpoints": measured.said["checkpoints"],
        "wall_s": round(measured.wall_s, 2),
        "peak_rss_mb": round(measured.peak_rss_mb),
    }
    click.echo(f"{count:>12,} links  {case['seconds']} s  ({case['rows_per_s']:,} links a second and round)", err=True)
    return case, problems


@click.command(WORKLOAD)
@click.option("--links", "counts", default="400000,5000000", show_default=True, help="Comma-separated.")
@click.option("--scale", default=20, show_default=True, type=click.IntRange(4, 28), help="There are 2 ** scale pages.")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1))
@click.option(
    "--kills", default=0, show_default=True, type=click.IntRange(0), help="SIGKILLs of TaskManagers, in turn."
)
@click.option("--seed", default=1, show_default=True)
@click.option("--incremental", is_flag=True, help="Checkpoints write what has changed.")
@shared_options
def pagerank(
    counts: str,
    scale: int,
    rounds: int,
    kills: int,
    seed: int,
    incremental: bool,
    runs: int,
    json_path: str | None,
) -> None:
    """PageRank over a seeded RMAT graph, exactly once, with a checkpoint a second."""
    each = [int(count) for count in counts.split(",")]
    results = [run(scale, count, rounds, seed, kills, incremental) for _ in range(runs) for count in each]
    problems = [problem for _, found in results for problem in found]
    cases = [case for case, _ in results]
    figures = {**over_cases(cases), "runs": runs, "cases": cases, "checked": not problems}
    finish({"workload": WORKLOAD, "cluster": "local"}, figures, problems, json_path)
