"""A job that would write to what is real is refused before anything of it runs; one that only reads is tried."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    DeltaSink,
    FileSink,
    IcebergSink,
    KafkaSink,
    KafkaSource,
    RedisListSink,
    RedisStreamSink,
    RedisUpsertSink,
    SqlSink,
    SqlTable,
    SqlUpsertSink,
    StreamEnvironment,
)
from understudy.testing import Unfit, assert_at_least_once, assert_exactly_once

pytestmark = pytest.mark.every_run

REDIS = "redis://:secret@127.0.0.1:1"
IN_ITS_PLACE = r"end the job in collect\(name=\.\.\.\) in its place, or in a sink of your own .*TransactionalLog"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "pay.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE totals (id INTEGER PRIMARY KEY, amount INTEGER)")
        connection.execute("CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT)")
        connection.executemany("INSERT INTO names VALUES (?, ?)", [(n, f"n{n}") for n in range(12)])
    connection.close()
    return path


def _env() -> StreamEnvironment:
    return StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)


def _into(sink: Any) -> Callable[[], StreamEnvironment]:
    def build() -> StreamEnvironment:
        env = _env()
        rows = env.from_collection([{"id": n, "amount": n} for n in range(12)])
        rows.collect(name="out")
        rows.sink_to(sink, name="totals")
        return env

    return build


@pytest.mark.parametrize("assert_it", [assert_exactly_once, assert_at_least_once])
@pytest.mark.parametrize("kind", [SqlSink, SqlUpsertSink])
def test_a_real_table_is_not_written(
    kind: type[SqlSink | SqlUpsertSink], assert_it: Callable[..., Any], database: Path
) -> None:
    found = rf"sink 'totals' \({kind.__name__}\) writes to table totals of sqlite:///.*pay\.db, which is real"
    with pytest.raises(Unfit, match=f"{found}.*{IN_ITS_PLACE}"):
        assert_it(_into(kind(f"sqlite:///{database}", "totals", key=["id"])), histories=1)
    with sqlite3.connect(database) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        assert connection.execute("SELECT count(*) FROM totals").fetchone() == (0,)
    connection.close()
    assert tables == {"totals", "names"}


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: KafkaSink("out", "127.0.0.1:1"), r"\(KafkaSink\) writes to topic 'out' of 127\.0\.0\.1:1"),
        (lambda: RedisListSink(REDIS, "out"), r"\(RedisListSink\) writes to list 'out' of redis://:\*\*\*@"),
        (lambda: RedisStreamSink(REDIS, "out"), r"\(RedisStreamSink\) writes to stream 'out' of redis://:\*\*\*@"),
        (lambda: RedisUpsertSink(REDIS, key="id"), r"\(RedisUpsertSink\) writes to hashes of redis://:\*\*\*@"),
    ],
)
def test_a_server_is_not_even_asked(make: Callable[[], Any], found: str) -> None:
    with pytest.raises(Unfit, match=f"sink 'totals' {found}.*{IN_ITS_PLACE}"):
        assert_exactly_once(_into(make()), histories=1)


def test_a_lake_gets_no_table(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("amount", pa.int64())])
    with pytest.raises(Unfit, match=rf"sink 'totals' \(DeltaCommitter\) writes to table .*lake, .*{IN_ITS_PLACE}"):
        assert_exactly_once(_into(DeltaSink(tmp_path / "lake", schema=schema)), histories=1)
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with pytest.raises(Unfit, match=rf"sink 'totals' \(IcebergCommitter\) writes to table a\.b, .*{IN_ITS_PLACE}"):
        assert_exactly_once(_into(IcebergSink("a.b", catalog=catalog, schema=schema)), histories=1)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_folder_of_real_files_gets_none(tmp_path: Path) -> None:
    found = r"sink 'totals' \(FileSink\) writes real files, to .*out, .*give it a path that begins with sim://"
    with pytest.raises(Unfit, match=found):
        assert_exactly_once(_into(FileSink(tmp_path / "out")), histories=1)
    assert not (tmp_path / "out").exists()


def test_offsets_of_a_group_are_not_moved() -> None:
    def build() -> StreamEnvironment:
        env = _env()
        source = KafkaSource("in", "127.0.0.1:1", group="readers", bounded=True)
        env.from_source(source, name="in").collect(name="out")
        return env

    found = (
        r"source 'in' \(KafkaSource\) writes to the offsets of group 'readers' of 127\.0\.0\.1:1, .*leave group= out"
    )
    with pytest.raises(Unfit, match=found):
        assert_exactly_once(build, histories=1)


def test_tables_that_are_only_read_are_tried(database: Path) -> None:
    url = f"sqlite:///{database}"

    def build() -> StreamEnvironment:
        env = _env()
        env.from_sql(url, "names").collect(name="read")
        orders = env.from_collection([{"who": n} for n in range(12)])
        orders.lookup_join(SqlTable(url, "names"), left_on="who", right_on="id").collect(name="joined")
        return env

    assert assert_exactly_once(build, histories=1).histories == 1
