"""PostgresChanges: the table, then its changes, without gap or repetition."""

from __future__ import annotations

import time
from typing import Any

import psycopg
import pytest

from understudy import StreamEnvironment
from understudy.messages import CheckpointId
from understudy.runtime.api.translation import translate
from understudy.runtime.connectors.sql.changes.replication_stream import ReplicationStream

from ....systems.postgresql import PostgreSQL
from .driving import Driven
from .table_changes import confirmed, reading, run, short, source, streaming

pytestmark = pytest.mark.processes


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


def test_a_snapshot_that_is_gone_before_it_is_read_is_made_anew(
    pg_url: str, db: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(db, "INSERT INTO t VALUES (1, 'a')")
    ask, exported = ReplicationStream.ask, []

    def asked(stream: ReplicationStream, command: str) -> dict[str, str | None]:
        made = ask(stream, command)
        if "'export'" in command and not exported:
            stream.connection.close()
            exported.append(command)
        return made

    monkeypatch.setattr(ReplicationStream, "ask", asked)
    with Driven(source(pg_url)) as driven:
        assert short(driven.take(1)) == [("+I", 1, "a")]
    assert len(exported) == 1


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
    with reading(pg_url, db) as zombie:
        offset = zombie.source.offset()
        with Driven(source(pg_url), offset, attempt=1) as successor:
            run(db, "INSERT INTO t VALUES (2, 'b')")
            assert short(successor.take(1)) == [("+I", 2, "b")]
