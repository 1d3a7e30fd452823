"""From Parquet into a Delta table: a job, against one `write_deltalake` of the same rows."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from understudy import LocalCluster, StreamEnvironment

from .report import finish, over_cases, shared_options

WORKLOAD = "lakes"
FILES = 4
CHECKPOINT_MS = 2_000


def write_input(folder: Path, rows: int) -> Path:
    """`rows` rows in FILES files, of four columns; the same each time."""
    folder.mkdir()
    random = np.random.default_rng(7)
    for index, numbers in enumerate(np.array_split(np.arange(rows), FILES)):
        columns = {
            "id": pa.array(numbers),
            "amount": pa.array(random.random(len(numbers))),
            "shop": pa.array(random.integers(0, 1000, len(numbers)).astype(str)),
            "at": pa.array(numbers * 1000, pa.timestamp("us", "UTC")),
        }
        pq.write_table(pa.table(columns), folder / f"{index}.parquet")
    return folder


def bare(source: Path, table: Path) -> float:
    """Seconds."""
    from deltalake import write_deltalake

    began = time.perf_counter()
    write_deltalake(table, pq.read_table(source))
    return time.perf_counter() - began


def job(cluster: LocalCluster, source: Path, table: Path) -> float:
    """From its submission to its end: the last commit is done then."""
    schema = pq.read_schema(source / "0.parquet")
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=CHECKPOINT_MS)
    env.from_parquet(str(source)).to_delta(str(table), schema=schema)
    began = time.perf_counter()
    cluster.submit(env).wait()
    return time.perf_counter() - began


def check(table: Path, rows: int) -> list[str]:
    """Each id once."""
    from deltalake import DeltaTable

    ids = np.sort(DeltaTable(table).to_pyarrow_table(columns=["id"])["id"].to_numpy())
    return [] if np.array_equal(ids, np.arange(rows)) else [f"{table.name}: found {len(ids)} rows, wanted {rows} once"]


def run(cluster: LocalCluster, folder: Path, source: Path, rows: int, number: int) -> tuple[dict[str, Any], list[str]]:
    ours, theirs = folder / f"job-{number}", folder / f"bare-{number}"
    bare_s, job_s = bare(source, theirs), job(cluster, source, ours)
    case = {
        "rows": rows,
        "bare_rows_per_s": round(rows / bare_s),
        "rows_per_s": round(rows / job_s),
        "ratio": round(bare_s / job_s, 3),
    }
    click.echo(f"{case['rows_per_s']:,} rows/s, {case['ratio']} of one write_deltalake", err=True)
    return case, check(ours, rows) + check(theirs, rows)


@click.command(WORKLOAD)
@click.option("--rows", type=click.IntRange(FILES), default=10_000_000, show_default=True)
@shared_options
def lakes(rows: int, runs: int, json_path: str | None) -> None:
    """What a job appends to a Delta table, as a part of what one write_deltalake does."""
    with tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as name, LocalCluster(task_managers=2) as cluster:
        folder = Path(name)
        source = write_input(folder / "source", rows)
        job(cluster, source, folder / "warm-up")
        results = [run(cluster, folder, source, rows, number) for number in range(runs)]
    problems = [problem for _, found in results for problem in found]
    cases = [case for case, _ in results]
    figures = {
        **over_cases(cases),
        "ratio": median(case["ratio"] for case in cases),
        "runs": runs,
        "cases": cases,
        "checked": not problems,
    }
    finish({"workload": WORKLOAD, "cluster": "local"}, figures, problems, json_path)
