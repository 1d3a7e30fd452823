"""Frames go in and come out of jobs on real processes, as columns and record by record."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from understudy import Count, FileSink, JobFailed, KeyedOperator, LocalCluster, ResultsUnavailable, Sum, ValueState
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


class Latest(KeyedOperator):
    """Stores a time as it came, and one as pandas makes it of that."""

    seen = ValueState(datetime)
    rounded = ValueState(datetime)

    def process(self, row: Any, out: Any) -> None:
        before = self.seen.value()
        self.seen.update(row.ts)
        self.rounded.update(pd.Timestamp(row.ts).floor("h"))
        out.collect((row.ts, before, self.rounded.value(), row.took))


def test_times_of_pandas_travel_where_they_have_no_nanoseconds(shared_cluster: LocalCluster) -> None:
    """Its columns are of nanoseconds if one says nothing."""
    times = [datetime(2026, 1, 1, 12), datetime(2026, 1, 1, 13, microsecond=1), None]
    frame = pd.DataFrame({"ts": times, "took": pd.to_timedelta([1, 2, None], "s"), "n": [1, 2, 3]})
    assert frame.ts.dtype == "datetime64[ns]"
    assert frame.took.dtype == "timedelta64[ns]"
    env = environment()
    rows = env.from_pandas(frame)
    rows.map(lambda row: (row.ts,)).rebalance().collect(name="mapped")
    dated = rows.filter(lambda row: row.ts is not None)
    dated.key_by("ts").reduce(lambda left, right: right).rebalance().collect(name="reduced")
    dated.key_by("n").process(Latest).rebalance().collect(name="stored")
    with_zone = env.from_pandas(frame.assign(ts=frame.ts.dt.tz_localize("Asia/Tokyo")))
    with_zone.map(lambda row: (row.ts,)).rebalance().collect(name="zoned")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    assert {row[0] for row in job.results("mapped")} == {*times}
    assert sorted(row.ts for row in job.results("reduced")) == times[:2]
    hour = timedelta(hours=1)
    assert sorted(job.results("stored")) == [
        (times[0], None, times[0], timedelta(seconds=1)),
        (times[1], None, times[0] + hour, timedelta(seconds=2)),
    ]
    tokyo = timezone(timedelta(hours=9))
    assert {row[0] for row in job.results("zoned")} == {*(at and at.replace(tzinfo=tokyo) for at in times)}


def test_times_of_pandas_with_nanoseconds_say_what_to_cast(shared_cluster: LocalCluster) -> None:
    env = environment()
    frame = pd.DataFrame({"ts": pd.to_datetime([1_000, 1])})
    env.from_pandas(frame).map(lambda row: (row.ts,)).collect(name="mapped")
    with pytest.raises(JobFailed, match="it has nanoseconds"):
        shared_cluster.submit(env).wait(timeout=WAIT_S)
