"""HighAvailabilitySettings: the part of a cluster's configuration that says who may take its JobManager's place.

    recovery.mode                                   standalone (default) | zookeeper | storage
    high-availability.storageDir                    a path or fsspec URL that all JobManagers reach
    high-availability.key-file                      the cluster's key, mode 0600, the same for all JobManagers
    high-availability.cluster-id                    default "default": one name per cluster
    high-availability.session-timeout-ms            default 10000: how long a leader may be silent
    high-availability.zookeeper.quorum              host:port,host:port,...
    high-availability.zookeeper.path.root           default /understudy
    high-availability.zookeeper.auth-file           a file with user:password, mode 0600: whose nodes they are
    high-availability.zookeeper.auth-scheme         digest (default) | sasl: how that user is proven
    high-availability.zookeeper.client.acl          open | creator: who may use our nodes
    high-availability.zookeeper.tls.ca-file         the certificates to trust: then the connection is encrypted
    high-availability.zookeeper.tls.cert-file       our certificate, where the servers want one
    high-availability.zookeeper.tls.key-file        its key
    high-availability.zookeeper.tls.key-password-file  a file with that key's password, mode 0600, where it is encrypted

Flink: HighAvailabilityOptions (`recovery.mode` was its name there at first).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec

from ...state.file_locations import absolute
from .errors import UnusableFile

PREFIX = "high-availability."
RECOVERY_MODE = "recovery.mode"
STORAGE_DIR = f"{PREFIX}storageDir"
KEY_FILE = f"{PREFIX}key-file"
CLUSTER_ID = f"{PREFIX}cluster-id"
SESSION_TIMEOUT = f"{PREFIX}session-timeout-ms"
QUORUM = f"{PREFIX}zookeeper.quorum"
PATH_ROOT = f"{PREFIX}zookeeper.path.root"
AUTH_FILE = f"{PREFIX}zookeeper.auth-file"
AUTH_SCHEME = f"{PREFIX}zookeeper.auth-scheme"
CA_FILE = f"{PREFIX}zookeeper.tls.ca-file"
CERT_FILE = f"{PREFIX}zookeeper.tls.cert-file"
TLS_KEY_FILE = f"{PREFIX}zookeeper.tls.key-file"
TLS_PASSWORD_FILE = f"{PREFIX}zookeeper.tls.key-password-file"
CLIENT_ACL = f"{PREFIX}zookeeper.client.acl"
TLS_KEYS = (CA_FILE, CERT_FILE, TLS_KEY_FILE, TLS_PASSWORD_FILE)
ZOOKEEPER_KEYS = (QUORUM, PATH_ROOT, AUTH_FILE, AUTH_SCHEME, CLIENT_ACL, *TLS_KEYS)
KEYS = (RECOVERY_MODE, STORAGE_DIR, KEY_FILE, CLUSTER_ID, SESSION_TIMEOUT, *ZOOKEEPER_KEYS)

AUTH_SCHEMES = ("digest", "sasl")
OPEN, CREATOR = ACLS = ("open", "creator")
"""Anybody may use our nodes; or only who comes with the user, or the certificate, by which they were made."""
DEFAULT_TIMEOUT_MS = 10_000
_LEAST_TIMEOUT_MS, _MOST_TIMEOUT_MS = 500, 600_000
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s,:/]+):(\d{1,5})")
_CLUSTER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_ROOT = re.compile(r"(/[A-Za-z0-9_.-]+)+")


class RecoveryMode(Enum):
    """Who takes over when a JobManager dies."""

    STANDALONE = "standalone"
    """Nobody: its jobs end with it."""
    ZOOKEEPER = "zookeeper"
    STORAGE = "storage"
    """Another JobManager, by way of files in shared storage alone."""


@dataclass(frozen=True, slots=True)
class HighAvailabilitySettings:
    """Made by `of`."""

    mode: RecoveryMode = RecoveryMode.STANDALONE
    storage_dir: str = ""
    key_file: str = ""
    cluster_id: str = "default"
    session_timeout_ms: int = DEFAULT_TIMEOUT_MS
    quorum: str = ""
    path_root: str = "/understudy"
    auth_file: str = ""
    ca_file: str = ""
    cert_file: str = ""
    tls_key_file: str = ""
    auth_scheme: str = "digest"
    acl: str = OPEN
    tls_password_file: str = ""

    @classmethod
    def of(cls, config: Mapping[str, str]) -> HighAvailabilitySettings:
        """Keys of others are passed over. Raises ValueError, with what was found, what is wanted and what to do."""
        mode = _mode(config.get(RECOVERY_MODE, RecoveryMode.STANDALONE.value))
        given = [key for key in config if key in KEYS and key != RECOVERY_MODE]
        if mode is RecoveryMode.STANDALONE:
            if given:
                raise ValueError(
                    f"{given[0]} is set, but {RECOVERY_MODE} is standalone, so nobody would use it: set "
                    f"{RECOVERY_MODE} to zookeeper or storage, or leave {given[0]} out"
                )
            return cls()
        _check_given(config, mode)
        return cls(
            mode,
            _absolute(config[STORAGE_DIR]),
            _path(config[KEY_FILE]),
            _matching(CLUSTER_ID, config.get(CLUSTER_ID, "default"), _CLUSTER_ID, "letters, digits, _ . and -"),
            _timeout_ms(config.get(SESSION_TIMEOUT, str(DEFAULT_TIMEOUT_MS))),
            _quorum(config[QUORUM]) if mode is RecoveryMode.ZOOKEEPER else "",
            _matching(PATH_ROOT, config.get(PATH_ROOT, "/understudy"), _ROOT, "a path, as /understudy"),
            auth_file=_path(config.get(AUTH_FILE, "")),
            ca_file=_path(config.get(CA_FILE, "")),
            cert_file=_path(config.get(CERT_FILE, "")),
            tls_key_file=_path(config.get(TLS_KEY_FILE, "")),
            auth_scheme=config.get(AUTH_SCHEME, "digest"),
            acl=config.get(CLIENT_ACL, CREATOR if AUTH_FILE in config else OPEN),
            tls_password_file=_path(config.get(TLS_PASSWORD_FILE, "")),
        )

    def credentials(self) -> str:
        """user:password of the auth file; empty without one. Raises UnusableFile."""
        if not self.auth_file:
            return ""
        found = private_text(AUTH_FILE, self.auth_file)
        user, colon, password = found.partition(":")
        if not (user and colon and password) or "\n" in found:
            raise UnusableFile(f"{AUTH_FILE}: {self.auth_file} holds no credentials: wanted one line, user:password")
        return found

    def tls_password(self) -> str:
        """Of our key; empty without a file of it. Raises UnusableFile."""
        if not self.tls_password_file:
            return ""
        found = private_text(TLS_PASSWORD_FILE, self.tls_password_file)
        if not found or "\n" in found:
            raise UnusableFile(
                f"{TLS_PASSWORD_FILE}: {self.tls_password_file} holds no password: wanted one line, nothing else"
            )
        return found


def private_text(key: str, path: str) -> str:
    """What stands in a file that `key` names and only its owner can read. Raises UnusableFile."""
    try:
        with open(path, encoding="utf-8") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise UnusableFile(f"{key}: others can read {path}: chmod 600 {path}")
            return file.read().strip()
    except OSError as error:
        raise unreadable(key, path, error) from error
    except UnicodeDecodeError as error:
        raise UnusableFile(f"{key}: {path} holds no text in UTF-8: is it the right file?") from error


def unreadable(key: str, path: str, error: OSError) -> UnusableFile:
    return UnusableFile(
        f"{key}: {path} cannot be read: {error.strerror or error}. Correct the path, or put the file there, readable "
        "for the user of this process"
    )


def _mode(name: str) -> RecoveryMode:
    try:
        return RecoveryMode(name)
    except ValueError:
        known = " or ".join(repr(each.value) for each in RecoveryMode)
        raise ValueError(f"{RECOVERY_MODE} must be {known}, found {name!r}") from None


def _check_given(config: Mapping[str, str], mode: RecoveryMode) -> None:
    wanted = {
        STORAGE_DIR: "a folder or URL that every JobManager of the cluster reaches, for programs and graphs of jobs",
        KEY_FILE: "a file with the cluster's key, the same for every JobManager: make one with `understudy key FILE`",
    }
    if mode is RecoveryMode.ZOOKEEPER:
        wanted[QUORUM] = "host:port of each ZooKeeper server, with commas between"
    for key, what in wanted.items():
        if key not in config:
            raise ValueError(f"{RECOVERY_MODE} is {mode.value}, so {key} must be set: {what}")
    superfluous = [key for key in ZOOKEEPER_KEYS if key in config]
    if mode is RecoveryMode.STORAGE and superfluous:
        raise ValueError(f"{superfluous[0]} is set, but {RECOVERY_MODE} is storage, which asks no ZooKeeper")
    scheme = config.get(AUTH_SCHEME, "digest")
    if scheme not in AUTH_SCHEMES:
        raise ValueError(f"{AUTH_SCHEME} must be {' or '.join(map(repr, AUTH_SCHEMES))}, found {scheme!r}")
    if AUTH_SCHEME in config and AUTH_FILE not in config:
        raise ValueError(f"{AUTH_SCHEME} is set, so {AUTH_FILE} must be set too: a file with user:password, mode 0600")
    if scheme == "sasl" and find_spec("puresasl") is None:
        raise ValueError(f'{AUTH_SCHEME} is sasl, which needs pure-sasl: pip install "understudy[sasl]"')
    acl = config.get(CLIENT_ACL, OPEN)
    if acl not in ACLS:
        raise ValueError(f"{CLIENT_ACL} must be {' or '.join(map(repr, ACLS))}, found {acl!r}")
    if acl == CREATOR and AUTH_FILE not in config and CERT_FILE not in config:
        raise ValueError(
            f"{CLIENT_ACL} is {CREATOR}, and nothing says who that is: set {AUTH_FILE}, or {CERT_FILE} where the "
            "servers take certificates for users"
        )
    if (CERT_FILE in config) != (TLS_KEY_FILE in config):
        raise ValueError(f"{CERT_FILE} and {TLS_KEY_FILE} belong together: set both, or none")
    if CERT_FILE in config and CA_FILE not in config:
        raise ValueError(f"{CERT_FILE} is set, so {CA_FILE} must be set too: the certificates to trust")
    if TLS_PASSWORD_FILE in config and TLS_KEY_FILE not in config:
        raise ValueError(f"{TLS_PASSWORD_FILE} is set, so {TLS_KEY_FILE} must be set too: the key that it opens")


def _quorum(text: str) -> str:
    hosts = [host.strip() for host in text.split(",")]
    for host in hosts:
        match = _HOST.fullmatch(host)
        if match is None or not 0 < int(match[2]) < 65_536:
            raise ValueError(f"{QUORUM} must be host:port, with commas between several, found {host!r} in {text!r}")
    return ",".join(hosts)


def _timeout_ms(text: str) -> int:
    if not text.isdecimal() or not _LEAST_TIMEOUT_MS <= int(text) <= _MOST_TIMEOUT_MS:
        raise ValueError(
            f"{SESSION_TIMEOUT} must be a number of milliseconds from {_LEAST_TIMEOUT_MS} to {_MOST_TIMEOUT_MS}, "
            f"found {text!r}"
        )
    return int(text)


def _matching(key: str, text: str, pattern: re.Pattern[str], wanted: str) -> str:
    if pattern.fullmatch(text) is None:
        raise ValueError(f"{key} must be {wanted}, found {text!r}")
    return text


def _absolute(directory: str) -> str:
    return directory and absolute(directory)


def _path(file: str) -> str:
    return file and os.path.abspath(os.path.expanduser(file))
