"""ZooKeeper by TLS and with SASL, on a real server: elections and nodes over both, and the errors of each mistake."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import certifi
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from understudy.messages import JobId
from understudy.runtime.high_availability import zookeeper_client
from understudy.runtime.high_availability.errors import NotOurs, NotReachable, NoZooKeeperHere
from understudy.runtime.high_availability.trial_zookeeper import TrialZooKeeper, free_peers

from ...contracts.high_availability import submitted
from ...systems import SystemMissing, given
from ...systems.certificate import Certificate, certificate
from .clusters import Candidates, config

__all__ = ["certificate"]

pytestmark = pytest.mark.processes
ZOOKEEPER = "high-availability.zookeeper."


@dataclass(frozen=True, slots=True)
class Secured:
    """One server with a port for plain clients, one for TLS that wants a certificate, and a user by SASL: alice."""

    plain: str
    secure: str


@pytest.fixture(scope="module")
def secured(certificate: Certificate) -> Iterator[Secured]:
    folder = Path(tempfile.mkdtemp(prefix="understudy-zookeeper-", dir="/tmp"))
    (peer,) = free_peers(1)
    both = folder / "both.pem"
    both.write_text(Path(certificate.key).read_text() + Path(certificate.file).read_text())
    jaas = folder / "jaas.conf"
    jaas.write_text('Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_alice="s3cret"; };\n')

    def start() -> TrialZooKeeper:
        server = TrialZooKeeper(
            folder / "data",
            peer,
            more=(
                f"secureClientPort={peer.quorum_port}",
                "secureClientPortAddress=127.0.0.1",
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                f"ssl.keyStore.location={both}",
                "ssl.keyStore.type=PEM",
                f"ssl.trustStore.location={certificate.file}",
                "ssl.trustStore.type=PEM",
                "ssl.clientAuth=need",
                "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            ),
            java_options=(f"-Djava.security.auth.login.config={jaas}",),
        )
        try:
            server.start()
            server.await_ready()
        except NoZooKeeperHere as error:
            raise SystemMissing("ZooKeeper", str(error)) from error
        return server

    server = given(start)
    yield Secured(server.address, f"127.0.0.1:{peer.quorum_port}")
    server.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes of a wrong setting is said when the patience with the connection is over."""
    monkeypatch.setattr(zookeeper_client, "CONNECT_SECONDS", 1.0)


def credentials(folder: Path, text: str) -> str:
    path = folder / "credentials"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def tls(certificate: Certificate) -> dict[str, str]:
    return {
        f"{ZOOKEEPER}tls.ca-file": str(certificate.file),
        f"{ZOOKEEPER}tls.cert-file": str(certificate.file),
        f"{ZOOKEEPER}tls.key-file": str(certificate.key),
    }


def sasl(folder: Path, text: str = "alice:s3cret") -> dict[str, str]:
    return {f"{ZOOKEEPER}auth-file": credentials(folder, text), f"{ZOOKEEPER}auth-scheme": "sasl"}


@pytest.mark.parametrize("by_tls", [False, True])
@pytest.mark.parametrize("by_sasl", [False, True])
def test_leaders_follow_each_other_and_jobs_are_kept(
    tmp_path: Path, secured: Secured, certificate: Certificate, by_tls: bool, by_sasl: bool
) -> None:
    settings = config(tmp_path, secured.secure if by_tls else secured.plain, timeout_ms=4_000)
    candidates = Candidates({**settings, **(tls(certificate) if by_tls else {}), **(sasl(tmp_path) if by_sasl else {})})
    try:
        candidates.kept().add_job(submitted("mine"))
        candidates.leaders[-1].resign()
        assert candidates.kept().is_kept(JobId("mine"))
    finally:
        candidates.close()
    stranger = KazooClient(secured.plain)
    stranger.start()
    try:
        place = f"/understudy/{settings['high-availability.cluster-id']}/jobs"
        if by_sasl:
            with pytest.raises(NoAuthError):
                stranger.get(place)
        else:
            assert stranger.get_children(place) == ["mine"]
    finally:
        stranger.stop()
        stranger.close()


def test_a_wrong_password_is_said(tmp_path: Path, secured: Secured) -> None:
    settings = {**config(tmp_path, secured.plain), **sasl(tmp_path, "alice:guessed")}
    with pytest.raises(NotReachable, match=r"refuses the user of .*credentials.*correct .*auth-file and .*auth-scheme"):
        Candidates(settings).win()


def test_nodes_of_a_user_are_not_for_those_who_prove_nothing(tmp_path: Path, secured: Secured) -> None:
    settings = config(tmp_path, secured.plain)
    mine = Candidates({**settings, **sasl(tmp_path), f"{ZOOKEEPER}path.root": "/guarded"})
    try:
        mine.win()
        with pytest.raises(NotOurs, match=r"nodes that somebody without .*auth-file may not use"):
            Candidates({**settings, f"{ZOOKEEPER}path.root": "/guarded"}).win()
    finally:
        mine.close()


@pytest.mark.usefixtures("soon")
def test_what_is_wrong_with_tls_is_said(tmp_path: Path, secured: Secured, certificate: Certificate) -> None:
    settings = config(tmp_path, secured.secure)
    with pytest.raises(NotReachable, match=r"it speaks TLS there: set high-availability\.zookeeper\.tls\.ca-file"):
        Candidates(settings).win()
    with pytest.raises(NotReachable, match=r"it wants a certificate of ours \(high-availability\.zookeeper\.tls\.cert"):
        Candidates({**settings, f"{ZOOKEEPER}tls.ca-file": str(certificate.file)}).win()
    with pytest.raises(NotReachable, match=r"there is no TLS with it"):
        Candidates({**config(tmp_path, secured.plain), **tls(certificate)}).win()
    others = {**tls(certificate), f"{ZOOKEEPER}tls.ca-file": certifi.where()}
    with pytest.raises(NotReachable, match=r"its certificate is not one that .* vouches for: self.signed certificate"):
        Candidates({**settings, **others}).win()
