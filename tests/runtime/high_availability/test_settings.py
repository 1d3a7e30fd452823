"""What may be set, and what a wrong setting is answered with: found, wanted, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy import InvalidConfiguration, LocalCluster, UnusableFile
from understudy.runtime.high_availability.errors import HighAvailabilityError
from understudy.runtime.high_availability.services import HighAvailabilityServices
from understudy.runtime.high_availability.settings import HighAvailabilitySettings, RecoveryMode

BASE = {"high-availability.storageDir": "/ha", "high-availability.key-file": "/key"}
STORAGE = {**BASE, "recovery.mode": "storage"}
ZOOKEEPER = {**BASE, "recovery.mode": "zookeeper", "high-availability.zookeeper.quorum": "one:2181, [::1]:2182"}


def test_without_settings_a_cluster_stands_alone() -> None:
    assert HighAvailabilitySettings.of({"savepoints.state.backend": "jobmanager"}) == HighAvailabilitySettings()
    with pytest.raises(HighAvailabilityError, match=r"recovery.mode is standalone, which elects no leader"):
        HighAvailabilityServices(HighAvailabilitySettings())


def test_what_is_left_out_has_a_default() -> None:
    found = HighAvailabilitySettings.of(ZOOKEEPER)
    assert (found.mode, found.quorum) == (RecoveryMode.ZOOKEEPER, "one:2181,[::1]:2182")
    assert (found.cluster_id, found.path_root, found.session_timeout_ms) == ("default", "/understudy", 10_000)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"recovery.mode": "zk"}, "recovery.mode must be 'standalone' or 'zookeeper' or 'storage', found 'zk'"),
        (BASE, "high-availability.storageDir is set, but recovery.mode is standalone, so nobody would use it"),
        (
            {"recovery.mode": "storage"},
            "recovery.mode is storage, so high-availability.storageDir must be set: a folder",
        ),
        (
            {**BASE, "recovery.mode": "zookeeper"},
            "recovery.mode is zookeeper, so high-availability.zookeeper.quorum must be set: host:port of each",
        ),
        (
            {**STORAGE, "high-availability.zookeeper.path.root": "/x"},
            "high-availability.zookeeper.path.root is set, but recovery.mode is storage, which asks no ZooKeeper",
        ),
        (
            {**ZOOKEEPER, "high-availability.zookeeper.quorum": "one"},
            "high-availability.zookeeper.quorum must be host:port, with commas between several, found 'one'",
        ),
        (
            {**STORAGE, "high-availability.session-timeout-ms": "5s"},
            "high-availability.session-timeout-ms must be a number of milliseconds from 500 to 600000, found '5s'",
        ),
        (
            {**STORAGE, "high-availability.cluster-id": "a/b"},
            "high-availability.cluster-id must be letters, digits, _ . and -, found 'a/b'",
        ),
        (
            {**ZOOKEEPER, "high-availability.zookeeper.tls.cert-file": "/c"},
            "high-availability.zookeeper.tls.cert-file and high-availability.zookeeper.tls.key-file belong together",
        ),
        (
            {**ZOOKEEPER, "high-availability.zookeeper.auth-scheme": "kerberos"},
            "high-availability.zookeeper.auth-scheme must be 'digest' or 'sasl', found 'kerberos'",
        ),
        (
            {**ZOOKEEPER, "high-availability.zookeeper.auth-scheme": "sasl"},
            "high-availability.zookeeper.auth-scheme is set, so high-availability.zookeeper.auth-file must be set too",
        ),
        (
            {**ZOOKEEPER, "high-availability.zookeeper.client.acl": "world"},
            "high-availability.zookeeper.client.acl must be 'open' or 'creator', found 'world'",
        ),
        (
            {**ZOOKEEPER, "high-availability.zookeeper.client.acl": "creator"},
            "high-availability.zookeeper.client.acl is creator, and nothing says who that is: set high-availability",
        ),
        (
            {**ZOOKEEPER, "high-availability.zookeeper.tls.key-password-file": "/p"},
            "high-availability.zookeeper.tls.key-password-file is set, so high-availability.zookeeper.tls.key-file",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(settings: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidConfiguration) as error:
        LocalCluster(1, config=settings)
    assert str(error.value).startswith(text)


@pytest.mark.parametrize(
    ("more", "acl"),
    [({}, "open"), ({"auth-file": "/a"}, "creator"), ({"auth-file": "/a", "client.acl": "open"}, "open")],
)
def test_nodes_of_a_user_are_for_that_user_alone_unless_it_is_said(more: dict[str, str], acl: str) -> None:
    keys = {f"high-availability.zookeeper.{key}": value for key, value in more.items()}
    assert HighAvailabilitySettings.of({**ZOOKEEPER, **keys}).acl == acl


def test_a_missing_key_of_the_cluster_is_named_with_its_setting() -> None:
    with pytest.raises(UnusableFile, match=r"key-file: /no/key cannot be read: No such file.*understudy key"):
        HighAvailabilityServices(HighAvailabilitySettings.of(ZOOKEEPER | {"high-availability.key-file": "/no/key"}))


def test_a_file_of_credentials_must_be_private_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "auth"
    path.write_text("user:password\n")
    settings = HighAvailabilitySettings.of({**ZOOKEEPER, "high-availability.zookeeper.auth-file": str(path)})
    path.chmod(0o644)
    with pytest.raises(ValueError, match=r"others can read .*: chmod 600"):
        settings.credentials()
    path.chmod(0o600)
    assert settings.credentials() == "user:password"
    path.write_text("user\n")
    with pytest.raises(ValueError, match="holds no credentials: wanted one line, user:password"):
        settings.credentials()
