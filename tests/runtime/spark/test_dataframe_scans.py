"""DataFrames that only scan files: which they are, that their rows are the DataFrame's, and how they recover."""

from __future__ import annotations

import datetime
import decimal
import logging
import os
import re
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy import JobCanceled, SparkCluster, StateDoesNotFit, StreamEnvironment
from understudy.actors.operators.source import END
from understudy.messages import CheckpointCompleted, TaskManagerChanged
from understudy.runtime.api.restart import fixed_delay
from understudy.runtime.clusters.spark_batch_limit import MOST_BYTES, MOST_ROWS, UNLIMITED, unmeasured_batches
from understudy.runtime.connectors import ScanSource, SparkSource

from ..clusters import jobs
from ..clusters.jobs import Gate, hold
from ..connectors.harness import make_context

pytestmark = pytest.mark.spark

ROWS = 40_000
WAIT_S = 180


@pytest.fixture(scope="module", autouse=True)
def _travels_whole() -> None:
    """Spark workers cannot import test modules."""
    cloudpickle.register_pickle_by_value(jobs)


def source_of(dataframe: Any, **options: Any) -> ScanSource | SparkSource:
    env = StreamEnvironment()
    env.from_dataframe(dataframe, **options)
    found = env.graph.nodes[0].operator
    assert isinstance(found, ScanSource | SparkSource)
    return found


def rows_of(source: ScanSource | SparkSource) -> pa.Table:
    assert isinstance(source, ScanSource)
    source.context = make_context()
    source.open()
    return pa.Table.from_batches(iter(source.poll, END), source.schema)


def as_multiset(table: pa.Table) -> Counter[str]:
    """By how they are written, so that NaN is equal to itself and -0.0 is not 0.0."""
    return Counter(map(repr, table.to_pylist()))


# -- the rows

MOMENTS = st.datetimes(datetime.datetime(1600, 1, 1), datetime.datetime(2200, 1, 1))
TYPES = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): st.text(),
    pa.large_string(): st.text(max_size=3),
    pa.binary(): st.binary(),
    pa.date32(): st.dates(),
    pa.decimal128(9, 2): st.decimals(-(10**6), 10**6, places=2),
    pa.decimal128(30, 4): st.integers(-(10**25), 10**25).map(lambda n: decimal.Decimal(n).scaleb(-4)),
    pa.timestamp("us", "Asia/Tokyo"): MOMENTS.map(lambda moment: moment.replace(tzinfo=datetime.UTC)),
    pa.timestamp("us"): MOMENTS,
}


@st.composite
def tables(draw: st.DrawFn) -> list[pa.Table]:
    """Files of the same columns, some of them without rows."""
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=8))
    schema = pa.schema([(f"c {index}", kind) for index, kind in enumerate(kinds)])
    files = []
    for rows in draw(st.lists(st.integers(0, 12), min_size=1, max_size=3)):
        columns = [st.lists(st.none() | TYPES[kind], min_size=rows, max_size=rows) for kind in kinds]
        arrays = [pa.array(draw(values), kind) for values, kind in zip(columns, kinds, strict=True)]
        files.append(pa.Table.from_arrays(arrays, schema=schema))
    return files


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(files=tables(), row_group_rows=st.integers(1, 12), data=st.data())
def test_the_rows_are_the_dataframes(
    spark: Any,
    tmp_path_factory: pytest.TempPathFactory,
    files: list[pa.Table],
    row_group_rows: int,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("a folder, 100% ü#?")
    for index, rows in enumerate(files):
        nested = folder / f"deeper {index % 2}"
        nested.mkdir(exist_ok=True)
        pq.write_table(rows, nested / f"part {index}.parquet", row_group_size=row_group_rows)
    (folder / "zero.parquet").touch()
    dataframe = spark.read.option("recursiveFileLookup", True).parquet(str(folder))
    chosen = data.draw(st.lists(st.sampled_from(files[0].schema.names), min_size=1, unique=True))
    dataframe = dataframe.select(*(dataframe[name].alias(name.upper()) for name in chosen))
    found = rows_of(source_of(dataframe))
    assert as_multiset(found) == as_multiset(dataframe.toArrow().cast(found.schema))
    if not any(map(pa.types.is_timestamp, found.schema.types)):  # which `collect` gives in this machine's time zone
        collected = [{name: _plain(row[name]) for name in row.__fields__} for row in dataframe.collect()]
        assert as_multiset(found) == Counter(map(repr, collected))


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


# -- what is a scan, and what is not


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("numbers")
    for part in range(4):
        ids = list(range(part, ROWS, 4))
        table = pa.table({"id": ids, "seventh": [number % 7 for number in ids]})
        pq.write_table(table, folder / f"{part}.parquet", row_group_size=3_000)
    return str(folder)


def test_choices_and_new_names_of_columns_are_still_a_scan(spark: Any, numbers: str) -> None:
    read = spark.read.parquet(numbers)
    for dataframe in (
        read,
        read.select("seventh"),
        read.selectExpr("ID AS a", "id AS b"),
        read.withColumnRenamed("id", "n"),
    ):
        found = rows_of(source_of(dataframe))
        assert (found.schema.names, found.num_rows) == (dataframe.columns, ROWS)
    twice = source_of(spark.read.option("mergeSchema", True).parquet(numbers, numbers))
    assert rows_of(twice).num_rows == 2 * ROWS
    without_files = spark.read.schema("id long").option("pathGlobFilter", "*.none").parquet(numbers)
    assert rows_of(source_of(without_files)).num_rows == 0


def test_any_other_dataframe_comes_through_spark_and_the_log_says_why(
    spark: Any, numbers: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read = spark.read.parquet(numbers)
    read.limit(100).write.partitionBy("seventh").parquet(str(tmp_path / "partitioned"))
    read.limit(100).selectExpr("timestamp_micros(id) AS t").write.parquet(str(tmp_path / "int96"))
    cached = spark.read.parquet(numbers).select("id").cache()
    cases = {
        "a Filter": read.where("id > 5"),
        "'x' is computed": read.selectExpr("id + 1 AS x"),
        "a GlobalLimit": read.limit(3),
        "a Repartition": read.coalesce(1),
        "a Union": read.union(read),
        "a Range": spark.range(5),
        "a InMemoryRelation": cached,
        "CSVFileFormat": spark.read.schema("a string").csv(numbers),
        "partition columns": spark.read.parquet(str(tmp_path / "partitioned")),
        r"timestamp\[ns\]": spark.read.parquet(str(tmp_path / "int96")),
        "the option modifiedafter": spark.read.option("modifiedAfter", "2020-01-01T00:00:00").parquet(numbers),
        "no column 'more'": spark.read.schema("id long, more long").parquet(numbers),
        "int32 in the DataFrame": spark.read.schema("id int").parquet(numbers),
    }
    for reason, dataframe in cases.items():
        with caplog.at_level(logging.INFO):
            caplog.clear()
            assert isinstance(source_of(dataframe), SparkSource), reason
        (told,) = (record.getMessage() for record in caplog.records if "come through Spark" in record.message)
        assert re.search(reason, told), told
    cached.unpersist()


def test_a_session_that_passes_over_broken_files_is_left_to_spark(spark: Any, numbers: str) -> None:
    read = spark.read.parquet(numbers)
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", True)
    try:
        assert isinstance(source_of(read), SparkSource)
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert isinstance(source_of(read), ScanSource)
    assert isinstance(source_of(read, read_files=False), SparkSource)


# -- jobs


def test_a_scan_is_exact_through_a_kill_and_goes_on_in_another_parallelism(
    spark: Any, numbers: str, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)

    def build(rate: float | None, **options: Any) -> StreamEnvironment:
        env = StreamEnvironment(checkpoint_interval_ms=200, restart_strategy=fixed_delay(5, 0))
        rows = env.from_dataframe(spark.read.parquet(numbers), name="rows", records_per_second=rate, **options)
        rows.map(lambda row: row.id).collect(name="ids")
        hold(env, gate)
        return env

    with SparkCluster(spark, task_managers=2) as cluster:
        first = cluster.submit(build(ROWS / 20, parallelism=2))
        pids: dict[int, int] = {}
        killed: list[int] = []
        before, after = threading.Semaphore(0), threading.Semaphore(0)

        def on_event(event: Any) -> None:
            if isinstance(event, CheckpointCompleted):
                (after if killed and pids[1] not in killed else before).release()
            if isinstance(event, TaskManagerChanged) and event.registered:
                pids[event.index] = event.pid

        first.on_event(on_event)
        assert all(before.acquire(timeout=WAIT_S) for _ in range(2))
        killed.append(pids[1])
        os.kill(pids[1], signal.SIGKILL)
        assert after.acquire(timeout=WAIT_S)
        path = first.cancel_with_savepoint().result(timeout=WAIT_S)
        with pytest.raises(JobCanceled):
            first.wait(timeout=WAIT_S)
        gate.open()
        with pytest.raises(StateDoesNotFit, match=r"was a ScanSource and is a SparkSource.*read from its files"):
            cluster.submit(build(None, read_files=False), from_savepoint=path)
        second = cluster.submit(build(None, parallelism=1), from_savepoint=path)
        second.wait(timeout=WAIT_S)
        assert len(second.results("ids")) < ROWS
        assert sorted(first.results("ids") + second.results("ids")) == list(range(ROWS))


# -- batches of those that come through Spark


def test_bytes_are_not_added_up_where_no_batch_can_come_near_the_limit(spark: Any) -> None:
    narrow, wide = spark.range(10).selectExpr("id", "id > 3 AS b"), spark.range(10).selectExpr("string(id) AS s")
    limit = spark.conf.get(MOST_BYTES)
    for dataframe, most_rows, expected in (
        (narrow, "10000", UNLIMITED),
        (wide, "10000", limit),
        (narrow, "0", limit),
        (narrow, "10000000", limit),
    ):
        spark.conf.set(MOST_ROWS, most_rows)
        with unmeasured_batches(dataframe):
            assert spark.conf.get(MOST_BYTES) == expected
        assert spark.conf.get(MOST_BYTES) == limit
    spark.conf.unset(MOST_ROWS)
