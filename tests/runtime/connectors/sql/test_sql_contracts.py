"""The kit's contracts: the connectors are killed, refused, frozen and cut off at each of their calls to the "
"database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, event

from understudy import Source
from understudy.actors.operators.operator import Operator
from understudy.messages import make_rows
from understudy.runtime.connectors.sql.changes import postgres_changes
from understudy.runtime.connectors.sql.changes.postgres_changes import PostgresChanges
from understudy.runtime.connectors.sql.sql_sinks import SqlSink, SqlUpsertSink
from understudy.runtime.connectors.sql.sql_source import SqlSource
from understudy.testing import SinkContract, SourceContract

pytestmark = [pytest.mark.processes, pytest.mark.drawn]

ROWS = 20


class WithConnections:
    """The connections of a process that is killed are closed. Here nothing but SQLAlchemy dies, which holds its own."""

    _opened: list[Any]
    _kills = False

    @pytest.fixture(autouse=True)
    def _connections(self) -> Iterator[None]:
        def opened(connection: Any, _record: Any) -> None:
            self.end_connections()
            self._opened.append(connection)

        self._opened = []
        event.listen(Engine, "connect", opened)
        yield
        event.remove(Engine, "connect", opened)

    def end_connections(self) -> None:
        """Of attempts that were killed; a zombie keeps its own. An attempt has one at a time."""
        while self._kills and self._opened:
            connection = self._opened.pop()
            if isinstance(connection, psycopg.Connection):
                connection.pgconn.finish()  # as the death of its process does: the killed thread may hold its lock
                continue
            with suppress(sqlite3.ProgrammingError):  # closed already
                connection.rollback()
            connection.close()

    def _at_each_call(self, what: Any, done: str) -> None:
        self._kills = what == "kill"
        super()._at_each_call(what, done)  # type: ignore[misc]

    def _two_at_a_time(self) -> None:
        self._kills = True
        super()._two_at_a_time()  # type: ignore[misc]


class OnSqlite(WithConnections):
    """Each run has a database of its own."""

    folder: Path
    runs = 0
    with_key = False

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @property
    def path(self) -> Path:
        return self.folder / f"{self.runs}.db"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}?timeout=0.01"

    def clear(self) -> None:
        self.end_connections()
        self.runs += 1
        with sqlite3.connect(self.path) as connection:
            connection.execute(f"CREATE TABLE t (id integer {'PRIMARY KEY' if self.with_key else ''}, value text)")

    def contents(self) -> Iterable[Any]:
        with sqlite3.connect(self.path) as connection:
            return [{"id": id, "value": value} for id, value in connection.execute("SELECT id, value FROM t")]


class OnPostgresql(WithConnections):
    """The table is emptied for each run; what earlier ones left open is ended."""

    url: str
    with_key = False

    @pytest.fixture(autouse=True)
    def _url(self, pg_url: str) -> None:
        self.url = pg_url
        with psycopg.connect(pg_url) as connection:
            key = "PRIMARY KEY" if self.with_key else ""
            connection.execute(f"CREATE TABLE t (id integer {key}, value text)")  # type: ignore[arg-type, unused-ignore]

    def clear(self) -> None:
        self.end_connections()
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        with psycopg.connect(self.url) as connection:
            connection.execute(others + "pg_backend_pid()")
            connection.execute("TRUNCATE t")

    def contents(self) -> Iterable[Any]:
        with psycopg.connect(self.url) as connection:
            return [{"id": id, "value": value} for id, value in connection.execute("SELECT id, value FROM t")]


class TestSqlSinkOnSqlite(OnSqlite, SinkContract):
    outside = ("sqlite3",)
    most_points = 14

    def make_sink(self) -> Operator:
        return SqlSink(self.url, "t")


class TestSqlUpsertSinkOnSqlite(OnSqlite, SinkContract):
    outside = ("sqlite3",)
    guarantee = "upsert"
    with_key = True
    most_points = 14

    def make_sink(self) -> Operator:
        self.end_connections()
        return SqlUpsertSink(self.url, "t", key="id")


@pytest.mark.slow
class TestSqlSinkOnPostgresql(OnPostgresql, SinkContract):
    outside = ("psycopg",)
    most_points = 14

    def make_sink(self) -> Operator:
        return SqlSink(self.url, "t", statement_timeout_ms=5_000)


class TestSqlSourceOnSqlite(OnSqlite, SourceContract):
    """Pages are read on a thread of its own."""

    outside = ("sqlite3",)

    with_key = True
    most_points = 8

    def clear(self) -> None:
        super().clear()
        with sqlite3.connect(self.path) as connection:
            connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, f"value {i}") for i in range(ROWS)])

    def end_connections(self) -> None:
        """None is closed: a thread of the killed attempt may be in a statement, and SQLite's library crashes when its
        connection is closed meanwhile. Each run has a database of its own, so an old one is in no other's way.
        """
        self._opened.clear()

    def make_source(self) -> Source:
        return SqlSource(self.url, "t", splits=2, batch_rows=3, page_rows=5)

    def wanted(self) -> Iterable[Any]:
        return list(make_rows(("id", "value"), ((i, f"value {i}") for i in range(ROWS))))


@pytest.mark.slow
class TestPostgresChanges(OnPostgresql, SourceContract):
    """One subtask reads, on a thread of its own, so there is nothing to rescale."""

    outside = ("psycopg",)

    with_key = True
    most_points = 10
    parallelisms = (1,)

    def clear(self) -> None:
        slot = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'contract'"
        super().clear()
        with psycopg.connect(self.url, autocommit=True) as connection:
            while connection.execute("SELECT 1 FROM pg_replication_slots WHERE active").fetchone():
                pass
            connection.execute(slot)
            connection.execute("INSERT INTO t SELECT i, 'value ' || i FROM generate_series(0, %s) i", [ROWS - 1])

    def make_source(self) -> Source:
        return PostgresChanges(self.url, "t", slot="contract", columns=["id", "value"], batch_rows=3)

    def wanted(self) -> Iterable[Any]:
        return [("+I", i, f"value {i}") for i in range(ROWS)]

    def compared(self, record: Any) -> Any:
        """Without its place in the log."""
        return record["kind"], record["id"], record["value"]


@pytest.mark.slow
class TestPostgresChangesOfTheLog(TestPostgresChanges):
    """All rows come by the stream of changes: the slot is there before them. What is read ahead has little room."""

    @pytest.fixture(autouse=True)
    def _little_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgres_changes, "_MOST_BATCHES", 2)

    def clear(self) -> None:
        super().clear()
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("TRUNCATE t")
            connection.execute("DROP PUBLICATION IF EXISTS contract_publication")
            connection.execute("CREATE PUBLICATION contract_publication FOR TABLE t")
            connection.execute("SELECT pg_create_logical_replication_slot('contract', 'pgoutput')")
            for first in range(0, ROWS, 4):
                with connection.transaction():
                    for id in range(first, first + 4):
                        connection.execute("INSERT INTO t VALUES (%s, %s)", [id, f"value {id}"])

    def make_source(self) -> Source:
        return PostgresChanges(self.url, "t", slot="contract", columns=["id", "value"], batch_rows=3, snapshot=False)


def moves_its_position_at_fetch(patch: pytest.MonkeyPatch) -> None:
    def offset(self: Any) -> Any:
        read = self._reader and self._reader._position
        position = read or self._position
        return None if position is None else position.to_plain()

    patch.setattr(PostgresChanges, "offset", offset)


def loses_what_finds_no_room(patch: pytest.MonkeyPatch) -> None:
    def put(self: Any, batch: Any, position: Any) -> None:
        self._ready.append((batch if len(self._ready) < 2 else None, position))
        self.context.wake()

    patch.setattr(PostgresChanges, "_put", put)


def confirms_what_waits_when_it_is_closed(patch: pytest.MonkeyPatch) -> None:
    closed = PostgresChanges.close

    def close(self: Any) -> None:
        stream = self._reader and self._reader._stream
        if stream is not None and self._ready:
            stream.confirm(self._ready[-1][1].lsn)
            stream.tend()
        closed(self)

    patch.setattr(PostgresChanges, "close", close)


@pytest.mark.slow
class TestMistakes(OnPostgresql):
    """Each is found, and by which test."""

    with_key = True

    @pytest.mark.parametrize(
        ("mistake", "test"),
        [
            (moves_its_position_at_fetch, "test_a_checkpoint_at_each_moment_of_its_threads"),
            (loses_what_finds_no_room, "test_its_threads_have_their_turns_in_other_orders"),
            (confirms_what_waits_when_it_is_closed, "test_a_cancel_at_each_moment_of_its_threads"),
        ],
        ids=lambda it: getattr(it, "__name__", None),
    )
    def test_a_mistake_in_the_thread_or_behind_it_is_found(
        self, mistake: Any, test: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        contract = TestPostgresChangesOfTheLog()
        contract.url, contract.timeout, contract.most_points = self.url, 3, 60  # type: ignore[misc]
        contract._opened = []
        mistake(monkeypatch)
        with pytest.raises(AssertionError) as caught:
            getattr(contract, test)()
        print(caught.value)
