"""Frames go in and come out of jobs on real processes, as columns and record by record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from understudy import Count, FileSink, LocalCluster, ResultsUnavailable, Sum
from understudy.actors.flow.records import RecordMismatch

from .jobs import WAIT_S, environment

TABLE = pa.table({"n": list(range(20_000)), "name": [f"name {n % 7}" for n in range(20_000)]})
ROWS = TABLE.to_pylist()


@pytest.mark.parametrize("parallelism", [None, 2])
def test_each_row_of_a_frame_is_read_once(shared_cluster: LocalCluster, parallelism: int | None) -> None:
    env = environment()
    frame = pl.from_arrow(TABLE)
    env.from_polars(frame, parallelism=parallelism).map(lambda row: row.asdict()).collect(name="rows")
    counts = env.from_pandas(TABLE.to_pandas()).key_by("name").aggregate(rows=Count(), total=Sum("n"))
    counts.collect(name="counts")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    rows = job.results("rows")
    assert (rows if parallelism is None else sorted(rows, key=lambda row: int(row["n"]))) == ROWS
    wanted = (
        pl.DataFrame(ROWS).group_by("name").agg(pl.len().cast(pl.Int64).alias("rows"), pl.col("n").sum().alias("total"))
    )
    assert job.to_polars("counts").sort("name").equals(wanted.sort("name"))


def test_what_was_collected_or_written_comes_out_in_each_form(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    env = environment()
    rows = env.from_arrow(TABLE)
    rows.collect(name="collected")
    for format in ("parquet", "csv", "jsonl"):
        rows.sink_to(FileSink(str(tmp_path / format), format), name=format)
    rows.filter(lambda row: False).collect(name="nothing")
    rows.map(lambda row: row.n if row.n else str(row.n)).collect(name="of two kinds")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    for name in ("collected", "parquet", "csv", "jsonl"):
        found = job.to_arrow(name).sort_by("n")
        assert found.to_pylist() == ROWS, name
    assert job.to_pandas("collected").equals(pd.DataFrame(ROWS))
    assert job.to_polars("parquet").sort("n").equals(pl.DataFrame(ROWS))
    connection = duckdb.connect()
    relation: Any = job.to_duckdb("jsonl", connection)
    assert relation.aggregate("count(*), sum(n)").fetchall() == [(20_000, sum(range(20_000)))]
    assert job.to_arrow("nothing").num_columns == 0
    with pytest.raises(RecordMismatch, match="record"):
        job.to_arrow("of two kinds")


def test_files_are_whole_at_the_end_of_the_job(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    env = environment()
    env.generate(lambda index: index, records_per_second=100).sink_to(FileSink(str(tmp_path / "out")), name="out")
    job = shared_cluster.submit(env)
    with pytest.raises(ResultsUnavailable, match="its output is whole once it has finished"):
        job.to_arrow("out")
    job.cancel()
