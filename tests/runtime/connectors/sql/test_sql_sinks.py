"""SqlSink and SqlUpsertSink on SQLite and PostgreSQL: what gets in, once, and what is refused."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import create_engine

from understudy import LocalCluster, StreamEnvironment
from understudy.actors.errors import MarkerMismatch, OutsideUnavailable
from understudy.actors.flow.records import RecordMismatch
from understudy.runtime.connectors.sql.errors import (
    DatabaseRefused,
    NoSuchTable,
    RowsLeftOut,
    StatementFailed,
    TableMismatch,
)
from understudy.runtime.connectors.sql.row_changes import RowChanges
from understudy.runtime.connectors.sql.sql_sinks import LEDGER, SqlSink, SqlUpsertSink
from understudy.testing import OperatorHarness

from ....systems.postgresql import PASSWORD, USER, PostgreSQL
from .databases import asked, lite

pytestmark = pytest.mark.processes

Ask = Callable[[str], list[tuple[Any, ...]]]


TABLE = "CREATE TABLE t (id bigint NOT NULL PRIMARY KEY, b varchar(20), n numeric(10, 2))"


@pytest.fixture
def ask(url: str) -> Ask:
    """For the rows of a statement, in a database with the table."""
    asked(url, TABLE)
    return partial(asked, url)


def written(sink: Any, *records: Any) -> OperatorHarness:
    """A harness in which they were taken and their checkpoint is complete."""
    harness = OperatorHarness(sink)
    harness.process(list(records))
    harness.complete(harness.snapshot())
    return harness


@contextmanager
def failing(kind: type[Exception], match: str = "") -> Iterator[None]:
    """Within, the operator raises this; its chain says where."""
    with pytest.raises(Exception) as raised:  # noqa: PT011
        yield
    error: BaseException | None = raised.value
    while error is not None and not isinstance(error, kind):
        error = error.__cause__
    assert error is not None, raised.value
    assert re.search(match, str(error)), error
    assert PASSWORD not in str(error)


def row(number: int, b: str | None = "x") -> dict[str, Any]:
    return {"id": number, "b": b, "n": number / 4}


# -- the ledger


def test_rows_are_there_when_their_checkpoint_is_complete_and_not_before(url: str, ask: Ask) -> None:
    with OperatorHarness(SqlSink(url, "t")) as harness:
        harness.process([row(1), row(2, None), row(3, "")])
        assert ask("SELECT count(*) FROM t") == [(0,)]
        snapshot = harness.snapshot()
        assert ask("SELECT count(*) FROM t") == [(0,)]
        harness.complete(snapshot)
    assert [each[:2] for each in ask("SELECT * FROM t ORDER BY id")] == [(1, "x"), (2, None), (3, "")]
    assert [each[2] for each in ask("SELECT writer, sink, sequence FROM understudy_ledger")] == [1]


def test_a_restored_attempt_writes_what_was_staged_once(url: str, ask: Ask) -> None:
    harness = OperatorHarness(SqlSink(url, "t"))
    harness.process([row(1)])
    snapshot = harness.snapshot()
    harness.complete(snapshot)
    harness.crash()  # it was written, and nobody knows
    with harness.restored(snapshot) as second:
        second.process([row(2)])
        second.complete(second.snapshot())
    assert ask("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_zombie_writes_nothing_after_its_successor(url: str, ask: Ask) -> None:
    zombie = OperatorHarness(SqlSink(url, "t"))
    zombie.process([row(1)])
    snapshot = zombie.snapshot()
    with zombie.restored(snapshot) as successor:
        assert ask("SELECT id FROM t") == [(1,)]
        zombie.complete(snapshot)
        assert ask("SELECT id FROM t") == [(1,)]
        successor.process([row(2)])
        successor.complete(successor.snapshot())
    zombie.crash()
    assert ask("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_the_ledger_lies_in_the_schema_of_the_table(pg_url: str) -> None:
    asked(pg_url, 'CREATE SCHEMA "Other"', 'CREATE TABLE "Other"."T t" ("I d" int)')
    written(SqlSink(pg_url, "T t", db_schema="Other"), {"I d": 1}).close()
    assert asked(pg_url, 'SELECT "I d" FROM "Other"."T t"') == [(1,)]
    assert asked(pg_url, 'SELECT sequence FROM "Other".understudy_ledger') == [(1,)]


# -- values


def test_values_of_every_type_arrive(pg_url: str) -> None:
    record = {
        "n": Decimal("1.50"),
        "f": float("nan"),
        "ok": True,
        "day": datetime.date(2026, 1, 2),
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
        "utc": datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC),
        "o": datetime.time(3, 4),
        "raw": b"\x00\xff",
        "j": {"a": [1]},
        "u": "6f1b1a1e-0000-0000-0000-000000000001",
        "q": 'a"\n,\\N\té',
        "e": "",
    }
    asked(
        pg_url,
        "CREATE TABLE v (n numeric, f double precision, ok boolean, day date, at timestamp, utc timestamptz, o time, "
        "raw bytea, j jsonb, u uuid, q text, e text)",
    )
    written(SqlSink(pg_url, "v"), record, dict.fromkeys(record)).close()
    first, second = asked(pg_url, "SET timezone = 'UTC'", "SELECT * FROM v")
    assert str(first[1]) == "nan"
    found = dict(zip(record, first, strict=True)) | {"f": record["f"], "u": str(first[9])}
    assert found == record
    assert set(second) == {None}


# -- upserts


def test_an_upsert_sets_and_removes_rows_by_key(url: str, ask: Ask) -> None:
    ask("INSERT INTO t VALUES (1, 'old', 1), (2, 'old', 1), (3, 'old', 1)")
    changes = [
        {"kind": "+U", "id": 1, "b": "new"},
        {"kind": "-D", "id": 2, "b": None},
        {"kind": "-D", "id": 3, "b": None},
        {"kind": "+I", "id": 3, "b": "again"},
        {"kind": "+I", "id": 4, "b": "short"},
        {"kind": "-U", "id": 4, "b": "short"},
        {"kind": "+U", "id": 5, "b": "moved"},
    ]
    written(SqlSink(url, "t", key="id", kind="kind"), *changes).close()
    assert ask("SELECT id, b, n FROM t ORDER BY id") == [(1, "new", 1), (3, "again", None), (5, "moved", None)]


def test_a_sink_without_a_ledger_upserts_before_the_barrier_ends(url: str, ask: Ask) -> None:
    ask("INSERT INTO t VALUES (1, 'old', 1), (2, 'old', 1)")
    with OperatorHarness(SqlUpsertSink(url, "t", key="id", deleted="gone")) as harness:
        harness.process([{**row(1, "new"), "gone": False}, {**row(2), "gone": True}, {**row(3), "gone": None}])
        harness.snapshot()
        assert ask("SELECT id, b FROM t ORDER BY id") == [(1, "new"), (3, "x")]


def test_rows_of_keys_alone_are_upserted(url: str, ask: Ask) -> None:
    ask("CREATE TABLE seen (a bigint, b varchar(5), PRIMARY KEY (a, b))")
    written(SqlSink(url, "seen", key=["a", "b"]), {"a": 1, "b": "x"}, {"a": 1, "b": "x"}, {"a": 1, "b": "y"}).close()
    assert ask("SELECT a, b FROM seen ORDER BY b") == [(1, "x"), (1, "y")]


def test_what_cannot_be_upserted_is_refused(url: str, ask: Ask) -> None:
    with failing(TableMismatch, r"needs a primary key or unique index of just its key"):
        OperatorHarness(SqlSink(url, "t", key=["id", "b"]))
    with failing(RecordMismatch, r"key column 'id' is null"):
        written(SqlSink(url, "t", key="id"), {"id": 1, "b": "x"}, {"id": None, "b": "x"})
    with failing(RecordMismatch, r"says '-T', wanted one of"):
        written(SqlSink(url, "t", key="id", kind="kind"), {"kind": "-T", "id": 1, "b": "x"})
    with pytest.raises(ValueError, match="not both"):
        RowChanges.of("id", None, kind="kind", deleted="gone")
    with pytest.raises(ValueError, match="name its columns, key="):
        RowChanges.of(None, None, kind="kind")


# -- what does not fit


def test_columns_and_types_that_do_not_fit_are_named_found_and_wanted(url: str, ask: Ask) -> None:
    with failing(TableMismatch, r"no column 'c'.*the table has id BIGINT, b VARCHAR.*found id int64, c"):
        written(SqlSink(url, "t"), {"id": 1, "c": 2})
    with failing(TableMismatch, r"column 'b' is VARCHAR.*, found int64"):
        written(SqlSink(url, "t"), {"id": 1, "b": 2})
    with failing(TableMismatch, r"'id' .* may not be null, and is missing"):
        written(SqlSink(url, "t", columns=["b"]), {"id": 1, "b": "x"})
    with failing(NoSuchTable, r"has no table u; it has t"):
        OperatorHarness(SqlSink(url, "u"))
    with failing(StatementFailed):
        written(SqlSink(url, "t"), row(1), row(1))
    assert ask("SELECT count(*) FROM t") == [(0,)]


@pytest.mark.usefixtures("forked_templates")
def test_a_mistake_is_found_at_submit(url: str, ask: Ask) -> None:
    schema = pa.schema([("id", pa.int64()), ("b", pa.int64())])
    for table, said in (("u", "has no table u"), ("t", "column 'b' is VARCHAR")):
        env = StreamEnvironment()
        stream = env.from_collection([{"id": 1, "b": 2}]).map_batches(lambda batch: batch, schema=schema)
        stream.to_sql(url, table)
        with LocalCluster(1) as cluster, pytest.raises(Exception, match=said):
            cluster.submit(env)


def test_a_role_that_may_not_make_the_ledger_is_refused_and_the_password_does_not_show(pg_url: str) -> None:
    asked(pg_url, "CREATE TABLE t (id int)", f"CREATE ROLE meek LOGIN PASSWORD '{PASSWORD}'", "GRANT ALL ON t TO meek")
    try:
        with failing(DatabaseRefused, r"permission denied for schema.*CREATE TABLE understudy_ledger"):
            OperatorHarness(SqlSink(pg_url.replace(f"{USER}:", "meek:"), "t"))
    finally:
        asked(pg_url, "DROP OWNED BY meek", "DROP ROLE meek")
    assert PASSWORD not in repr(SqlSink(pg_url, "t"))


def test_a_read_only_file_refuses(tmp_path: Path) -> None:
    lite(tmp_path, "CREATE TABLE t (id int)")
    url = f"sqlite:///file:{tmp_path / 'db'}?mode=ro&uri=true"
    with failing(DatabaseRefused, r"readonly"):
        OperatorHarness(SqlSink(url, "t"))


def test_a_full_disk_is_tried_again_and_is_an_error_in_the_end(tmp_path: Path) -> None:
    url = lite(tmp_path, "CREATE TABLE t (id integer, b text)")

    def small() -> Any:
        from sqlalchemy import event
        from sqlalchemy.pool import NullPool

        engine = create_engine(url, poolclass=NullPool)
        event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA max_page_count = 8"))
        return engine

    harness = OperatorHarness(SqlSink(small, "t", retry_ms=1_000))
    harness.process([{"id": i, "b": "x" * 1000} for i in range(100)])
    harness.complete(harness.snapshot())
    with failing(OutsideUnavailable, r"full"):
        harness.advance(60_000)
    harness.crash()
    assert asked(url, "SELECT count(*) FROM t") == [(0,)]


def test_a_server_that_is_away_for_a_while_is_tried_again(postgresql: PostgreSQL, pg_url: str) -> None:
    asked(pg_url, "CREATE TABLE t (id int)")
    with OperatorHarness(SqlSink(pg_url, "t")) as harness:
        harness.process([{"id": 1}])
        snapshot = harness.snapshot()
        postgresql.kill()
        harness.complete(snapshot)
        postgresql.start()
        harness.advance(10_000)
        harness.process([{"id": 2}])
        assert asked(pg_url, "SELECT id FROM t") == [(1,)]


def test_a_ledger_that_was_lost_is_an_error(url: str, ask: Ask) -> None:
    harness = OperatorHarness(SqlSink(url, "t"))
    for number in (1, 2):
        harness.process([row(number)])
        snapshot = harness.snapshot()
        harness.complete(snapshot)
    harness.process([row(3)])
    last = harness.snapshot()
    harness.crash()
    ask(f"DELETE FROM {LEDGER}")
    with failing(MarkerMismatch):
        harness.restored(last)


def test_a_column_that_is_dropped_after_its_rows_were_staged_is_named(url: str, ask: Ask) -> None:
    harness = OperatorHarness(SqlSink(url, "t"))
    harness.process([row(1)])
    snapshot = harness.snapshot()
    harness.crash()
    ask("ALTER TABLE t DROP COLUMN b")
    with failing(TableMismatch, "the table has no column 'b'"):
        harness.restored(snapshot)


SWALLOWS = """
CREATE FUNCTION even() RETURNS trigger AS $$ BEGIN IF NEW.id % 2 = 0 THEN RETURN NEW; END IF; RETURN NULL; END $$
LANGUAGE plpgsql
"""


def _with_a_trigger_that_swallows(pg_url: str) -> None:
    trigger = "CREATE TRIGGER even BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION even()"
    asked(pg_url, TABLE, SWALLOWS, trigger)


def test_rows_that_a_trigger_leaves_out_are_an_error_and_none_of_them_is_committed(pg_url: str) -> None:
    _with_a_trigger_that_swallows(pg_url)
    with failing(RowsLeftOut, "of 3 rows that were sent to table t it has taken 1, .* a BEFORE INSERT trigger"):
        written(SqlSink(pg_url, "t"), row(1), row(2), row(3))
    assert asked(pg_url, "SELECT id FROM t") == []
    assert asked(pg_url, f"SELECT sequence FROM {LEDGER}") == []


def test_a_trigger_may_leave_out_upserts(pg_url: str) -> None:
    """As one does that suppresses updates which change nothing: after a restart there are such."""
    _with_a_trigger_that_swallows(pg_url)
    with written(SqlSink(pg_url, "t", key="id"), row(1), row(2)):
        pass
    assert asked(pg_url, "SELECT id FROM t") == [(2,)]


REDIRECTS = """
CREATE TABLE first (CHECK (id <= 1)) INHERITS (t);
CREATE TABLE others (CHECK (id > 1)) INHERITS (t);
CREATE FUNCTION redirect() RETURNS trigger AS $$ BEGIN
    IF NEW.id <= 1 THEN INSERT INTO first VALUES (NEW.*); ELSE INSERT INTO others VALUES (NEW.*); END IF;
    RETURN NULL;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER redirect BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION redirect()
"""


def test_rows_that_a_trigger_puts_into_tables_which_inherit_are_not_left_out(
    pg_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As tables were parted before PostgreSQL 10, and as pg_partman did it. Whether a row is there is not known."""
    asked(pg_url, "CREATE TABLE t (id bigint NOT NULL, b varchar(20), n numeric(10, 2))", REDIRECTS)
    with written(SqlSink(pg_url, "t"), row(1), row(2), row(3)):
        pass
    assert asked(pg_url, "SELECT tableoid::regclass::text, id FROM t ORDER BY id") == [
        ("first", 1),
        ("others", 2),
        ("others", 3),
    ]
    (said,) = [each for each in caplog.messages if "table t" in each]
    assert "of 3 rows that were sent to table t it has taken 0; the others are not counted" in said


def test_rows_of_partitions_and_of_a_view_with_a_trigger_are_counted(pg_url: str) -> None:
    asked(
        pg_url,
        "CREATE TABLE t (id bigint NOT NULL, b varchar(20), n numeric(10, 2)) PARTITION BY RANGE (id)",
        "CREATE TABLE first PARTITION OF t FOR VALUES FROM (0) TO (2)",
        "CREATE TABLE others PARTITION OF t DEFAULT",
        "CREATE VIEW v AS SELECT id, b FROM t",
        "CREATE FUNCTION into_t() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN INSERT INTO t VALUES (NEW.id, NEW.b); RETURN NEW; END $$",
        "CREATE TRIGGER into_t INSTEAD OF INSERT ON v FOR EACH ROW EXECUTE FUNCTION into_t()",
    )
    with written(SqlSink(pg_url, "t"), row(1), row(2), row(3)):
        pass
    with written(SqlSink(pg_url, "v"), {"id": 4, "b": "x"}):
        pass
    assert asked(pg_url, "SELECT count(*) FROM t") == [(4,)]
