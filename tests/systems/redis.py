"""A Redis server of one's own: a free loopback port, its files in a temporary folder, each write synced to the disk.

`redis_server` is one for all tests of a worker; `redis` gives it empty to each test. `kill` ends it as a crash does,
`start` brings it back with the same data.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.free_port import free_port

from . import SystemMissing, given
from .certificate import Certificate
from .with_parent import with_parent

_START_S = 300


class RedisServer:
    """Raises SystemMissing where there is none to start."""

    def __init__(
        self, password: str | None = None, tls: Certificate | None = None, options: Sequence[str] = ()
    ) -> None:
        self._binary = shutil.which("redis-server")
        if self._binary is None:
            raise SystemMissing("Redis", "there is no redis-server (Debian: apt-get install redis-server)")
        try:
            import redis
        except ImportError as error:
            raise SystemMissing("Redis", f'{error}: pip install "understudy[redis]"') from None
        self.port = free_port()
        self._folder = tempfile.mkdtemp(prefix="understudy-redis-", dir="/tmp")
        self._password, self._tls, self._options = password, tls, options
        scheme, trusted = ("redis", "") if tls is None else ("rediss", f"?ssl_ca_certs={tls.file}")
        self.url = f"{scheme}://{f':{password}@' if password else ''}127.0.0.1:{self.port}/0{trusted}"
        self.client: Any = redis.Redis.from_url(self.url, protocol=2, decode_responses=True)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        assert self._binary is not None
        listening = "--port" if self._tls is None else "--tls-port"
        options = [
            listening,
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--dir",
            self._folder,
            "--save",
            "",
        ]
        options += ["--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes"]
        options += ["--requirepass", self._password] if self._password else []
        if self._tls is not None:
            options += ["--port", "0", "--tls-auth-clients", "no"]
            options += ["--tls-cert-file", str(self._tls.file), "--tls-key-file", str(self._tls.key)]
        options += self._options
        self._process = subprocess.Popen(
            [*with_parent(), self._binary, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + _START_S
        while True:
            try:
                self.client.ping()
                return
            except Exception as error:
                if self._process.poll() is not None or time.monotonic() > until:
                    self.stop()
                    raise SystemMissing("Redis", f"redis-server does not answer: {error}") from error
                time.sleep(0.02)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    server = given(RedisServer)
    yield server
    server.stop()


@pytest.fixture
def redis(redis_server: RedisServer) -> RedisServer:
    """With no keys in it."""
    redis_server.client.flushall()
    return redis_server
