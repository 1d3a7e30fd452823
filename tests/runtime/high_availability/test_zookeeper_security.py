"""ZooKeeper by TLS, with SASL and with owners of nodes, on a real server: elections and nodes over each, and an error
by name for each mistake.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import make_acl

from understudy import AccessDenied, UnusableFile
from understudy.messages import JobId
from understudy.runtime.high_availability import zookeeper_client, zookeeper_retrieval
from understudy.runtime.high_availability.errors import NotReachable
from understudy.runtime.high_availability.leader import Leader

from ...contracts.high_availability import submitted
from ...systems.authority import Authority
from ...systems.secured_zookeeper import PASSWORD, USER, ZOOKEEPER, SecuredZooKeeper, credentials, sasl
from ...systems.zookeeper import Ensemble
from .clusters import Candidates, config

pytestmark = pytest.mark.processes
PLAIN, TLS, SASL, DIGEST = "plain", "tls", "sasl", "digest"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows from silence follows sooner."""
    monkeypatch.setattr(zookeeper_client, "CONNECT_SECONDS", 3.0)
    monkeypatch.setattr(zookeeper_client, "LOOK_SECONDS", 1.0)


def settings_for(how: str, who: str, server: SecuredZooKeeper, folder: Path) -> dict[str, str]:
    """With a root of its own, as nodes on the way to the cluster's belong to who has made them."""
    found = config(folder, server.secure if how == TLS else server.plain, timeout_ms=4_000)
    found[f"{ZOOKEEPER}path.root"] = f"/{found['high-availability.cluster-id']}"
    if how == TLS:
        found |= server.tls()
    if who == SASL:
        found |= sasl(folder / "user")
    if who == DIGEST:
        found |= {f"{ZOOKEEPER}auth-file": credentials(folder / "user", "bob:secret of bob")}
    return found


def place(settings: dict[str, str]) -> str:
    return f"{settings[f'{ZOOKEEPER}path.root']}/{settings['high-availability.cluster-id']}"


@contextlib.contextmanager
def somebody(quorum: str) -> Iterator[KazooClient]:
    """Who proves nothing."""
    client = KazooClient(quorum)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def denied(settings: dict[str, str], text: str) -> None:
    """A candidate and who looks for the leader are answered alike."""
    cluster = Candidates(settings)
    for attempt in (cluster.win, cluster.services.retrieval):
        with pytest.raises(AccessDenied, match=text):
            attempt()


@pytest.mark.parametrize("how", [PLAIN, TLS])
@pytest.mark.parametrize("who", ["nobody", SASL, DIGEST])
def test_leaders_follow_each_other_and_are_found_and_jobs_are_kept(
    tmp_path: Path, secured_zookeeper: SecuredZooKeeper, how: str, who: str
) -> None:
    settings = settings_for(how, who, secured_zookeeper, tmp_path)
    candidates = Candidates(settings)
    try:
        candidates.kept().add_job(submitted("mine"))
        candidates.leaders[-1].resign()
        assert candidates.kept().is_kept(JobId("mine"))
        candidates.leaders[-1].publish("tcp://127.0.0.1:1")
        retrieval, changed = candidates.services.retrieval(), threading.Semaphore(0)
        retrieval.on_change(lambda _: changed.release())
        while retrieval.leader() is None:
            assert changed.acquire(timeout=60)
        assert retrieval.leader() == Leader("tcp://127.0.0.1:1", candidates.leaders[-1].session)
        retrieval.close()
        with somebody(secured_zookeeper.plain) as client:
            for path in ("", "/format", "/leader", "/jobs", "/jobs/mine"):
                if who == "nobody":
                    client.get(place(settings) + path)
                    continue
                with pytest.raises(NoAuthError):
                    client.get(place(settings) + path)
                with pytest.raises(NoAuthError):
                    client.set(place(settings) + path, b"mine")
    finally:
        candidates.close()


def test_a_certificate_is_a_user_where_the_server_takes_it_for_one(
    tmp_path: Path, secured_zookeeper: SecuredZooKeeper
) -> None:
    settings = settings_for(TLS, "nobody", secured_zookeeper, tmp_path) | {f"{ZOOKEEPER}client.acl": "creator"}
    candidates = Candidates(settings)
    try:
        candidates.kept().add_job(submitted("mine"))
        with somebody(secured_zookeeper.plain) as client, pytest.raises(NoAuthError):
            client.get(f"{place(settings)}/jobs/mine")
    finally:
        candidates.close()


def test_a_key_may_be_encrypted_and_its_password_comes_from_a_file(
    tmp_path: Path, secured_zookeeper: SecuredZooKeeper
) -> None:
    locked = secured_zookeeper.authority.issue("locked", password="open sesame")
    settings = settings_for(TLS, SASL, secured_zookeeper, tmp_path)
    settings |= {f"{ZOOKEEPER}tls.cert-file": str(locked.certificate), f"{ZOOKEEPER}tls.key-file": str(locked.key)}
    opened = settings | {f"{ZOOKEEPER}tls.key-password-file": credentials(tmp_path / "password", "open sesame")}
    candidates = Candidates(opened)
    candidates.win()
    candidates.close()
    with pytest.raises(UnusableFile, match=r"tls\.key-file: .*locked\.key is encrypted: set .*tls\.key-password-file"):
        Candidates(settings).win()
    credentials(tmp_path / "password", "open barley")
    with pytest.raises(UnusableFile, match=r"the password in .*password does not open .*locked\.key"):
        Candidates(opened).win()


@pytest.mark.parametrize(
    ("text", "server"), [(f"{USER}:guessed", "secured"), ("mallory:x", "secured"), (f"{USER}:{PASSWORD}", "plain")]
)
def test_a_user_who_is_refused_is_named_at_once(
    tmp_path: Path, secured_zookeeper: SecuredZooKeeper, zookeeper: Ensemble, text: str, server: str
) -> None:
    """Also by a server that knows no SASL."""
    quorum = secured_zookeeper.plain if server == "secured" else zookeeper.quorum
    settings = config(tmp_path, quorum) | sasl(tmp_path / "user", text)
    denied(
        settings, r"refuses the user of .*/user \(sasl\): the password is wrong, .*Correct .*auth-file and .*-scheme"
    )


def test_nodes_of_others_are_named_with_what_to_do(tmp_path: Path, secured_zookeeper: SecuredZooKeeper) -> None:
    settings = settings_for(PLAIN, SASL, secured_zookeeper, tmp_path)
    root = settings[f"{ZOOKEEPER}path.root"]
    mine = Candidates(settings)
    try:
        mine.win()
        nobody = {key: value for key, value in settings.items() if "auth" not in key}
        denied(
            nobody, rf"{root} has an ACL that we may not see, so somebody without .*auth-file may not .* Set .*auth-f"
        )
        bob = {**nobody, f"{ZOOKEEPER}auth-file": credentials(tmp_path / "bob", "bob:secret of bob")}
        denied(
            bob, rf"{root} has an ACL that we may not see, so the user of .*/bob \(digest\) may not .* Correct .*auth"
        )
    finally:
        mine.close()


def test_nodes_that_may_only_be_read_are_named_with_their_acl(
    tmp_path: Path, secured_zookeeper: SecuredZooKeeper
) -> None:
    settings = settings_for(PLAIN, "nobody", secured_zookeeper, tmp_path)
    root = settings[f"{ZOOKEEPER}path.root"]
    with somebody(secured_zookeeper.plain) as client:
        client.create(root, acl=[make_acl("world", "anyone", read=True)])
    denied(settings, rf"{root} has the ACL world:anyone:r, so somebody without .*auth-file may not do there")


def test_open_nodes_are_not_taken_for_those_of_their_creator_alone(
    tmp_path: Path, secured_zookeeper: SecuredZooKeeper
) -> None:
    settings = settings_for(PLAIN, SASL, secured_zookeeper, tmp_path)
    opened = Candidates(settings | {f"{ZOOKEEPER}client.acl": "open"})
    opened.win()
    opened.close()
    denied(
        settings, rf"{place(settings)} has the ACL world:anyone:cdrwa, and .*client\.acl is creator, so others could"
    )


@pytest.mark.usefixtures("soon")
def test_what_is_wrong_with_tls_is_said(
    tmp_path: Path, secured_zookeeper: SecuredZooKeeper, zookeeper: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = secured_zookeeper
    good = settings_for(TLS, "nobody", server, tmp_path)
    ca, cert, key, quorum = (
        f"{ZOOKEEPER}{name}" for name in ("tls.ca-file", "tls.cert-file", "tls.key-file", "quorum")
    )
    stranger, plain = server.stranger.issue("intruder"), {quorum: server.secure.replace("127.0.0.1", "localhost")}
    monkeypatch.setenv("SSL_CERT_FILE", str(server.authority.certificate))  # what the machine trusts does not count
    wrong = [
        (config(tmp_path, server.secure), r"it speaks TLS there: set .*tls\.ca-file"),
        (config(tmp_path, server.secure) | {ca: good[ca]}, r"it wants a certificate of ours: set .*tls\.cert-file"),
        (
            good | {cert: str(stranger.certificate), key: str(stranger.key)},
            r"it refuses the certificate .*intruder\.crt",
        ),
        (good | {quorum: zookeeper.quorum}, "there is no TLS with it"),
        (
            good | {ca: str(server.stranger.certificate)},
            r"not one that .*stranger\.crt vouches for: unable to get local",
        ),
        (good | plain, r"its certificate is for another name than localhost .*write it in .*quorum"),
    ]
    for settings, text in wrong:
        with pytest.raises(NotReachable, match=text) as caught:
            Candidates(settings).win()
        assert "is it running" not in str(caught.value)


def test_a_server_with_another_password_that_wants_a_user_and_has_an_expired_certificate(
    tmp_path: Path,
    secured_zookeeper: SecuredZooKeeper,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who was connected hears of it as well as who comes; nobody tries again in silence, and a correction is enough."""
    monkeypatch.setattr(zookeeper_retrieval, "_LATER_SECONDS", 0.1)
    server = secured_zookeeper
    settings = settings_for(PLAIN, SASL, server, tmp_path)
    by_tls = settings_for(TLS, "nobody", server, tmp_path)
    mine, later = Candidates(settings), Candidates(settings)
    mine.win().publish("tcp://127.0.0.1:1")
    retrieval, changed, lost = mine.services.retrieval(), threading.Semaphore(0), threading.Event()
    retrieval.on_change(lambda _: changed.release())
    mine.leaders[-1].on_lost(lambda _: lost.set())
    ended: list[BaseException] = []

    def wait_to_lead() -> None:
        try:
            later.win()
        except AccessDenied as error:
            ended.append(error)

    waiting = threading.Thread(target=wait_to_lead)
    waiting.start()
    queue = f"{place(settings)}/leader"
    while len(mine.leaders[-1]._client.get_children(queue)) < 2:  # type: ignore[attr-defined]
        pass
    try:
        expired = server.authority.issue("expired", days=-1)
        enforced = ("enforce.auth.enabled=true", "enforce.auth.schemes=sasl")
        with caplog.at_level(logging.INFO), server.otherwise("changed", expired, *enforced):
            waiting.join(60)
            assert "refuses the user" in str(ended[0])
            assert lost.wait(60)
            while "the leader cannot be looked up, and is looked up again: ZooKeeper at" not in caplog.text:
                pass
            nobody = {key: value for key, value in settings.items() if "auth" not in key}
            denied(nobody, "ends the session of somebody without .*auth-file, since it serves only those who prove")
            with pytest.raises(NotReachable, match="its certificate has expired: give the server a new one"):
                Candidates(by_tls).win()
            credentials(tmp_path / "user", f"{USER}:changed")
            later.win().publish("tcp://127.0.0.1:2")
            while (found := retrieval.leader()) is None or not found.address.endswith("2"):
                assert changed.acquire(timeout=60)
            later.close()
    finally:
        credentials(tmp_path / "user")
        retrieval.close()
        later.close()
        mine.close()


FILES = ("auth-file", "tls.ca-file", "tls.cert-file", "tls.key-file", "tls.key-password-file")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Of each kind one that can be used; nobody answers at the quorum, and nobody is asked."""
    authority = Authority(tmp_path, "authority")
    mine = authority.issue("mine", password="open sesame")
    paths = (
        credentials(tmp_path / "user"),
        str(authority.certificate),
        str(mine.certificate),
        str(mine.key),
        credentials(tmp_path / "password", "open sesame"),
    )
    found = {f"{ZOOKEEPER}{name}": path for name, path in zip(FILES, paths, strict=True)}
    return config(tmp_path, "127.0.0.1:1") | found


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_read_is_named_before_anybody_is_asked(
    tmp_path: Path, files: dict[str, str], name: str
) -> None:
    for path, why in ((tmp_path / "missing", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(UnusableFile, match=rf"{name}: {path} cannot be read: {why}. Correct the path"):
            Candidates(files | {f"{ZOOKEEPER}{name}": str(path)}).win()


def test_a_file_that_holds_something_else_is_named_before_anybody_is_asked(
    tmp_path: Path, files: dict[str, str]
) -> None:
    other = Authority(tmp_path, "other").issue("other").key
    text = credentials(tmp_path / "text", "no such\nthing")
    wrong = [
        ("tls.ca-file", text, "ca-file: .*/text holds no certificate in PEM form"),
        ("tls.cert-file", text, "/text and .*/mine.key are no certificate and its key in PEM form"),
        ("tls.key-file", text, "/mine.crt and .*/text are no certificate and its key in PEM form"),
        ("tls.key-file", str(other), "/other.key is not the key of the certificate .*/mine.crt"),
        ("tls.key-password-file", text, "/text holds no password: wanted one line"),
    ]
    for name, path, why in wrong:
        with pytest.raises(UnusableFile, match=why):
            Candidates(files | {f"{ZOOKEEPER}{name}": path}).win()
