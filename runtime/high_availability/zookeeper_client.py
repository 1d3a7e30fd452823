"""The way to ZooKeeper: a kazoo client as the settings say, and the nodes that a cluster has there.

<root>/<cluster id>/format              says that this is ours
<root>/<cluster id>/leader/candidate-*  one per candidate, gone with its session; the lowest number leads
<root>/<cluster id>/jobs/<job id>       a JobRecord
"""

from __future__ import annotations

import contextlib
import logging
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry
from kazoo.security import make_acl, make_digest_acl

from .errors import NotOurs, NotReachable
from .nodes import Watch
from .settings import AUTH_FILE, AUTH_SCHEME, HighAvailabilitySettings
from .zookeeper_tls import tls_problem

FORMAT = b"understudy 1"
CONNECT_SECONDS = 15.0
ANSWER_SECONDS = 2.0
"""How long one request waits for its answer, before it is put again, or given up."""
NO_ANSWER = (ConnectionLoss, OperationTimeoutError, SessionExpiredError, ConnectionClosedError, KazooTimeoutError)
"""Nobody knows whether it was done."""

logging.getLogger("kazoo").setLevel(logging.ERROR)
"""It warns of each connection that drops; what follows from that, we say ourselves."""


class ZooKeeperPaths:
    """Of one cluster."""

    def __init__(self, settings: HighAvailabilitySettings) -> None:
        self.root = f"{settings.path_root}/{settings.cluster_id}"
        self.format = f"{self.root}/format"
        self.leader = f"{self.root}/leader"
        self.jobs = f"{self.root}/jobs"


def connected(settings: HighAvailabilitySettings, *, withdraw: threading.Event | None = None) -> KazooClient:
    """A client with a session of its own, and our nodes there. Raises NotReachable, NotOurs."""
    client = _client(settings)
    try:
        _start(client, settings, withdraw or threading.Event())
        make_nodes(client, ZooKeeperPaths(settings))
    except BaseException:
        end(client)
        raise
    return client


def asked(answer: Any) -> Any:
    """What an async method of kazoo answers: a queue of requests that waits for a connection is not waited for."""
    return answer.get(timeout=ANSWER_SECONDS)


class KazooNodes:
    """Nodes, as one client sees them."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client

    def children(self, path: str, watch: Watch | None = None) -> list[str]:
        found: list[str] = asked(self._client.get_children_async(path, watch=_called(watch)))
        return found

    def is_there(self, path: str, watch: Watch | None = None) -> bool:
        return asked(self._client.exists_async(path, watch=_called(watch))) is not None

    def read(self, path: str, watch: Watch | None = None) -> bytes | None:
        try:
            data: bytes = asked(self._client.get_async(path, watch=_called(watch)))[0]
        except NoNodeError:
            return None
        return data


def _called(watch: Watch | None) -> Callable[[object], None] | None:
    """kazoo calls with an event, and forgets its watches when the connection breaks, with a call to each."""
    return None if watch is None else lambda _: watch()


def end(client: KazooClient) -> None:
    """With its session, if anybody answers."""
    with contextlib.suppress(KazooException, KazooTimeoutError, OSError):
        client.stop()
    with contextlib.suppress(KazooException, KazooTimeoutError, OSError):
        client.close()


@contextlib.contextmanager
def answers(settings: HighAvailabilitySettings) -> Iterator[None]:
    """Turns kazoo's errors of the connection and of our user into NotReachable, and of our place into NotOurs."""
    try:
        yield
    except NO_ANSWER as error:
        raise NotReachable(_unreachable(settings, error)) from error
    except AuthFailedError as error:
        raise NotReachable(_refused(settings)) from error
    except NoAuthError as error:
        place = f"ZooKeeper at {settings.quorum}: {ZooKeeperPaths(settings).root}"
        who = f"the user of {settings.auth_file}" if settings.auth_file else f"somebody without {AUTH_FILE}"
        raise NotOurs(place, f"nodes that {who} may not use") from error


def _refused(settings: HighAvailabilitySettings) -> str:
    return (
        f"ZooKeeper at {settings.quorum} refuses the user of {settings.auth_file}, or does not know the scheme "
        f"{settings.auth_scheme!r}: correct {AUTH_FILE} and {AUTH_SCHEME}"
    )


def _unreachable(settings: HighAvailabilitySettings, error: BaseException | str) -> str:
    why = error if isinstance(error, str) else str(error) or type(error).__name__
    return f"ZooKeeper at {settings.quorum} does not answer ({why}): is it running, and is this the right address?"


def _client(settings: HighAvailabilitySettings) -> KazooClient:
    credentials = settings.credentials()
    options: dict[str, Any] = {}
    if credentials:
        user, _, password = credentials.partition(":")
        if settings.auth_scheme == "sasl":
            options["sasl_options"] = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
            options["default_acl"] = [make_acl("sasl", user, all=True)]
        else:
            options["auth_data"] = [("digest", credentials)]
            options["default_acl"] = [make_digest_acl(user, password, all=True)]
    if settings.ca_file:
        options |= {
            "use_ssl": True,
            "ca": settings.ca_file,
            "certfile": settings.cert_file or None,
            "keyfile": settings.tls_key_file or None,
            "verify_certs": True,
            "check_hostname": True,
        }
    again: dict[str, Any] = {"max_tries": -1, "delay": 0.05, "max_delay": 0.5, "backoff": 2}
    return KazooClient(
        settings.quorum,
        timeout=settings.session_timeout_ms / 1000,
        connection_retry=KazooRetry(**again),
        command_retry=KazooRetry(max_tries=0),
        **options,
    )


def _start(client: KazooClient, settings: HighAvailabilitySettings, withdraw: threading.Event) -> None:
    try:
        is_there = client.start_async()
    except (OSError, ssl.SSLError) as error:
        raise NotReachable(_unreachable(settings, error)) from error
    waited = 0.0
    while not is_there.wait(0.05):
        waited += 0.05
        if client.client_state == KeeperState.AUTH_FAILED:
            raise NotReachable(_refused(settings))
        if waited >= CONNECT_SECONDS or withdraw.is_set():
            problem = tls_problem(settings) or f"waited {waited:.0f} s"
            raise NotReachable(_unreachable(settings, problem))


def make_nodes(client: KazooClient, paths: ZooKeeperPaths) -> None:
    """Those that a cluster has, where they are missing. Raises NotOurs."""
    asked(client.ensure_path_async(paths.root))
    try:
        asked(client.create_async(paths.format, FORMAT))
    except NodeExistsError:
        found, _ = asked(client.get_async(paths.format))
        if found != FORMAT:
            raise NotOurs(f"ZooKeeper's {paths.format}", f"{found[:40]!r}, wanted {FORMAT!r}") from None
    asked(client.ensure_path_async(paths.leader))
    asked(client.ensure_path_async(paths.jobs))
