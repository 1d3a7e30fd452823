"""What a failover shows for some seconds: a server that only reads, or lets nobody in. It is waited for, and no mistake
of the job; when the job is made or submitted it is one.
"""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine

from understudy import JobStatus, LocalCluster, StreamEnvironment, fixed_delay
from understudy.actors.errors import OutsideUnavailable
from understudy.actors.failure import describe
from understudy.runtime.connectors.sql.changes.postgres_changes import PostgresChanges
from understudy.runtime.connectors.sql.database import Database
from understudy.runtime.connectors.sql.errors import ChangesLost, DatabaseRefused, DatabaseUnreachable, NotReplicable
from understudy.runtime.connectors.sql.sql_sinks import SqlSink, SqlUpsertSink
from understudy.runtime.connectors.sql.sql_source import SqlSource
from understudy.testing import OperatorHarness

from ....systems import given
from ....systems.postgresql import PASSWORD, USER, PostgreSQL
from ...clusters.jobs import WAIT_S, Witness
from .databases import asked, lite
from .driving import Driven
from .table_changes import short, source

pytestmark = pytest.mark.processes

ROLE = "writer"
CLOSINGS = {
    "no login": (f"ALTER ROLE {ROLE} NOLOGIN", f"ALTER ROLE {ROLE} LOGIN"),
    "no right to connect": (
        "REVOKE CONNECT ON DATABASE {0} FROM PUBLIC, " + ROLE,
        "GRANT CONNECT ON DATABASE {0} TO PUBLIC",
    ),
    "another password": (f"ALTER ROLE {ROLE} PASSWORD 'an0ther'", f"ALTER ROLE {ROLE} PASSWORD '{PASSWORD}'"),
    "no connections": ("ALTER DATABASE {0} ALLOW_CONNECTIONS false", "ALTER DATABASE {0} ALLOW_CONNECTIONS true"),
    "only reads": (
        "ALTER DATABASE {0} SET default_transaction_read_only = on",
        "ALTER DATABASE {0} SET default_transaction_read_only = off",
    ),
}
"""How a server is closed, and opened again."""
FOR_STRANGERS = [how for how in CLOSINGS if how != "another password"]
"""Also for a process that it never let in: to that one a wrong password is a mistake of the job."""


class Door:
    """A database whose only user may be shut out of it."""

    def __init__(self, server: PostgreSQL, name: str) -> None:
        self._server, self._name = server, name
        self.url = server.dsn(name).replace(f"{USER}:", f"{ROLE}:")

    def close(self, how: str) -> None:
        self.run(CLOSINGS[how][0])
        self.run(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '{ROLE}'")

    def open(self, how: str) -> None:
        self.run(CLOSINGS[how][1])

    def run(self, statement: str) -> None:
        asked(self._server.dsn("postgres"), statement.format(self._name))


@pytest.fixture
def door(postgresql: PostgreSQL, pg_url: str) -> Iterator[Door]:
    name = pg_url.rpartition("/")[2]
    made = f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'"
    asked(pg_url, made, f"GRANT CREATE ON SCHEMA public TO {ROLE}", "CREATE TABLE t (id int PRIMARY KEY)")
    asked(pg_url, "INSERT INTO t VALUES (1)", f"ALTER TABLE t OWNER TO {ROLE}")
    door = Door(postgresql, name)
    yield door
    for how in CLOSINGS:
        door.open(how)
    asked(pg_url, f"DROP OWNED BY {ROLE} CASCADE", f"DROP ROLE {ROLE}")


class Opener(logging.Handler):
    """Opens the door when the log says that it is tried again."""

    def __init__(self, open_it: Callable[[], object]) -> None:
        super().__init__(logging.WARNING)
        self._open_it = open_it
        self.waited = 0

    def emit(self, record: logging.LogRecord) -> None:
        if "trying for" in record.getMessage():
            self.waited += 1
            self._open_it()


@contextmanager
def opening(open_it: Callable[[], object]) -> Iterator[Opener]:
    handler, logger = Opener(open_it), logging.getLogger(Database.__module__)
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)


@pytest.fixture
def opener(door: Door) -> Iterator[Opener]:
    """Opens whatever is closed."""
    with opening(lambda: [door.open(how) for how in CLOSINGS]) as handler:
        yield handler


def written(sink: SqlSink) -> OperatorHarness:
    """A harness in which a row was taken and its checkpoint is complete."""
    harness = OperatorHarness(sink)
    harness.process([{"id": 2}])
    harness.complete(harness.snapshot())
    return harness


@pytest.mark.parametrize("how", [how for how in FOR_STRANGERS if how != "only reads"])
def test_a_sink_that_opens_waits_for_it(how: str, door: Door, opener: Opener) -> None:
    door.close(how)
    with written(SqlSink(door.url, "t")):
        pass
    assert opener.waited == 1
    assert asked(door.url, "SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_sink_that_opens_at_a_server_that_only_reads_writes_when_it_may(door: Door) -> None:
    door.close("only reads")
    with written(SqlSink(door.url, "t")) as harness:
        assert asked(door.url, "SELECT id FROM t ORDER BY id") == [(1,)]
        door.open("only reads")
        harness.advance(10_000)
        assert asked(door.url, "SELECT id FROM t ORDER BY id") == [(1,), (2,)]


@pytest.mark.parametrize("how", CLOSINGS)
@pytest.mark.parametrize("kind", [SqlSink, SqlUpsertSink])
def test_a_sink_that_writes_tries_again(kind: type[SqlSink | SqlUpsertSink], how: str, door: Door) -> None:
    with OperatorHarness(kind(door.url, "t", key="id")) as harness:
        harness.process([{"id": 2}])
        snapshot = harness.snapshot()
        door.close(how)
        harness.complete(snapshot)
        harness.advance(10_000)
        door.open(how)
        harness.advance(10_000)
        assert asked(door.url, "SELECT id FROM t ORDER BY id") == [(1,), (2,)]


@pytest.mark.parametrize("how", [how for how in CLOSINGS if how != "only reads"])
def test_a_source_that_reads_tries_again(how: str, door: Door, opener: Opener) -> None:
    made = SqlSource(door.url, "t")
    door.close(how)
    with Driven(made) as driven:
        assert driven.rows() == [{"id": 1}]
    assert opener.waited == 1


def test_a_password_that_is_changed_is_waited_for_by_who_was_let_in_with_it(door: Door, opener: Opener) -> None:
    with Database(door.url).connect():
        pass
    door.close("another password")
    with written(SqlSink(door.url, "t")):
        assert opener.waited
    door.close("another password")
    with pytest.raises(DatabaseUnreachable, match="It let this user in until 20") as away:
        Database(door.url, retry_ms=0).connect()
    assert "from the job's last checkpoint" in str(away.value)
    assert PASSWORD not in str(away.value)
    assert "have probably changed" in str(away.value)
    assert "the job goes on as its restart strategy lets it" in str(away.value)
    assert "written twice" not in str(away.value), "a sink may be at-least-once"
    with pytest.raises(DatabaseRefused, match="authentication failed"):
        Database(door.url).connect_to_look()
    with pytest.raises(DatabaseRefused, match="authentication failed"):
        Database(door.url.replace(PASSWORD, "n0t-ever")).connect()


def _meant(database: Database) -> type[Exception]:
    """By a password that is not right."""
    error = psycopg.OperationalError('FATAL:  password authentication failed for user "u"')
    return type(database.meaning(error, "connect", is_first_look=False))


def test_an_engine_of_a_function_was_let_in_only_if_it_was_itself(tmp_path: Path) -> None:
    """The user and the password may be in `creator=` or `connect_args`, and the URLs the same."""
    url = lite(tmp_path)
    let_in, stranger = create_engine(url), create_engine(url)
    with Database(lambda: let_in).connect():
        pass
    assert _meant(Database(lambda: let_in)) is DatabaseUnreachable
    assert _meant(Database(lambda: stranger)) is DatabaseRefused
    assert _meant(Database(url)) is DatabaseRefused


@pytest.mark.parametrize("given", [f"postgresql://me:{PASSWORD}@host/db", None])
def test_a_function_that_gives_no_engine_is_refused_with_what_is_wanted(given: Any) -> None:
    with pytest.raises(TypeError, match=rf"url: the function gave a {type(given).__name__}; wanted .*Engine") as raised:
        Database(lambda: given)
    assert PASSWORD not in str(raised.value)


def test_an_engine_that_a_function_gives_again_is_listened_to_once(tmp_path: Path) -> None:
    engine = create_engine(lite(tmp_path))
    before = len(engine.pool.dispatch.connect)
    for _ in range(3):
        assert Database(lambda: engine).engine is engine
    assert len(engine.pool.dispatch.connect) == before + 1


def test_nothing_is_kept_of_an_engine_that_is_gone(tmp_path: Path) -> None:
    url = lite(tmp_path)
    engine = weakref.ref(Database(lambda: create_engine(url)).engine)
    gc.collect()
    assert engine() is None


@pytest.mark.parametrize("how", FOR_STRANGERS)
def test_when_it_takes_too_long_the_failure_is_one_that_may_pass(how: str, door: Door) -> None:
    door.close(how)
    with pytest.raises(Exception) as raised:  # noqa: PT011
        written(SqlSink(door.url, "t", retry_ms=0))
    assert not describe(raised.value).repeatable
    chain = [raised.value, raised.value.__cause__]
    assert any(isinstance(error, DatabaseUnreachable | OutsideUnavailable) for error in chain), chain


@pytest.mark.parametrize("how", [how for how in CLOSINGS if how not in ("no connections", "only reads")])
def test_who_makes_a_source_is_refused_at_once(how: str, door: Door, opener: Opener) -> None:
    door.close(how)
    with pytest.raises(DatabaseRefused):
        SqlSource(door.url, "t")
    assert not opener.waited


def test_who_submits_a_sink_of_a_server_that_only_reads_is_refused_at_once(door: Door, opener: Opener) -> None:
    door.close("only reads")
    with pytest.raises(DatabaseRefused, match=r"takes no changes: .*read-only.*a standby"):
        SqlSink(door.url, "t").check_at_submit(on_this_machine=True)
    assert not opener.waited


@pytest.mark.chaos
@pytest.mark.usefixtures("forked_templates")
@pytest.mark.parametrize("how", ["no login", "only reads"])
def test_a_job_outlives_it_with_any_number_of_restarts(how: str, door: Door) -> None:
    """More than `max_same_failures`, though each attempt waits for nothing."""
    env = StreamEnvironment(
        parallelism=1,
        checkpoint_interval_ms=50,
        restart_strategy=fixed_delay(attempts=1000, delay_ms=10),
        max_same_failures=2,
    )
    env.generate(_row, count=40, records_per_second=40).to_sql(door.url, "t", retry_ms=0)
    with LocalCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        witness = Witness(job)
        witness.checkpoints(1)
        door.close(how)
        witness.status(JobStatus.RESTARTING, times=6)
        door.open(how)
        job.wait(timeout=WAIT_S)
    assert asked(door.url, "SELECT id FROM t ORDER BY id") == [(number,) for number in range(1, 42)]


def _row(number: int) -> dict[str, int]:
    return {"id": number + 2}


# -- the changes of a table


@pytest.fixture
def own_server() -> Iterator[PostgreSQL]:
    server = given(PostgreSQL)
    yield server
    server.stop()


@pytest.fixture
def promoting(own_server: PostgreSQL) -> Iterator[Opener]:
    """Makes it the primary when it is tried again."""
    with opening(lambda: asked(own_server.dsn("postgres"), "SELECT pg_promote()")) as handler:
        yield handler


def test_changes_are_followed_on_when_a_standby_has_become_the_primary(
    own_server: PostgreSQL, promoting: Opener
) -> None:
    url, made, offset = followed(own_server)
    asked(url, "INSERT INTO t VALUES (2, 'b')")
    as_standby(own_server)
    with pytest.raises(NotReplicable, match="is a standby"):
        source(url)
    with Driven(made, offset) as driven:
        assert short(driven.take(1)) == [("+I", 2, "b")]
    assert promoting.waited == 1


def test_a_slot_that_a_standby_has_not_is_no_change_that_is_lost(own_server: PostgreSQL, promoting: Opener) -> None:
    """The other server may be back, or the slot come; when this one is the primary, it is."""
    url, made, offset = followed(own_server)
    as_standby(own_server)
    asked(url, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
    with Driven(made, offset) as driven, pytest.raises(ChangesLost, match="is not there any more"):
        driven.take(1)
    assert promoting.waited == 1


def followed(server: PostgreSQL) -> tuple[str, PostgresChanges, Any]:
    """The URL of a database of this server, and a source that has followed its table, with its offset."""
    url = server.dsn(server.create_database())
    asked(url, "CREATE TABLE t (id int PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'a')")
    made = source(url)
    with Driven(made) as driven:
        driven.take(1)
        return url, made, driven.source.offset()


def as_standby(server: PostgreSQL) -> None:
    """Start it anew as one."""
    server.kill()
    server.become_standby()
    server.start()
