"""SqlSource on SQLite and PostgreSQL: each row once, whatever the parallelism, and clear errors."""

from __future__ import annotations

import datetime
import pickle
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import END, Source
from understudy.runtime.connectors.errors import OffsetMismatch
from understudy.runtime.connectors.paced_source import PacedSource
from understudy.runtime.connectors.sql import database
from understudy.runtime.connectors.sql.database import Database
from understudy.runtime.connectors.sql.errors import (
    DatabaseRefused,
    DatabaseUnreachable,
    KeyNotUnique,
    NoSuchTable,
    StatementFailed,
    TableMismatch,
)
from understudy.runtime.connectors.sql.lookup import SqlLookupJoin, SqlTable
from understudy.runtime.connectors.sql.sql_sinks import SqlUpsertSink
from understudy.runtime.connectors.sql.sql_source import SqlSource

from ....contracts.source import RECORDS, SourceContract
from ....systems.postgresql import PASSWORD, USER, PostgreSQL
from ..harness import ManualClock
from .databases import asked, lite
from .driving import Driven

pytestmark = pytest.mark.processes


class SqlContract(SourceContract):
    """`url` is set by a fixture: a table `t` of RECORDS rows with the key (a, b)."""

    url: str

    _made: bytes | None = None

    def make_source(self, batch_rows: int, records_per_second: float | None) -> Source:
        """As an attempt gets it: made once, and pickled."""
        if self._made is None:
            self._made = pickle.dumps(SqlSource(self.url, "t", splits=3, page_rows=7))
        source = pickle.loads(self._made)
        PacedSource.__init__(source, batch_rows, records_per_second)
        return source  # type: ignore[no-any-return]

    def advance(self, source: Source, clock: ManualClock) -> None:
        delay_ms = source.poll_delay_ms()
        if delay_ms is not None:
            clock.ms += delay_ms
            return
        assert isinstance(source, SqlSource)
        source._background._thread.join(0.001)


VALUES = ", ".join(f"({i // 10}, 'é{i % 10}', {i / 4})" for i in range(RECORDS))
TABLE = (
    "CREATE TABLE t (a int NOT NULL, b varchar(10) NOT NULL, c real, PRIMARY KEY (a, b))",
    f"INSERT INTO t VALUES {VALUES}",
)


class TestSqliteSource(SqlContract):
    @pytest.fixture(autouse=True)
    def _table(self, tmp_path: Path) -> None:
        self.url = lite(tmp_path, *TABLE)


class TestPostgresqlSource(SqlContract):
    test_after_any_change_of_parallelism_every_record_has_come_once = None  # type: ignore[assignment]
    """Each of hundreds of attempts would connect, for offsets that are the same code as with SQLite."""

    @pytest.fixture(autouse=True)
    def _table(self, pg_url: str) -> None:
        self.url = pg_url
        asked(pg_url, *TABLE)


def rows_of(source: SqlSource) -> list[dict[str, Any]]:
    with Driven(source) as driven:
        return driven.rows()


# -- what is read


def test_types_of_postgresql_come_as_arrow_has_them(pg_url: str) -> None:
    asked(
        pg_url,
        "CREATE TABLE t (id bigint PRIMARY KEY, s smallint, n numeric(10,2), m numeric, f real, d double precision, "
        "x text, v varchar(9), ok boolean, day date, at timestamp, utc timestamptz, o time, raw bytea, j jsonb, "
        "u uuid, l int[])",
        "INSERT INTO t VALUES (1, 2, 3.5, 4.125, 'NaN', 'Infinity', '', E'a\"\\n,b', true, '2026-01-02', "
        "'2026-01-02 03:04:05.5', '2026-01-02 03:04:05+02', '03:04:05.25', '\\x00ff', '{\"a\": 1}', "
        "'6f1b1a1e-0000-0000-0000-000000000001', '{1,2}')",
        "INSERT INTO t (id) VALUES (2)",
    )
    source = SqlSource(pg_url, "t")
    first, second = rows_of(source)
    assert str(first.pop("f")) == "nan"
    assert first == {
        "id": 1,
        "s": 2,
        "n": Decimal("3.50"),
        "m": "4.125",
        "d": float("inf"),
        "x": "",
        "v": 'a"\n,b',
        "ok": True,
        "day": datetime.date(2026, 1, 2),
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 500_000),
        "utc": datetime.datetime(2026, 1, 2, 1, 4, 5, tzinfo=datetime.UTC),
        "o": datetime.time(3, 4, 5, 250_000),
        "raw": b"\x00\xff",
        "j": '{"a": 1}',
        "u": "6f1b1a1e-0000-0000-0000-000000000001",
        "l": "{1,2}",
    }
    assert {name for name, value in second.items() if value is not None} == {"id"}
    assert source.source_schema().field("s").type == pa.int16()
    assert source.source_schema().field("utc").type == pa.timestamp("us", tz="UTC")


def test_an_empty_table_ends_at_once(url: str) -> None:
    asked(url, "CREATE TABLE t (id integer PRIMARY KEY, b text)")
    assert rows_of(SqlSource(url, "t", splits=5)) == []


def test_some_columns_are_read_without_the_key(tmp_path: Path) -> None:
    url = lite(tmp_path, "CREATE TABLE t (id integer PRIMARY KEY, b text)", "INSERT INTO t VALUES (5, 'x'), (6, NULL)")
    assert rows_of(SqlSource(url, "t", columns=["b"], page_rows=1)) == [{"b": "x"}, {"b": None}]


def test_a_query_is_read_by_its_key(url: str) -> None:
    asked(url, "CREATE TABLE t (id integer, b text)", "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    source = SqlSource(url, query="SELECT id * 10 AS big, b FROM t WHERE id <> 2", key="big", page_rows=1)
    assert rows_of(source) == [{"big": 10, "b": "x"}, {"big": 30, "b": "z"}]


def test_a_table_of_another_schema_is_read(pg_url: str) -> None:
    asked(
        pg_url,
        'CREATE SCHEMA "Other"',
        'CREATE TABLE "Other"."T able" ("I d" uuid PRIMARY KEY DEFAULT gen_random_uuid(), b int)',
        'INSERT INTO "Other"."T able" (b) SELECT generate_series(1, 20)',
    )
    rows = rows_of(SqlSource(pg_url, "T able", db_schema="Other", splits=3, page_rows=4))
    assert sorted(row["b"] for row in rows) == list(range(1, 21))


def test_texts_are_read_in_the_order_of_the_column_s_own_collation(pg_url: str) -> None:
    words = ["b", "A", "a", "B", "é", "e", "z", "_"]
    values = ", ".join(f"('{word}')" for word in words)
    ordered = asked(
        pg_url,
        'CREATE TABLE t (w text COLLATE "en-x-icu" PRIMARY KEY)',
        f"INSERT INTO t VALUES {values}",
        "SELECT w FROM t ORDER BY w",
    )
    assert [(row["w"],) for row in rows_of(SqlSource(pg_url, "t", splits=3, page_rows=2))] == ordered


# -- while it changes, and after a restart


def test_rows_behind_the_offset_are_read_once_while_others_come_and_go(pg_url: str) -> None:
    asked(
        pg_url, "CREATE TABLE t (id int PRIMARY KEY, b int)", "INSERT INTO t SELECT i, 0 FROM generate_series(1, 20) i"
    )
    with Driven(SqlSource(pg_url, "t", page_rows=4, batch_rows=4)) as first:
        taken = first.take(8)
        offset = first.source.offset()
    asked(
        pg_url,
        "DELETE FROM t WHERE id IN (3, 12)",
        "INSERT INTO t VALUES (0, 0), (99, 0)",
        "UPDATE t SET b = 1",
    )
    with Driven(SqlSource(pg_url, "t", page_rows=5), offset) as second:
        rest = second.rows()
    assert [row["id"] for row in taken] == list(range(1, 9))
    assert [(row["id"], row["b"]) for row in rest] == [(i, 1) for i in (9, 10, 11, *range(13, 21), 99)]


def test_the_ranges_of_the_offset_are_read_and_not_those_of_the_table_as_it_is_now(tmp_path: Path) -> None:
    url = lite(tmp_path, "CREATE TABLE t (id integer PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3), (4), (5), (6)")
    with Driven(SqlSource(url, "t", splits=3, batch_rows=1)) as first:
        assert first.take(1) == [{"id": 1}]
        offset = first.source.offset()
    lite(tmp_path, "INSERT INTO t VALUES (100), (50)")
    with Driven(SqlSource(url, "t", splits=3), offset) as second:
        assert [row["id"] for row in second.rows()] == [2, 3, 4, 5, 6, 50, 100]


def test_an_offset_of_another_key_is_refused(tmp_path: Path) -> None:
    url = lite(tmp_path, "CREATE TABLE t (id integer PRIMARY KEY, b integer UNIQUE NOT NULL)")
    with Driven(SqlSource(url, "t")) as first:
        offset = first.source.offset()
    with pytest.raises(OffsetMismatch, match="with the key id and now has b"):
        Driven(SqlSource(url, "t", key="b"), offset)


def test_an_offset_of_another_table_is_refused(tmp_path: Path) -> None:
    url = lite(tmp_path, "CREATE TABLE t (id integer PRIMARY KEY)", "CREATE TABLE u (id integer PRIMARY KEY)")
    with Driven(SqlSource(url, "t")) as first:
        offset = first.source.offset()
    with pytest.raises(OffsetMismatch, match="was checkpointed while it read t, and reads u now"):
        Driven(SqlSource(url, "u"), offset)
    del offset["relation"]  # as earlier releases have written it
    with Driven(SqlSource(url, "u"), offset) as second:
        assert second.rows() == []


def test_all_ranges_that_are_left_hold_the_watermark_back(tmp_path: Path) -> None:
    url = lite(tmp_path, "CREATE TABLE t (id integer PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3), (4)")
    with Driven(SqlSource(url, "t", splits=2)) as driven:
        seen = [list(driven.source.current_splits() or ())]
        while driven.poll() is not END:
            seen.append(list(driven.source.current_splits() or ()))
    assert seen == [["t[0]", "t[1]"], ["t[1]"], []]


def test_a_server_that_dies_while_it_is_read_is_waited_for(postgresql: PostgreSQL, pg_url: str) -> None:
    asked(pg_url, "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 1000)")
    with Driven(SqlSource(pg_url, "t", page_rows=100, batch_rows=100)) as driven:
        taken = driven.take(100)
        postgresql.kill()
        back = threading.Thread(target=postgresql.start)
        back.start()
        taken += driven.rows()
        back.join()
    assert [row["id"] for row in taken] == list(range(1, 1001))


# -- what is refused


def test_null_and_equal_keys_are_refused_when_the_source_is_made(url: str) -> None:
    asked(url, "CREATE TABLE t (k integer, b integer)", "INSERT INTO t VALUES (1, 1), (NULL, 2), (1, 3)")
    with pytest.raises(TableMismatch, match="has no primary key: say by which columns"):
        SqlSource(url, "t")
    with pytest.raises(KeyNotUnique, match="key k is NULL in some rows"):
        SqlSource(url, "t", key="k")
    with pytest.raises(KeyNotUnique, match=r"key k is not unique: \(1,\) is there more than once"):
        SqlSource(url, query="SELECT * FROM t WHERE k IS NOT NULL", key="k")
    assert len(rows_of(SqlSource(url, query="SELECT * FROM t WHERE k IS NOT NULL", key=["k", "b"]))) == 2


def test_a_missing_table_and_column_are_named_with_those_there_are(pg_url: str) -> None:
    asked(pg_url, "CREATE TABLE orders (id int PRIMARY KEY, amount int)")
    with pytest.raises(NoSuchTable, match="no table order; it has orders; did you mean 'orders'"):
        SqlSource(pg_url, "order")
    with pytest.raises(TableMismatch, match=r"no column 'amont'.*did you mean 'amount'"):
        SqlSource(pg_url, "orders", columns=["amont"])
    with pytest.raises(NoSuchTable, match="nothing"):
        SqlSource(pg_url, query="SELECT * FROM nothing", key="id")
    with pytest.raises(StatementFailed, match="syntax error"):
        SqlSource(pg_url, query="SELEC", key="id")


def test_no_error_and_no_name_shows_the_password(pg_url: str, postgresql: PostgreSQL) -> None:
    asked(pg_url, "CREATE TABLE t (id int PRIMARY KEY)")
    source = SqlSource(pg_url, "t")
    assert PASSWORD not in repr(source)
    assert "***" in repr(source)
    assert PASSWORD not in repr(pickle.loads(pickle.dumps(source)))
    with pytest.raises(DatabaseRefused, match="password authentication failed") as refused:
        SqlSource(pg_url.replace(PASSWORD, "wr0ng-one"), "t")
    assert "wr0ng-one" not in str(refused.value)
    with pytest.raises(DatabaseRefused, match="does not exist"):
        SqlSource(postgresql.dsn("nowhere"), "t")
    with pytest.raises(DatabaseUnreachable, match="refused") as away:
        SqlSource(f"postgresql://me:{PASSWORD}@127.0.0.1:9/x", "t", retry_ms=0)
    assert PASSWORD not in str(away.value)


def test_a_role_that_may_not_log_in_is_refused_at_once(pg_url: str) -> None:
    asked(pg_url, f"CREATE ROLE locked NOLOGIN PASSWORD '{PASSWORD}'")
    try:
        with pytest.raises(DatabaseRefused, match='"locked" is not permitted to log in'):
            SqlSource(pg_url.replace(f"{USER}:", "locked:"), "t")
    finally:
        asked(pg_url, "DROP ROLE locked")


def test_a_statement_that_takes_too_long_is_named(pg_url: str) -> None:
    with pytest.raises(StatementFailed, match="statement timeout"):
        SqlSource(pg_url, query="SELECT 1 AS id, pg_sleep(100)::text AS s", key="id", statement_timeout_ms=50)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "table=... or query=..."),
        ({"table": "t", "query": "SELECT 1"}, "one of both"),
        ({"table": "t", "splits": 0}, "splits: wanted a whole number from 1"),
        ({"table": "t", "retry_ms": -1}, "retry_ms"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        SqlSource(f"sqlite:///{tmp_path / 'db'}", **settings)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="url: wanted one like postgresql"):
        SqlSource("nonsense", "t")


def from_table(url: str) -> None:
    SqlSource(url, "t")


def looked_up(url: str) -> None:
    SqlLookupJoin(SqlTable(url, "t"), ["id"], ["id"], "left", "")


def written(url: str) -> None:
    SqlUpsertSink(url, "t", key="id").check_at_submit(on_this_machine=True)


def test_of_a_file_that_cannot_be_opened_it_is_not_said_to_look_for_a_server(tmp_path: Path) -> None:
    with pytest.raises(DatabaseRefused, match=r"cannot connect .*\(check the path: .*\): unable to open") as raised:
        from_table(f"sqlite:///{tmp_path}/nowhere/shop.db")
    assert "port" not in str(raised.value)


@pytest.mark.parametrize("look", [from_table, looked_up, written])
def test_a_file_that_is_not_there_is_refused_and_not_made(tmp_path: Path, look: Callable[[str], None]) -> None:
    with pytest.raises(DatabaseRefused, match=r"shop\.db: there is no such file: correct the path in the URL"):
        look(f"sqlite:///{tmp_path}/shop.db")
    assert list(tmp_path.iterdir()) == []


def test_of_a_login_that_is_refused_it_is_said_what_to_correct() -> None:
    """As psycopg raises it: without an SQLSTATE."""
    from psycopg import OperationalError

    said = OperationalError('FATAL:  password authentication failed for user "u"')
    meant = Database("postgresql://u:secret@localhost/db").meaning(said, "connect", is_first_look=True)
    assert isinstance(meant, DatabaseRefused)
    assert "cannot connect (correct user, password or database in the URL): FATAL:" in str(meant)


@pytest.mark.parametrize("make", [from_table, looked_up, written], ids=lambda make: make.__name__)
def test_whoever_makes_a_job_does_not_wait_for_retry_ms(
    make: Callable[[str], object], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a database that is not there: a log line at the first try, and soon an error that says what to check."""
    monkeypatch.setattr(database, "LOOK_MS", 300)
    with pytest.raises(DatabaseUnreachable, match=r"127\.0\.0\.1:1/db: .*check host and port.*refused"):
        make("postgresql://me@127.0.0.1:1/db")
    (line,) = caplog.messages
    assert "refused" in line
    assert line.endswith("trying for 0.3 s")
