"""Database: where a database is and how patiently it is used. Plain data that travels with the job; connects where it
is used, and says what an error means: try again, or somebody has to do something.

A password is in the URL and nowhere else: no text made here shows it. Statements are not at home here.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

from ....actors.operators.patience import RETRY_MS
from ....actors.setting_limits import whole_setting
from ....messages.attributes import attributes_of
from ....messages.shown_url import url_shown
from ..errors import check_extra
from .errors import DatabaseRefused, DatabaseUnreachable, NoSuchTable, SqlError, StatementFailed

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

log = logging.getLogger(__name__)

T = TypeVar("T")
CONNECT_S = 10
STATEMENT_TIMEOUT_MS: Final = 600_000
"""How long a statement of a source or sink may take by default."""
LOOK_MS = 5_000
"""How long who makes or submits a job waits for a database that does not answer."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
_LOCK_S = 1.0
"""How long SQLite waits for whoever writes, within a call; then it is tried again."""
_GRACE_S = 5.0
"""How much longer than the server's own limit we wait for it to say that a statement took too long."""

_CONNECT = "connect"
_LOOK = "connect to look at the table, before the job starts"

_REFUSING = ("28", "3D", "42501", "0P", "0A000")
"""SQLSTATEs, or how they begin: authorization, no such database, privileges, role, not supported."""
_MISSING = ("42P01", "3F000")
_PASSING = (
    *("08", "53", "57P01", "57P02", "57P03", "57P05", "25P03", "25P04"),
    *("25006", "40001", "40P01", "55P03", "55006", "58030"),
)
"""Connections, resources (a full disk too), shutdown, connections that were idle and transactions that were open for
too long, a server that only reads, as while another one takes over, conflicts between transactions, locks, what is in
use, and the disk's errors.
"""

_REFUSAL_WORDS = ("authentication failed", "no password supplied", "does not exist", "pg_hba.conf", "permission denied")
"""While connecting, libpq gives no SQLSTATE."""
_SHUT_WORDS = ("not permitted to log in", "permission denied for database")
"""The same of a role or a database that lets nobody in. Who looks before the job starts is refused; later somebody has
shut it, as while another server takes over, and it is waited for.
"""
_WITHDRAWN_WORDS = ("authentication failed", "pg_hba.conf")
"""The same of who has been let in before, by this process and with this password: it has been changed since."""


class _Logins:
    """When this process made its last connection, by the clock of the wall; None: it has made none."""

    last_s: float | None = None

    def note(self, *_: Any) -> None:
        self.last_s = time.time()


_LOGINS: dict[URL, _Logins] = {}
"""By URL, password and all."""
_LOGINS_OF_ENGINES: WeakKeyDictionary[Engine, _Logins] = WeakKeyDictionary()
"""Of those that users made: they may log in otherwise than their URLs say."""


class Database:
    """`url`: as SQLAlchemy takes it, or a function without arguments that makes an Engine, where it needs more."""

    def __init__(
        self,
        url: str | Callable[[], Engine],
        *,
        retry_ms: int = RETRY_MS,
        statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
    ) -> None:
        for name, value in (("retry_ms", retry_ms), ("statement_timeout_ms", statement_timeout_ms)):
            whole_setting(name, value, 0 if name == "retry_ms" else 1)
        check_extra("sqlalchemy", extra="sql", wanted_by="a source or sink of a database")
        self._url = url
        self.retry_ms = retry_ms
        self.statement_timeout_ms = statement_timeout_ms
        self._made: Engine | None = None
        self.is_postgresql = self.engine.dialect.name == "postgresql"
        self.name = url_shown(self.engine.url.render_as_string(hide_password=True))
        """For messages."""

    def __getstate__(self) -> dict[str, Any]:
        return attributes_of(self) | {"_made": None}

    def __repr__(self) -> str:
        return f"Database({self.name})"

    @property
    def engine(self) -> Engine:
        if self._made is None:
            self._made = _users_engine(self._url) if callable(self._url) else self._engine_of(self._url)
        return self._made

    @property
    def _logins(self) -> _Logins:
        engine = self.engine
        return _LOGINS_OF_ENGINES[engine] if callable(self._url) else _LOGINS[engine.url]

    def note_connection(self) -> None:
        """This process has one, made without the engine."""
        self._logins.note()

    def connect(self, pause: Callable[[float], Any] = time.sleep) -> Connection:
        """A connection, tried again for `retry_ms`. `pause(seconds)` waits in between; raise in it to give up.

        Raises DatabaseUnreachable, or DatabaseRefused at once.
        """
        return self.patiently(self._connected, _CONNECT, pause)

    def connect_to_look(self) -> Connection:
        """The same for who makes or submits a job, and waits: tried again for LOOK_MS, if `retry_ms` is not less."""
        return self.patiently(self._connected, _LOOK, for_ms=min(self.retry_ms, LOOK_MS))

    def _connected(self) -> Connection:
        """Raises DatabaseRefused for a file of SQLite that is not there, which SQLite would make, with no table."""
        file = self._file
        if file is not None and file.parent.is_dir() and not file.exists():
            raise DatabaseRefused(
                f"{self.name}: there is no such file: correct the path in the URL, or make the file and its tables "
                "before the job starts"
            )
        return self.engine.connect()

    @property
    def _file(self) -> Path | None:
        """Of SQLite. None where there is none, and where the user makes the engine: it may connect to another one."""
        url = self.engine.url
        is_file = url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:"
        return Path(str(url.database)) if is_file and "uri" not in url.query and not callable(self._url) else None

    def patiently(
        self, act: Callable[[], T], what: str, pause: Callable[[float], Any] = time.sleep, for_ms: int | None = None
    ) -> T:
        """What `act` returns; called again, for `retry_ms`, or `for_ms`, as long as it fails with what may pass. So it
        must be such that doing it twice does no harm. Raises SqlErrors.
        """
        retry_ms = self.retry_ms if for_ms is None else for_ms
        started, wait_s, has_waited = time.monotonic(), _FIRST_PAUSE_S, False
        while True:
            try:
                done = act()
            except SqlError:
                raise
            except Exception as error:
                meant = self.meaning(error, what, is_first_look=for_ms is not None)
                if meant is None:
                    raise
                waited_s = time.monotonic() - started
                if not isinstance(meant, DatabaseUnreachable) or waited_s + wait_s > retry_ms / 1000:
                    raise meant from error
                if not has_waited:
                    log.warning("%s, trying for %g s", meant, retry_ms / 1000)
                has_waited = True
                pause(wait_s)
                wait_s = min(wait_s * 2, _LONGEST_PAUSE_S)
            else:
                if has_waited:
                    log.warning("%s: answers again after %.1f s", self.name, time.monotonic() - started)
                return done

    @contextmanager
    def translated(self, what: str) -> Iterator[None]:
        """Whatever the database raises within comes out as a SqlError."""
        try:
            yield
        except SqlError:
            raise
        except Exception as error:
            meant = self.meaning(error, what)
            if meant is None:
                raise
            raise meant from error

    def meaning(self, error: BaseException, what: str, *, is_first_look: bool = False) -> SqlError | None:
        """The SqlError that says it; None if it is none of the database's. `is_first_look`: before the job starts."""
        from sqlalchemy.exc import DBAPIError, NoSuchTableError, SQLAlchemyError

        if isinstance(error, NoSuchTableError):
            return NoSuchTable(f"{self.name}: cannot {what}: there is no table {error}")
        if isinstance(error, DBAPIError):
            said: BaseException = error.orig or error
            is_lost = error.connection_invalidated
        elif isinstance(error, SQLAlchemyError):
            return StatementFailed(f"{self.name}: cannot {what}: {error}")
        elif isinstance(error, sqlite3.Error) or _is_psycopg(error):
            said, is_lost = error, False
        else:
            return None
        kind = _kind_of(said, is_lost, is_first_look)
        if kind is DatabaseRefused and not is_first_look and (since := self._let_in_until(said)):
            return DatabaseUnreachable(f"{self.name}: cannot {what}: {_one_line(said)}{_WITHDRAWN.format(since=since)}")
        advice = self._advice(kind) if what in (_CONNECT, _LOOK) else ""
        return kind(f"{self.name}: cannot {what}{advice}: {_one_line(said)}")

    def _let_in_until(self, error: BaseException) -> str:
        """When this process was let in last, of one that is not any more; empty: never, or it lacks something else."""
        at = self._logins.last_s
        if at is None or not any(each in str(error).lower() for each in _WITHDRAWN_WORDS):
            return ""
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))

    def _advice(self, kind: type[SqlError]) -> str:
        """To whom this keeps from connecting."""
        if kind is DatabaseRefused and self.engine.dialect.name == "sqlite":
            return " (check the path: its folder must be there, and the file be one of SQLite's that may be written)"
        if kind is DatabaseRefused:
            return " (correct user, password or database in the URL)"
        return " (check host and port, and that the server runs)" if kind is DatabaseUnreachable else ""

    @contextmanager
    def deadline(self, connection: Any) -> Iterator[None]:
        """Ends what waits for PostgreSQL when the server does not answer at all, as one that is frozen: its own
        `statement_timeout` does not come then. `connection`: psycopg's.
        """
        is_over = threading.Event()

        def give_up() -> None:
            is_over.set()
            shut(connection)

        timer = threading.Timer(self.statement_timeout_ms / 1000 + _GRACE_S, give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        except Exception as error:
            if is_over.is_set():
                raise DatabaseUnreachable(
                    f"{self.name}: no answer within statement_timeout_ms = {self.statement_timeout_ms}"
                ) from error
            raise
        finally:
            timer.cancel()

    @property
    def conninfo(self) -> str:
        """PostgreSQL's, for a connection without SQLAlchemy. With the password."""
        from psycopg.conninfo import make_conninfo

        url = self.engine.url
        parts = {"host": url.host, "port": url.port, "user": url.username, "password": url.password}
        given: dict[str, Any] = {**parts, "dbname": url.database, "connect_timeout": CONNECT_S, **url.query}
        return make_conninfo(**{name: value for name, value in given.items() if value is not None})

    def _engine_of(self, text: str) -> Engine:
        from sqlalchemy import create_engine, event, make_url
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError
        from sqlalchemy.pool import NullPool

        try:
            url = make_url(text)
            if url.drivername in ("postgresql", "postgres"):
                url = url.set(drivername="postgresql+psycopg")
            options: dict[str, Any] = {}
            if url.drivername == "postgresql+psycopg":
                settings = f"-c statement_timeout={self.statement_timeout_ms} -c timezone=UTC -c datestyle=ISO"
                if "options" not in url.query:
                    options["options"] = f"{settings} -c bytea_output=hex -c intervalstyle=postgres"
                options.setdefault("connect_timeout", CONNECT_S)
            elif url.get_backend_name() == "sqlite":
                if "timeout" not in url.query:
                    options["timeout"] = _LOCK_S
                options["check_same_thread"] = False  # made on one thread and used on another, never on both
            engine = create_engine(url, poolclass=NullPool, connect_args=options)
        except (ArgumentError, NoSuchModuleError, ValueError) as error:
            raise ValueError(
                f"url: wanted one like postgresql://user@host/database or sqlite:///file ({error})"
            ) from error
        event.listen(engine, "connect", _LOGINS.setdefault(engine.url, _Logins()).note)
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", _settle_sqlite)
            event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        return engine


_WITHDRAWN: Final = (
    ". It let this user in until {since}: a password or the rules of the server have probably changed since then. Undo "
    "that, and the job goes on as its restart strategy lets it; or start the program again with a URL that is right "
    "now, from the job's last checkpoint or a savepoint (resume or from_savepoint)"
)


def _users_engine(make: Callable[[], Engine]) -> Engine:
    """It may give the same one each time. Raises TypeError for something else, which may have a password in it."""
    from sqlalchemy import Engine, event

    engine: Any = make()
    if not isinstance(engine, Engine):
        found = type(engine).__name__
        raise TypeError(f"url: the function gave a {found}; wanted an Engine, as sqlalchemy.create_engine(...) gives")
    if engine not in _LOGINS_OF_ENGINES:
        _LOGINS_OF_ENGINES[engine] = logins = _Logins()
        event.listen(engine, "connect", logins.note)
    return engine


def driver_of(connection: Connection) -> Any:
    """The driver's own connection: psycopg's, for the fast path."""
    return connection.connection.driver_connection


def _settle_sqlite(connection: Any, _record: Any) -> None:
    """Transactions begin where we say, so that what is read in one counts."""
    connection.isolation_level = None


def _one_line(error: BaseException) -> str:
    return "; ".join(line.strip() for line in str(error).strip().splitlines())


def _is_psycopg(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] == "psycopg"


def _kind_of(error: BaseException, is_lost: bool, is_first_look: bool) -> type[SqlError]:
    state = getattr(error, "sqlstate", None)
    words = str(error).lower()
    if isinstance(error, sqlite3.Error):
        return _kind_of_sqlite(words)
    if state is not None:
        if state.startswith(_REFUSING):
            return DatabaseRefused
        if state.startswith(_MISSING):
            return NoSuchTable
        return DatabaseUnreachable if state.startswith(_PASSING) else StatementFailed
    if is_lost:
        return DatabaseUnreachable
    if "OperationalError" in type(error).__name__ or "InterfaceError" in type(error).__name__:
        if any(each in words for each in _SHUT_WORDS):
            return DatabaseRefused if is_first_look else DatabaseUnreachable
        return DatabaseRefused if any(each in words for each in _REFUSAL_WORDS) else DatabaseUnreachable
    return StatementFailed


def _kind_of_sqlite(words: str) -> type[SqlError]:
    if "no such table" in words:
        return NoSuchTable
    if any(each in words for each in ("readonly", "read-only", "not a database", "unable to open")):
        return DatabaseRefused
    if any(each in words for each in ("locked", "busy", "is full", "disk i/o")):
        return DatabaseUnreachable
    return StatementFailed


def shut(connection: Any) -> None:
    """Whoever waits for the socket of psycopg's connection, on another thread, sees its end."""
    import os
    import socket

    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as copied:
            copied.shutdown(socket.SHUT_RDWR)
    except Exception:  # noqa: BLE001  (it is closed already)
        log.debug("the connection was closed already")
