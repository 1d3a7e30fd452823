"""PostgresChanges where something cannot be: a named error, and never a gap."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from understudy.runtime.connectors.sql.errors import (
    ChangesLost,
    NoSuchTable,
    NotReplicable,
    SlotInUse,
    TableChanged,
    TableMismatch,
)

from .driving import Driven
from .table_changes import reading, run, short, source

pytestmark = pytest.mark.processes


def test_a_slot_that_is_gone_or_has_gone_on_is_an_error_and_never_a_gap(
    pg_url: str, db: psycopg.Connection[Any]
) -> None:
    with reading(pg_url, db) as first:
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
    with reading(pg_url, db) as driven:
        replace_table(db, how)
        with pytest.raises(ChangesLost, match="t is another table"):
            driven.take(1)


@pytest.mark.parametrize("how", ["made again", "renamed"])
def test_changes_of_another_table_of_the_name_are_not_taken_for_its_own(
    pg_url: str, db: psycopg.Connection[Any], how: str
) -> None:
    db.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    with reading(pg_url, db, publication="everything") as driven:
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
    with reading(pg_url, db) as driven:
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
    with reading(pg_url, db) as first:
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
    with reading(pg_url, db) as driven:
        run(db, change.format(pg_url.rpartition("/")[2]))
        with pytest.raises(error, match=said):
            driven.take(1)


OUT, IN = "ALTER PUBLICATION {0}_publication DROP TABLE t", "ALTER PUBLICATION {0}_publication ADD TABLE t"


def out_for_a_while(pg_url: str, db: psycopg.Connection[Any]) -> None:
    """What comes meanwhile is never sent, and nothing says so."""
    name = pg_url.rpartition("/")[2]
    run(db, OUT.format(name), "INSERT INTO t VALUES (2, 'lost')", IN.format(name))


def test_a_table_that_was_taken_out_of_the_publication_for_a_while_is_noticed(
    pg_url: str, db: psycopg.Connection[Any], look_often: None
) -> None:
    with reading(pg_url, db) as driven:
        out_for_a_while(pg_url, db)
        with pytest.raises(ChangesLost, match=r"taken out of publication '.*_publication' and put in again"):
            driven.take(1)


def test_a_table_that_was_out_of_the_publication_between_two_attempts_is_noticed(
    pg_url: str, db: psycopg.Connection[Any]
) -> None:
    with reading(pg_url, db) as first:
        offset = first.source.offset()
    out_for_a_while(pg_url, db)
    with Driven(source(pg_url), offset, attempt=1) as second, pytest.raises(ChangesLost, match="put in again"):
        second.take(1)


def test_other_tables_of_its_publication_may_come_and_go(
    pg_url: str, db: psycopg.Connection[Any], look_often: None
) -> None:
    name = pg_url.rpartition("/")[2]
    with reading(pg_url, db) as first:
        run(db, "CREATE TABLE other (id int)", f"ALTER PUBLICATION {name}_publication SET TABLE other, t")
        run(db, "INSERT INTO t VALUES (2, 'b')")
        assert short(first.take(1)) == [("+I", 2, "b")]
        offset = first.source.offset()
    run(db, f"ALTER PUBLICATION {name}_publication DROP TABLE other")
    with Driven(source(pg_url), offset, attempt=1) as second:
        run(db, "INSERT INTO t VALUES (3, 'c')")
        assert short(second.take(1)) == [("+I", 3, "c")]


def test_an_offset_from_before_publications_were_told_apart_goes_on(pg_url: str, db: psycopg.Connection[Any]) -> None:
    with reading(pg_url, db) as first:
        offset = first.source.offset()
    del offset["published"]
    with Driven(source(pg_url), offset, attempt=1) as second:
        run(db, "INSERT INTO t VALUES (2, 'b')")
        assert short(second.take(1)) == [("+I", 2, "b")]
        assert second.source.offset()["published"]


def test_a_slot_of_another_job_is_not_taken(
    pg_url: str, db: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.runtime.connectors.sql.changes.changed_table._HANDOVER_S", 0.3)
    with (
        reading(pg_url, db),
        Driven(source(pg_url), job="another") as second,
        pytest.raises(SlotInUse, match="slot of its own"),
    ):
        second.take(1)


def test_a_slot_of_another_kind_is_refused(pg_url: str, db: psycopg.Connection[Any]) -> None:
    db.execute("SELECT pg_create_logical_replication_slot(current_database(), 'test_decoding')")
    with Driven(source(pg_url)) as driven, pytest.raises(NotReplicable, match="plug-in test_decoding"):
        driven.take(1)


def test_a_column_that_is_added_is_named_and_the_job_goes_on_when_it_was_made_again(
    pg_url: str, db: psycopg.Connection[Any]
) -> None:
    with reading(pg_url, db) as first:
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
    with reading(pg_url, db) as first:
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
    with reading(pg_url, db) as busy:
        offset = busy.source.offset()
    again = source(pg_url)
    with Driven(again) as rescaled:
        again.rescale([None, offset])
        run(db, "INSERT INTO t VALUES (2, 'b')")
        assert short(rescaled.take(1)) == [("+I", 2, "b")]
