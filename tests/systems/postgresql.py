"""A PostgreSQL server of one's own: data in a temporary folder, a free loopback port, logical replication switched on.

`postgresql` is the fixture: one server for all tests of a worker, a database of its own for each that asks with
`database()`. `kill` ends the server as a crash does, `start` brings it back on the same port with the same data. As
root it runs under another user, since PostgreSQL refuses root.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from tests.free_port import free_port

from . import SystemMissing, given
from .certificate import Certificate
from .with_parent import with_parent

USER, PASSWORD = "understudy", "s3cret"
START_S = 300

_SETTINGS = {
    "listen_addresses": "'127.0.0.1'",
    "wal_level": "logical",
    "max_wal_senders": "40",
    "max_replication_slots": "40",
    "max_connections": "200",
    "max_prepared_transactions": "10",
    "shared_buffers": "'64MB'",
    "wal_sender_timeout": "'60s'",
    "log_min_messages": "warning",
    "max_wal_size": "'4GB'",
}
_QUICK = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "on"}
"""Nothing is lost when processes die, only when the machine does. A server that tests kill has them on all the same."""


class PostgreSQL:
    """One server. Raises SystemMissing where there is none to start."""

    def __init__(self, durable: bool = False, tls: Certificate | None = None, **settings: str) -> None:
        self._binaries = _binaries()
        self._user = _other_user()
        self.folder = Path(tempfile.mkdtemp(prefix="understudy-postgresql-", dir="/tmp"))
        self._data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self.port = free_port()
        try:
            settings |= {} if tls is None else self._with_tls(tls)
            self._initialize({**_SETTINGS, **({} if durable else _QUICK), **settings})
            self.start()
        except BaseException:
            self.stop()
            raise

    # -- the process

    def start(self) -> None:
        """Start it, again after `kill`; returns when it answers."""
        command = [self._binaries / "postgres", "-D", self._data, "-p", str(self.port), "-k", self.folder]
        log = (self.folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [*self._as_user([]), *with_parent("QUIT"), *map(str, command)],
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        until = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.dsn("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise SystemMissing("PostgreSQL", f"{error}; {self.log()[-500:]}") from error
                time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL for the server and all of its processes."""
        process, self._process = self._process, None
        assert process is not None, "it does not run"
        _signal_all(process.pid, signal.SIGKILL)
        process.wait()

    def become_standby(self) -> None:
        """While it does not run: the next start is one as a standby, until `pg_promote()`."""
        assert self._process is None
        (self._data / "standby.signal").touch()

    def pause(self) -> None:
        """Freeze it: connections stay, nothing answers."""
        assert self._process is not None
        _signal_all(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        _signal_all(self._process.pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it and remove its data."""
        if self._process is not None:
            _signal_all(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    # -- what is in it

    def dsn(self, database: str) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str, **options: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn(database), autocommit=True, **options)

    def create_database(self) -> str:
        """A new empty database; its name."""
        self._databases += 1
        name = f"trial_{os.getpid()}_{self._databases}"
        with self.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type, unused-ignore]
        return name

    def drop_database(self, name: str) -> None:
        """With its replication slots, and whoever is connected."""
        with self.connect("postgres") as connection:
            slots = "SELECT slot_name, active_pid FROM pg_replication_slots WHERE database = %s"
            for slot, pid in connection.execute(slots, [name]).fetchall():
                if pid is not None:
                    connection.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
                connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type, unused-ignore]

    # -- details

    def _initialize(self, settings: dict[str, str]) -> None:
        secret = self.folder / "secret"
        secret.write_text(PASSWORD)
        if self._user is not None:
            for path in (self.folder, secret):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
        command = [
            *(self._binaries / "initdb", "-D", self._data, "-U", USER, f"--pwfile={secret}"),
            *("--auth=scram-sha-256", "--no-sync", "--encoding=UTF8", "--no-locale"),
        ]
        done = subprocess.run(self._as_user(command), capture_output=True, text=True, check=False, cwd="/")
        if done.returncode:
            raise SystemMissing("PostgreSQL", f"initdb: {done.stderr.strip()[-300:]}")
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def _with_tls(self, tls: Certificate) -> dict[str, str]:
        """A copy of the key that is the server's own, as it wants it to be."""
        key = self.folder / "server.key"
        shutil.copy(tls.key, key)
        key.chmod(0o600)
        certificate = self.folder / "server.crt"
        shutil.copy(tls.file, certificate)
        if self._user is not None:
            for path in (key, certificate):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
        return {"ssl": "on", "ssl_cert_file": f"'{certificate}'", "ssl_key_file": f"'{key}'"}

    def _as_user(self, command: list[Any]) -> list[str]:
        words = [str(word) for word in command]
        if self._user is None:
            return words
        return ["setpriv", f"--reuid={self._user.pw_uid}", f"--regid={self._user.pw_gid}", "--clear-groups", *words]


def _signal_all(server: int, number: int) -> None:
    """The server first, so that it starts no others; each process of it has a group of its own."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(server)
        process.suspend()
        children = process.children(recursive=True)
        for each in (process, *children):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.send_signal(number)
        if number == signal.SIGKILL:
            psutil.wait_procs(children, timeout=30)


def _binaries() -> Path:
    """The newest on this machine."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(Path(path).parent.name))
    on_path = shutil.which("initdb")
    if on_path is not None:
        found.append(str(Path(on_path).resolve().parent))
    for folder in reversed(found):
        if (Path(folder) / "postgres").exists() and (Path(folder) / "initdb").exists():
            return Path(folder)
    raise SystemMissing("PostgreSQL", "there is no postgres and initdb (Debian: apt-get install postgresql)")


def _other_user() -> pwd.struct_passwd | None:
    """Whom it runs as; None: as ourselves."""
    if os.geteuid():
        return None
    if shutil.which("setpriv") is None:
        raise SystemMissing("PostgreSQL", "root may not run it, and there is no setpriv (Debian: util-linux)")
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise SystemMissing("PostgreSQL", "root may not run it, and there is no user postgres or nobody")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    server = given(PostgreSQL)
    yield server
    server.stop()


@pytest.fixture
def pg_url(postgresql: PostgreSQL) -> Iterator[str]:
    """The URL of an empty database of the test's own."""
    name = postgresql.create_database()
    yield postgresql.dsn(name)
    postgresql.drop_database(name)
