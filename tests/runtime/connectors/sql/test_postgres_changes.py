"""PostgresChanges: the table, then its changes, without gap or repetition; and a named error where that cannot be."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from understudy import StreamEnvironment
from understudy.messages import CheckpointId
from understudy.runtime.api.translation import translate
from understudy.runtime.connectors.sql.changes.lsn import lsn_of
from understudy.runtime.connectors.sql.changes.postgres_changes import PostgresChanges
from understudy.runtime.connectors.sql.errors import (
    ChangesLost,
    NoSuchTable,
    NotReplicable,
    SlotInUse,
    TableChanged,
    TableMismatch,
)

from ....systems.postgresql import PostgreSQL
from .driving import Driven

pytestmark = pytest.mark.processes


@pytest.fixture
def db(pg_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, b text)")
        yield connection


def source(url: str, table: str = "t", **settings: Any) -> PostgresChanges:
    return PostgresChanges(url, table, **{"slot": url.rpartition("/")[2], **settings})


def short(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["kind"], row["id"], row["b"]) for row in rows]


def confirmed(db: psycopg.Connection[Any]) -> int:
    asked = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = current_database()"
    row = db.execute(asked).fetchone()
    return 0 if row is None or row[0] is None else lsn_of(row[0])  # a slot that is being made has none yet


def streaming(driven: Driven) -> None:
    """The table, in which there is nothing yet, was read."""
    driven.until(lambda: (driven.source.offset() or {}).get("reading") is False, "the end of the snapshot")


def run(db: psycopg.Connection[Any], *statements: str) -> None:
    """One transaction."""
    with db.transaction():
        for statement in statements:
            db.execute(statement)  # type: ignore[arg-type, unused-ignore]


# -- what comes


def test_the_table_comes_first_and_then_each_change_in_the_order_of_commits(
    pg_url: str, db: psycopg.Connection[Any]
) -> None:
    run(db, "INSERT INTO t VALUES (1, 'a'), (2, ''), (3, NULL)")
    with Driven(source(pg_url)) as driven:
        assert short(driven.take(3)) == [("+I", 1, "a"), ("+I", 2, ""), ("+I", 3, None)]
        run(
            db,
            "INSERT INTO t VALUES (4, 'd')",
            "UPDATE t SET b = 'A' WHERE id = 1",
            "UPDATE t SET id = 20 WHERE id = 2",
            "DELETE FROM t WHERE id = 3",
            "TRUNCATE t",
        )
        rows = driven.take(6)
        assert short(rows) == [
            ("+I", 4, "d"),
            ("+U", 1, "A"),
            ("-U", 2, None),
            ("+U", 20, ""),
            ("-D", 3, None),
            ("-T", None, None),
        ]
        assert [row["commit_place"] for row in rows] == [0, 1, 2, 2, 3, 4]
        assert len({row["commit_lsn"] for row in rows}) == len({row["committed_at"] for row in rows}) == 1


def test_what_follows_keeps_their_order_in_one_subtask(pg_url: str, db: psycopg.Connection[Any]) -> None:
    env = StreamEnvironment()
    changes = env.from_postgres_changes(pg_url, "t", slot=pg_url.rpartition("/")[2])
    changes.map(str).collect()
    (vertex,) = translate(env, default_parallelism=2, task_managers=2, work_dir="/nowhere").graph.vertices
    assert vertex.parallelism == 1


def test_a_function_that_may_mix_up_the_changes_of_a_row_is_a_warning(
    pg_url: str, db: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    env = StreamEnvironment()
    changes = env.from_postgres_changes(pg_url, "t", slot=pg_url.rpartition("/")[2])
    changes.map(lambda row: row, name="work", parallelism=2).to_sql(pg_url, "t", key="id", name="copy")
    translate(env, default_parallelism=2, task_managers=2, work_dir="/nowhere")
    assert "operator 'work' has 2 subtasks" in caplog.text
    assert "sink 'copy' then keeps an older value" in caplog.text


def test_with_replica_identity_full_the_old_row_comes_too(pg_url: str, db: psycopg.Connection[Any]) -> None:
    run(db, "ALTER TABLE t REPLICA IDENTITY FULL", "INSERT INTO t VALUES (1, 'a')")
    with Driven(source(pg_url)) as driven:
        driven.take(1)
        run(db, "UPDATE t SET b = 'A'", "DELETE FROM t")
        assert short(driven.take(3)) == [("-U", 1, "a"), ("+U", 1, "A"), ("-D", 1, "A")]


def test_a_transaction_that_is_rolled_back_and_other_tables_do_not_show(
    pg_url: str, db: psycopg.Connection[Any]
) -> None:
    run(db, "CREATE TABLE other (id int PRIMARY KEY)")
    with Driven(source(pg_url, snapshot=False)) as driven:
        driven.until(lambda: confirmed(db), "the slot")
        with pytest.raises(psycopg.errors.UniqueViolation):
            run(db, "INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (1, 'x')")
        run(db, "INSERT INTO other VALUES (1)")
        run(db, "INSERT INTO t VALUES (2, 'y')")
        assert short(driven.take(1)) == [("+I", 2, "y")]


def test_some_columns_of_a_quoted_table_of_another_schema(pg_url: str, db: psycopg.Connection[Any]) -> None:
    run(db, 'CREATE SCHEMA "S s"', 'CREATE TABLE "S s"."T t" (id int, "b""x" text, c int, PRIMARY KEY (c, id))')
    with Driven(source(pg_url, "T t", db_schema="S s", columns=["id", 'b"x'])) as driven:
        run(db, """INSERT INTO "S s"."T t" VALUES (1, 'q', 2)""")
        (row,) = driven.take(1)
    assert (row["kind"], row["id"], row['b"x'], row["c"]) == ("+I", 1, "q", 2), "with the key"


def test_all_types_come_as_they_are_read(pg_url: str, db: psycopg.Connection[Any]) -> None:
    run(
        db,
        "CREATE TABLE u (id int PRIMARY KEY, s smallint, n numeric(10,2), f real, ok boolean, day date, at timestamp, "
        "utc timestamptz, o time, raw bytea, j jsonb)",
    )
    row = (
        "2, 3.5, 1.25, false, '2026-01-02', '2026-01-02 03:04:05.5', '2026-01-02 03:04:05+02', '03:04:05', "
        "'\\x00ff', '[1]'"
    )
    run(db, f"INSERT INTO u VALUES (1, {row})", "INSERT INTO u VALUES (2)")
    with Driven(source(pg_url, "u")) as driven:
        read = driven.take(2)
        run(db, f"INSERT INTO u VALUES (3, {row})", "INSERT INTO u VALUES (4)")
        changed = driven.take(2)
    ours = ("id", "commit_lsn", "commit_place", "committed_at")
    for before, after in zip(read, changed, strict=True):
        assert {k: v for k, v in before.items() if k not in ours} == {k: v for k, v in after.items() if k not in ours}


# -- restarts


def test_a_restart_goes_on_within_a_transaction(pg_url: str, db: psycopg.Connection[Any]) -> None:
    with Driven(source(pg_url, batch_rows=2)) as first:
        streaming(first)
        run(db, "INSERT INTO t SELECT i, 'x' FROM generate_series(1, 5) i")
        run(db, "INSERT INTO t VALUES (6, 'x')")
        seen = first.take(2)
        offset = first.source.offset()
    assert 0 < offset["done"] < 5
    with Driven(source(pg_url), offset, attempt=1) as second:
        rest = second.take(6 - len(seen))
    assert [row["id"] for row in seen + rest] == [1, 2, 3, 4, 5, 6]


def test_a_restart_while_the_table_is_read_reads_on_and_leaves_no_change_out(
    pg_url: str, db: psycopg.Connection[Any]
) -> None:
    """The rest is read under another snapshot: changes between both count for what was read before, not after."""
    run(db, "INSERT INTO t SELECT i, 'x' FROM generate_series(1, 8) i")
    with Driven(source(pg_url, batch_rows=4)) as first:
        seen = first.take(4)
        offset = first.source.offset()
    assert [row["id"] for row in seen] == [1, 2, 3, 4]
    run(
        db,
        "UPDATE t SET b = 'before' WHERE id IN (1, 5)",
        "DELETE FROM t WHERE id IN (2, 6)",
        "UPDATE t SET id = 30 WHERE id = 3",
        "UPDATE t SET id = 0 WHERE id = 8",
        "INSERT INTO t VALUES (-1, 'low'), (31, 'high')",
    )
    with Driven(source(pg_url, batch_rows=4), offset, attempt=1) as second:
        rest = second.take(4)
        run(db, "UPDATE t SET b = 'after' WHERE id IN (1, 5)")
        rest += second.take(7)
    assert short(rest) == [
        ("+I", 5, "before"),
        ("+I", 7, "x"),
        ("+I", 30, "x"),
        ("+I", 31, "high"),
        ("+U", 1, "before"),
        ("-D", 2, None),
        ("-D", 3, None),
        ("+I", 0, "x"),
        ("+I", -1, "low"),
        ("+U", 1, "after"),
        ("+U", 5, "after"),
    ]


def test_a_snapshot_that_the_server_ends_while_records_wait_is_read_on(
    postgresql: PostgreSQL, pg_url: str, db: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is behind the source may be slower than the server lets a transaction be idle."""
    monkeypatch.setattr("understudy.runtime.connectors.sql.changes.postgres_changes._PAGE_ROWS", 2)
    db.execute(f"ALTER DATABASE {pg_url.rpartition('/')[2]} SET idle_in_transaction_session_timeout = 100")
    run(db, "INSERT INTO t SELECT i, 'x' FROM generate_series(1, 30) i")
    ended = "terminating connection due to idle-in-transaction timeout"
    before = postgresql.log().count(ended)
    with Driven(source(pg_url, batch_rows=1)) as driven:
        taken = driven.take(1)
        deadline = time.monotonic() + 30
        while postgresql.log().count(ended) == before:
            assert time.monotonic() < deadline, "the server does not end the transaction"
            time.sleep(0.01)
        taken += driven.take(29)
    assert short(taken) == [("+I", number, "x") for number in range(1, 31)]


def test_the_server_lets_go_only_of_what_a_complete_checkpoint_covers(pg_url: str, db: psycopg.Connection[Any]) -> None:
    with Driven(source(pg_url)) as driven:
        streaming(driven)
        run(db, "INSERT INTO t VALUES (1, 'a')")
        driven.take(1)
        before = confirmed(db)
        driven.source.on_checkpoint(CheckpointId(1))
        covered = driven.source.offset()["lsn"]
        run(db, "INSERT INTO t VALUES (2, 'b')")
        driven.take(1)
        driven.until(lambda: driven.source.offset()["lsn"] > covered, "the commit, which may come after the row")
        assert confirmed(db) == before, "nothing is complete yet"
        driven.source.on_checkpoint_complete(CheckpointId(1))
        driven.until(lambda: confirmed(db) > before, "the confirmation")
        assert before < confirmed(db) == covered


def test_a_server_that_is_killed_is_followed_again(
    postgresql: PostgreSQL, pg_url: str, db: psycopg.Connection[Any]
) -> None:
    run(db, "INSERT INTO t VALUES (1, 'a')")
    with Driven(source(pg_url)) as driven:
        driven.take(1)
        run(db, "INSERT INTO t VALUES (2, 'b')")
        postgresql.kill()
        postgresql.start()
        with psycopg.connect(pg_url) as again:
            again.execute("INSERT INTO t VALUES (3, 'c')")
        assert short(driven.take(2)) == [("+I", 2, "b"), ("+I", 3, "c")]


def test_a_later_attempt_takes_the_slot_from_a_frozen_one(pg_url: str, db: psycopg.Connection[Any]) -> None:
    with Driven(source(pg_url)) as zombie:
        run(db, "INSERT INTO t VALUES (1, 'a')")
        zombie.take(1)
        offset = zombie.source.offset()
        with Driven(source(pg_url), offset, attempt=1) as successor:
            run(db, "INSERT INTO t VALUES (2, 'b')")
            assert short(successor.take(1)) == [("+I", 2, "b")]


# -- what cannot be


def test_a_slot_that_is_gone_or_has_gone_on_is_an_error_and_never_a_gap(
    pg_url: str, db: psycopg.Connection[Any]
) -> None:
    with Driven(source(pg_url)) as first:
        run(db, "INSERT INTO t VALUES (1, 'a')")
        first.take(1)
        offset = first.source.offset()
    run(db, "INSERT INTO t VALUES (2, 'b')")
    slot = pg_url.rpartition("/")[2]
    free = "SELECT active_pid IS NULL FROM pg_replication_slots WHERE slot_name = current_database()"
    while db.execute(free).fetchone() != (True,):
        threading.Event().wait(0.01)
    db.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", [slot])
    with Driven(source(pg_url), offset) as second, pytest.raises(ChangesLost, match="has let go of all before"):
        second.take(1)
    db.execute("SELECT pg_drop_replication_slot(%s)", [slot])
    with Driven(source(pg_url), offset) as second, pytest.raises(ChangesLost, match="is not there any more"):
        second.take(1)
    db.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
    with Driven(source(pg_url), offset) as second, pytest.raises(ChangesLost, match="has let go of all before"):
        second.take(1)
    with (
        Driven(source(pg_url), {**offset, "system": "7"}) as second,
        pytest.raises(ChangesLost, match="another server"),
    ):
        second.take(1)


def replace_table(db: psycopg.Connection[Any], how: str) -> None:
    """So that another table has the name."""
    old = {"made again": "DROP TABLE t", "renamed": "ALTER TABLE t RENAME TO t_before"}[how]
    run(db, old, "CREATE TABLE t (id int PRIMARY KEY, b text)")


@pytest.fixture
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.runtime.connectors.sql.changes.change_reader._LOOK_S", 0.0)


@pytest.mark.parametrize("how", ["made again", "renamed"])
def test_another_table_of_the_name_is_noticed_while_nothing_comes(
    pg_url: str, db: psycopg.Connection[Any], how: str, look_often: None
) -> None:
    """It is not in the publication, so that no change of it would ever come."""
    with Driven(source(pg_url)) as driven:
        run(db, "INSERT INTO t VALUES (1, 'a')")
        driven.take(1)
        replace_table(db, how)
        with pytest.raises(ChangesLost, match="t is another table"):
            driven.take(1)


@pytest.mark.parametrize("how", ["made again", "renamed"])
def test_changes_of_another_table_of_the_name_are_not_taken_for_its_own(
    pg_url: str, db: psycopg.Connection[Any], how: str
) -> None:
    db.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    with Driven(source(pg_url, publication="everything")) as driven:
        run(db, "INSERT INTO t VALUES (1, 'a')")
        driven.take(1)
        offset = driven.source.offset()
        replace_table(db, how)
        run(db, "INSERT INTO t VALUES (2, 'b')")
        with pytest.raises(ChangesLost, match="t is another table"):
            driven.take(1)
    with (
        Driven(source(pg_url, publication="everything"), offset, attempt=1) as second,
        pytest.raises(ChangesLost, match="t is another table"),
    ):
        second.take(1)


def test_changes_of_its_own_table_are_not_taken_when_another_one_has_the_name(
    pg_url: str, db: psycopg.Connection[Any]
) -> None:
    """The publication follows the table that was renamed."""
    with Driven(source(pg_url)) as driven:
        run(db, "INSERT INTO t VALUES (1, 'a')")
        driven.take(1)
        replace_table(db, "renamed")
        run(db, "INSERT INTO t_before VALUES (2, 'b')")
        with pytest.raises(ChangesLost, match="t is another table"):
            driven.take(1)


def test_what_a_slot_has_of_a_table_that_had_the_name_before_is_left_out(
    pg_url: str, db: psycopg.Connection[Any]
) -> None:
    db.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    db.execute("SELECT pg_create_logical_replication_slot(current_database(), 'pgoutput')")
    run(db, "INSERT INTO t VALUES (1, 'a')")
    replace_table(db, "made again")
    run(db, "INSERT INTO t VALUES (2, 'b')")
    with Driven(source(pg_url, publication="everything", snapshot=False)) as driven:
        assert short(driven.take(1)) == [("+I", 2, "b")]


def test_an_offset_from_before_tables_were_told_apart_goes_on(pg_url: str, db: psycopg.Connection[Any]) -> None:
    with Driven(source(pg_url)) as first:
        run(db, "INSERT INTO t VALUES (1, 'a')")
        first.take(1)
        offset = first.source.offset()
    del offset["table"]
    with Driven(source(pg_url), offset, attempt=1) as second:
        run(db, "INSERT INTO t VALUES (2, 'b')")
        assert short(second.take(1)) == [("+I", 2, "b")]
        assert second.source.offset()["table"] > 0


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ("DROP TABLE t", NoSuchTable, '"t" does not exist'),
        ("ALTER TABLE t RENAME TO t_before", NoSuchTable, '"t" does not exist'),
        ("ALTER PUBLICATION {0}_publication DROP TABLE t", NotReplicable, "does not have t"),
    ],
)
def test_a_table_whose_changes_come_no_more_is_said_while_nothing_comes(
    pg_url: str, db: psycopg.Connection[Any], look_often: None, change: str, error: type[Exception], said: str
) -> None:
    with Driven(source(pg_url)) as driven:
        run(db, "INSERT INTO t VALUES (1, 'a')")
        driven.take(1)
        run(db, change.format(pg_url.rpartition("/")[2]))
        with pytest.raises(error, match=said):
            driven.take(1)


def test_a_slot_of_another_job_is_not_taken(
    pg_url: str, db: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.runtime.connectors.sql.changes.changed_table._HANDOVER_S", 0.3)
    with Driven(source(pg_url)) as first:
        run(db, "INSERT INTO t VALUES (1, 'a')")
        first.take(1)
        with Driven(source(pg_url), job="another") as second, pytest.raises(SlotInUse, match="slot of its own"):
            second.take(1)


def test_a_slot_of_another_kind_is_refused(pg_url: str, db: psycopg.Connection[Any]) -> None:
    db.execute("SELECT pg_create_logical_replication_slot(current_database(), 'test_decoding')")
    with Driven(source(pg_url)) as driven, pytest.raises(NotReplicable, match="plug-in test_decoding"):
        driven.take(1)


def test_a_column_that_is_added_is_named_and_the_job_goes_on_when_it_was_made_again(
    pg_url: str, db: psycopg.Connection[Any]
) -> None:
    with Driven(source(pg_url)) as first:
        run(db, "INSERT INTO t VALUES (1, 'a')")
        first.take(1)
        offset = first.source.offset()
        run(db, "INSERT INTO t VALUES (2, 'b')")
        run(db, "ALTER TABLE t ADD COLUMN c int", "INSERT INTO t VALUES (3, 'c', 5)")
        with pytest.raises(TableChanged, match="column c was added"):
            first.take(2)
    with Driven(source(pg_url), offset, attempt=1) as second:
        assert [(row["id"], row["c"]) for row in second.take(2)] == [(2, None), (3, 5)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER TABLE t DROP COLUMN b", "column b is not there any more"),
        ("ALTER TABLE t ALTER COLUMN b TYPE int USING 7", "column b has another type"),
    ],
)
def test_a_column_that_is_dropped_or_altered_is_named(
    pg_url: str, db: psycopg.Connection[Any], change: str, said: str
) -> None:
    with Driven(source(pg_url)) as first:
        run(db, "INSERT INTO t VALUES (1, 'a')")
        first.take(1)
        run(db, change, "INSERT INTO t (id) VALUES (2)")
        with pytest.raises(TableChanged, match=said):
            first.take(1)


def test_columns_are_those_of_a_change_that_is_about_to_be_seen(pg_url: str, db: psycopg.Connection[Any]) -> None:
    """A commit is sent before others see it: to look at once would find the table as it was."""
    table = source(pg_url)._table
    with psycopg.connect(pg_url, autocommit=True) as other, ThreadPoolExecutor(1) as thread:
        with db.transaction():
            db.execute("ALTER TABLE t ALTER COLUMN b TYPE int USING 7")
            found = thread.submit(table.columns, other)
            asked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 't'::regclass"
            while not (found.done() or db.execute(asked).fetchone() == (1,)):
                time.sleep(0.01)
        assert found.result() == {"id": pa.int32(), "b": pa.int32()}


def test_a_large_value_that_is_not_sent_is_never_taken_for_null(pg_url: str, db: psycopg.Connection[Any]) -> None:
    run(db, "ALTER TABLE t ALTER COLUMN b SET STORAGE EXTERNAL", "ALTER TABLE t ADD COLUMN c int")
    run(db, "INSERT INTO t VALUES (1, repeat('x', 10000), 1)")
    with Driven(source(pg_url, slot="strict")) as strict, Driven(source(pg_url, slot="lax", unchanged="null")) as lax:
        strict.take(1)
        lax.take(1)
        run(db, "UPDATE t SET c = 2")
        with pytest.raises(NotReplicable, match="REPLICA IDENTITY FULL"):
            strict.take(1)
        assert [(row["b"], row["c"]) for row in lax.take(1)] == [(None, 2)]
        run(db, "ALTER TABLE t REPLICA IDENTITY FULL")
        run(db, "UPDATE t SET c = 3")
        before, after = lax.take(2)
        assert before["b"] == after["b"] == "x" * 10_000


def test_what_a_table_must_have_is_said_when_the_source_is_made(
    pg_url: str, db: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    run(db, "CREATE TABLE nokey (id int)", "CREATE TABLE named (id int PRIMARY KEY, kind text)")
    run(db, "CREATE VIEW v AS SELECT * FROM t", "CREATE TABLE mute (id int PRIMARY KEY)")
    run(db, "ALTER TABLE mute REPLICA IDENTITY NOTHING")
    with pytest.raises(TableMismatch, match="has no primary key"):
        source(pg_url, "nokey")
    with pytest.raises(NotReplicable, match="replica identity sends nothing"):
        source(pg_url, "nokey", snapshot=False)
    with pytest.raises(TableMismatch, match="called kind"):
        source(pg_url, "named")
    with pytest.raises(NotReplicable, match="is no table"):
        source(pg_url, "v", key="id")
    with pytest.raises(NotReplicable, match="sends nothing, wanted id"):
        source(pg_url, "mute")
    with pytest.raises(ValueError, match="lower-case letters"):
        source(pg_url, slot="No")
    with caplog.at_level(logging.WARNING):
        source(pg_url)
    assert "values of b that are stored out of line" in caplog.text


def test_a_publication_that_leaves_something_out_is_refused(pg_url: str, db: psycopg.Connection[Any]) -> None:
    run(db, "CREATE PUBLICATION few FOR TABLE t WITH (publish = 'insert, update')")
    run(db, "CREATE PUBLICATION rows FOR TABLE t WHERE (id > 5)", "CREATE PUBLICATION names FOR TABLE t (id)")
    run(db, "CREATE PUBLICATION none")
    for publication, said in (
        ("few", "leaves out delete, truncate"),
        ("rows", "leaves out rows"),
        ("names", "leaves out the columns b"),
        ("none", "does not have t"),
    ):
        with Driven(source(pg_url, publication=publication)) as driven, pytest.raises(NotReplicable, match=said):
            driven.take(1)


def test_a_server_without_logical_log_and_a_role_that_may_not_are_refused(
    pg_url: str, db: psycopg.Connection[Any]
) -> None:
    run(db, "CREATE ROLE meek LOGIN PASSWORD 'meek'", "GRANT SELECT ON t TO meek")
    try:
        with pytest.raises(NotReplicable, match="ALTER ROLE meek REPLICATION"):
            source(pg_url.replace("understudy:s3cret", "meek:meek"), slot="meek")
    finally:
        run(db, "DROP OWNED BY meek", "DROP ROLE meek")


def test_the_schema_is_known_and_only_one_subtask_reads(pg_url: str, db: psycopg.Connection[Any]) -> None:
    made = source(pg_url)
    assert made.source_schema().field("id").type == pa.int32()
    with Driven(made, subtask=1, parallelism=2) as idle:
        assert idle.source.poll() is None
        assert idle.source.current_splits() == []
        assert idle.source.offset() is None
    with Driven(source(pg_url)) as reading:
        run(db, "INSERT INTO t VALUES (1, 'a')")
        reading.take(1)
        offset = reading.source.offset()
    again = source(pg_url)
    with Driven(again) as rescaled:
        again.rescale([None, offset])
        run(db, "INSERT INTO t VALUES (2, 'b')")
        assert short(rescaled.take(1)) == [("+I", 2, "b")]
