"""An S3 server on loopback: moto's, in a process of its own.

`s3` is the fixture: one server for all tests of a worker; each test makes a bucket of its own. While it runs, the
environment has its address and credentials, as a user's has, so TaskManagers that are started then find it.
"""

from __future__ import annotations

import itertools
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.free_port import free_port

from . import SystemMissing, given
from .with_parent import with_parent

_START_S = 300


class S3Server:
    """Raises SystemMissing where it cannot be started."""

    def __init__(self) -> None:
        try:
            import moto.server  # noqa: F401
            import s3fs
        except ImportError as error:
            raise SystemMissing("S3", f'{error}: pip install "moto[s3]" flask flask-cors s3fs') from None
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._numbers = itertools.count(1)
        self._process = subprocess.Popen(
            [*with_parent(), sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._await()
        self.environment = environment(self.url)
        self.fs = s3fs.S3FileSystem(endpoint_url=self.url, key="testing", secret="testing", skip_instance_cache=True)
        self.bucket()  # by now the threads of s3fs run, so that no test is taken to have left them behind

    def bucket(self) -> str:
        """The name of a new one."""
        name = f"bucket-{next(self._numbers)}"
        self.fs.call_s3("create_bucket", Bucket=name)
        return name

    def uploads(self, bucket: str) -> list[str]:
        """The keys of all uploads that are neither completed nor aborted."""
        found: Any = self.fs.call_s3("list_multipart_uploads", Bucket=bucket)
        return [each["Key"] for each in found.get("Uploads", ())]

    def keys(self, bucket: str) -> list[str]:
        self.fs.invalidate_cache()
        return sorted(self.fs.find(bucket))

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _await(self) -> None:
        until = time.monotonic() + _START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                return
            except OSError as error:
                if self._process.poll() is not None or time.monotonic() > until:
                    self.stop()
                    raise SystemMissing("S3", f"moto's server does not answer: {error}") from error
                time.sleep(0.05)


def environment(url: str) -> dict[str, str]:
    """What makes S3 clients use this server."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    server = given(S3Server)
    yield server
    server.stop()


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """For the length of one test; clients that it has made are forgotten."""
    from s3fs import S3FileSystem

    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    S3FileSystem.clear_instance_cache()
    yield s3_server
    S3FileSystem.clear_instance_cache()
