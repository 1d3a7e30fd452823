"""A ZooKeeper that has users and certificates: `secured_zookeeper` is one server for all tests of a worker."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from understudy.runtime.high_availability.errors import NoZooKeeperHere
from understudy.runtime.high_availability.trial_zookeeper import TrialZooKeeper, free_peers

from ..prepared import PATIENCE_SECONDS
from . import SystemMissing, given
from .authority import Authority, Issued

ZOOKEEPER = "high-availability.zookeeper."
USER, PASSWORD = "alice", 's3c,ret="x" y'
"""The password has what SASL's DIGEST-MD5 writes in between."""


class SecuredZooKeeper:
    """One server: a port for plain clients, one for TLS that wants a certificate of `authority`, and a user by SASL."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="understudy-zookeeper-", dir="/tmp"))
        self.authority, self.stranger = Authority(self.folder, "authority"), Authority(self.folder, "stranger")
        self.client = self.authority.issue("client")
        self._certificate = self.authority.issue("server")
        (self._peer,) = free_peers(1)
        self.plain, self.secure = (f"127.0.0.1:{port}" for port in (self._peer.client_port, self._peer.quorum_port))
        self._server = self._start(PASSWORD, self._certificate, ())

    @contextlib.contextmanager
    def otherwise(self, password: str, certificate: Issued, *more: str) -> Iterator[None]:
        """Started again with this, as long as the test wants it."""
        self._server.close()
        self._server = self._start(password, certificate, more)
        yield
        self._server.close()
        self._server = self._start(PASSWORD, self._certificate, ())

    def stop(self) -> None:
        self._server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def tls(self) -> dict[str, str]:
        return {
            f"{ZOOKEEPER}tls.ca-file": str(self.authority.certificate),
            f"{ZOOKEEPER}tls.cert-file": str(self.client.certificate),
            f"{ZOOKEEPER}tls.key-file": str(self.client.key),
        }

    def _start(self, password: str, certificate: Issued, more: tuple[str, ...]) -> TrialZooKeeper:
        both, jaas = self.folder / "server.pem", self.folder / "jaas.conf"
        both.write_text(certificate.key.read_text() + certificate.certificate.read_text())
        quoted = password.replace('"', '\\"')
        jaas.write_text(
            f'Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required user_{USER}="{quoted}"; }};\n'
        )
        lines = (
            f"secureClientPort={self._peer.quorum_port}",
            "secureClientPortAddress=127.0.0.1",
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
            f"ssl.keyStore.location={both}",
            "ssl.keyStore.type=PEM",
            f"ssl.trustStore.location={self.authority.certificate}",
            "ssl.trustStore.type=PEM",
            "ssl.clientAuth=need",
            "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            *more,
        )
        option = f"-Djava.security.auth.login.config={jaas}"
        try:
            server = TrialZooKeeper(self.folder / "data", self._peer, more=lines, java_options=(option,))
            server.start()
            server.await_ready(PATIENCE_SECONDS)
        except NoZooKeeperHere as error:
            raise SystemMissing("ZooKeeper", str(error)) from error
        return server


def credentials(path: Path, text: str = f"{USER}:{PASSWORD}") -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def sasl(path: Path, text: str = f"{USER}:{PASSWORD}") -> dict[str, str]:
    return {f"{ZOOKEEPER}auth-file": credentials(path, text), f"{ZOOKEEPER}auth-scheme": "sasl"}


@pytest.fixture(scope="session")
def secured_zookeeper() -> Iterator[SecuredZooKeeper]:
    server = given(SecuredZooKeeper)
    yield server
    server.stop()
