"""The server of the tests: it keeps what was committed when it is killed, and databases are the test's own."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from . import given
from .postgresql import PostgreSQL, pg_url, postgresql  # noqa: F401

pytestmark = pytest.mark.processes


@pytest.fixture
def own_server() -> Iterator[PostgreSQL]:
    server = given(PostgreSQL)
    yield server
    server.stop()


def test_what_was_committed_is_there_after_a_kill(own_server: PostgreSQL) -> None:
    name = own_server.create_database()
    connection = own_server.connect(name)
    connection.execute("CREATE TABLE t (a int)")
    connection.execute("INSERT INTO t VALUES (1)")
    own_server.kill()
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    own_server.start()
    with own_server.connect(name) as again:
        assert again.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_a_database_is_the_tests_own_and_changes_can_be_followed(pg_url: str) -> None:  # noqa: F811
    with psycopg.connect(pg_url) as connection:
        assert connection.execute("SHOW wal_level").fetchone() == ("logical",)
        assert connection.execute("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'")
