"""Rows into PostgreSQL: a job that appends them exactly once, against a bare COPY of the same rows, in turn.

It starts a server of its own (tests/systems/postgresql.py), without fsync. The rows are read from Parquet by both, so
that what differs is the job: its checkpoints, which hold the rows, and the ledger.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from tests.systems.postgresql import PostgreSQL
from understudy import LocalCluster, StreamEnvironment

from .report import finish, shared_options

WORKLOAD = "sql"
SCHEMA = "id bigint, customer integer, cents bigint, note text, at timestamp"


def make_rows(path: Path, rows: int) -> None:
    chance = np.random.default_rng(7)
    ids = np.arange(rows)
    table = pa.table(
        {
            "id": ids,
            "customer": chance.integers(0, 100_000, rows, dtype=np.int32),
            "cents": chance.integers(0, 10_000_000, rows),
            "note": pa.array([f"order number {number} of the day" for number in ids]),
            "at": pa.array(ids * 1_000_000, pa.timestamp("us")),
        }
    )
    pq.write_table(table, path, row_group_size=100_000)


def bare(url: str, path: Path) -> float:
    """One transaction on one connection; Arrow makes the text, as the job's sink has it do."""
    began = time.perf_counter()
    statement = "COPY t FROM STDIN (FORMAT csv)"
    with psycopg.connect(url) as connection, connection.cursor() as cursor, cursor.copy(statement) as copy:
        for batch in pq.ParquetFile(path).iter_batches(65_536):
            sink = pa.BufferOutputStream()
            pyarrow.csv.write_csv(batch, sink, pyarrow.csv.WriteOptions(include_header=False))
            copy.write(memoryview(sink.getvalue()))
    return time.perf_counter() - began


def with_job(cluster: LocalCluster, url: str, path: Path, parallelism: int) -> float:
    env = StreamEnvironment(checkpoint_interval_ms=1_000, batch_rows=65_536)
    env.from_parquet(str(path), parallelism=parallelism).to_sql(url, "t", parallelism=parallelism)
    began = time.perf_counter()
    cluster.submit(env).wait()
    return time.perf_counter() - began


def measured(url: str, act: Any, *arguments: Any) -> tuple[float, list[int]]:
    """Seconds, and what is in the table then."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute(f"CREATE TABLE t ({SCHEMA})")
        connection.execute("CHECKPOINT")
        seconds = act(*arguments)
        found = connection.execute("SELECT count(*), count(DISTINCT id), sum(cents) FROM t").fetchone()
    assert found is not None
    return seconds, [int(each) for each in found]


@click.command(WORKLOAD)
@click.option("--rows", type=click.IntRange(1), default=2_000_000, show_default=True)
@click.option("--parallelism", type=click.IntRange(1), default=1, show_default=True)
@shared_options
def sql(rows: int, parallelism: int, runs: int, json_path: str | None) -> None:
    """Appending to PostgreSQL exactly once, against bare COPY."""
    server = PostgreSQL()
    problems: list[str] = []
    sides: dict[str, list[float]] = {"copy": [], "job": []}
    try:
        url = server.dsn(server.create_database())
        with (
            tempfile.TemporaryDirectory(prefix="understudy-benchmark-") as folder,
            LocalCluster(parallelism) as cluster,
        ):
            path = Path(folder) / "rows.parquet"
            make_rows(path, rows)
            for _ in range(runs):
                seconds, wanted = measured(url, bare, url, path)
                sides["copy"].append(seconds)
                seconds, found = measured(url, with_job, cluster, url, path, parallelism)
                sides["job"].append(seconds)
                if found != wanted:
                    problems.append(f"the job left {found}, COPY {wanted}")
                click.echo(f"copy {sides['copy'][-1]:.2f} s, job {seconds:.2f} s", err=True)
    finally:
        server.stop()
    medians = {side: statistics.median(seconds) for side, seconds in sides.items()}
    figures = {
        "rows": rows,
        "runs": runs,
        "rows_per_s": {side: round(rows / seconds) for side, seconds in medians.items()},
        "ratio_to_copy": round(medians["copy"] / medians["job"], 3),
        "seconds": {side: [round(each, 3) for each in seconds] for side, seconds in sides.items()},
        "checked": not problems,
    }
    finish({"workload": WORKLOAD, "cluster": "local"}, figures, problems, json_path)
