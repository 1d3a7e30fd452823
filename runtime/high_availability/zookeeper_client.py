"""The way to ZooKeeper: a kazoo client as the settings say, and the nodes that a cluster has there.

<root>/<cluster id>/format              says that this is ours
<root>/<cluster id>/leader/candidate-*  one per candidate, gone with its session; the lowest number leads
<root>/<cluster id>/jobs/<job id>       a JobRecord
"""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    SASLException,
    SessionClosedRequireSaslError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry
from kazoo.security import ACL, Permissions

from .errors import AccessDenied, NotOurs, NotReachable
from .nodes import Watch
from .settings import CREATOR, HighAvailabilitySettings
from .zookeeper_access import (
    access_options,
    is_open,
    not_for_us,
    not_for_us_alone,
    user_refused,
    user_unknown,
    user_wanted,
)
from .zookeeper_tls import tls_context, tls_problems

log = logging.getLogger(__name__)

FORMAT = b"understudy 1"
CONNECT_SECONDS = 15.0
LOOK_SECONDS = 2.0
"""After so long without a connection it is found out whether TLS is why."""
AGAIN_SECONDS = 0.1
LOGINS = 3
"""A server that dies amid a login looks as one that refuses it: so it is tried again."""
ANSWER_SECONDS = 2.0
"""How long one request waits for its answer, before it is put again, or given up."""
NO_ANSWER = (
    AuthFailedError,
    ConnectionLoss,
    OperationTimeoutError,
    SessionExpiredError,
    ConnectionClosedError,
    KazooTimeoutError,
)
"""Nobody knows whether it was done. With a client that `is_refused` there is no other try: it needs another client."""

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
    """A client with a session of its own, and our nodes there. Raises NotReachable, NotOurs, AccessDenied,
    UnusableFile.
    """
    withdraw = withdraw or threading.Event()
    with answers(settings):
        for _ in range(LOGINS):
            client = _client(settings)
            try:
                _start(client, settings, withdraw)
                _prepare(client, settings, withdraw)
            except BaseException as error:
                if isinstance(error, NoAuthError):
                    error = _denied(client, settings)
                is_refused = client.is_refused
                end(client)
                if not (is_refused and isinstance(error, NO_ANSWER)):
                    raise error from None
                withdraw.wait(AGAIN_SECONDS)
            else:
                return client
        raise user_refused(settings)


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


class Silence:
    """Of ZooKeeper towards somebody who was connected and asks again and again. One that goes on is a warning."""

    def __init__(self, settings: HighAvailabilitySettings) -> None:
        self._settings = settings
        self._since_s = self._last_s = -math.inf

    def goes_on(self, whose: str, error: BaseException) -> None:
        """There was no answer again. Blocks, now and then, to see whether TLS is why."""
        now_s = time.monotonic()
        is_new = now_s - self._last_s > 3 * ANSWER_SECONDS
        if is_new:
            self._since_s = now_s
        self._last_s = now_s
        if now_s - self._since_s < CONNECT_SECONDS:
            why = str(error) or type(error).__name__
            log.log(logging.INFO if is_new else logging.DEBUG, "%s waits for ZooKeeper: %s", whose, why)
        else:
            self._since_s = now_s
            problems = _unconnected(self._settings, tls_problems(self._settings))
            log.warning("%s waits for ZooKeeper: %s", whose, problems or _unreachable(self._settings, error))


def end(client: KazooClient) -> None:
    """With its session, if anybody answers."""
    with contextlib.suppress(KazooException, KazooTimeoutError, OSError):
        client.stop()
    with contextlib.suppress(KazooException, KazooTimeoutError, OSError):
        client.close()


@contextlib.contextmanager
def answers(settings: HighAvailabilitySettings) -> Iterator[None]:
    """Turns kazoo's errors of the connection into NotReachable, and of who we are into AccessDenied."""
    try:
        with allowed(settings):
            yield
    except NO_ANSWER as error:
        raise NotReachable(_unreachable(settings, error)) from error


@contextlib.contextmanager
def allowed(settings: HighAvailabilitySettings) -> Iterator[None]:
    """Turns kazoo's errors of who we are into AccessDenied."""
    try:
        yield
    except SessionClosedRequireSaslError as error:
        raise user_wanted(settings) from error
    except InvalidACLError as error:
        raise user_unknown(settings) from error
    except NoAuthError as error:
        raise not_for_us(settings, ZooKeeperPaths(settings).root, None) from error


def _unreachable(settings: HighAvailabilitySettings, error: BaseException | str) -> str:
    why = error if isinstance(error, str) else str(error) or type(error).__name__
    return f"ZooKeeper at {settings.quorum} does not answer ({why}): is it running, and is this the right address?"


class _Sockets(SequentialThreadingHandler):  # type: ignore[misc]
    """Connects as `context` says: kazoo by itself trusts the authorities of the machine, too."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._context = context

    def create_connection(
        self, address: tuple[str, int], hostname: str = "", timeout: float | None = None, **_: object
    ) -> socket.socket:
        made = socket.create_connection(address, timeout)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made if self._context is None else self._context.wrap_socket(made, server_hostname=hostname)


class _Client(KazooClient):  # type: ignore[misc]
    """`is_refused`: the server has not let our user in, and kazoo has given up."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.is_refused = False
        self.add_listener(self._look)
        self._login = self._connection._authenticate_with_sasl
        self._connection._authenticate_with_sasl = self._log_in

    def _look(self, _: object) -> None:
        if self.client_state == KeeperState.AUTH_FAILED:  # for a moment; then it is as any other that is closed
            self.is_refused = True

    def _log_in(self, *arguments: object) -> None:
        try:
            self._login(*arguments)
        except (SASLException, SessionClosedRequireSaslError) as error:  # kazoo's thread would die of it
            raise AuthFailedError from error


def _client(settings: HighAvailabilitySettings) -> KazooClient:
    again: dict[str, Any] = {"max_tries": -1, "delay": 0.05, "max_delay": 0.5, "backoff": 2}
    return _Client(
        settings.quorum,
        timeout=settings.session_timeout_ms / 1000,
        handler=_Sockets(tls_context(settings)),
        connection_retry=KazooRetry(**again),
        command_retry=KazooRetry(max_tries=0),
        **access_options(settings),
    )


def _start(client: KazooClient, settings: HighAvailabilitySettings, withdraw: threading.Event) -> None:
    try:
        is_there = client.start_async()
    except (OSError, ssl.SSLError) as error:
        raise NotReachable(_unreachable(settings, error)) from error
    began = time.monotonic()
    problems: dict[str, str] | None = None
    while not is_there.wait(0.05):
        waited = time.monotonic() - began
        if client.is_refused:
            raise AuthFailedError
        if problems is None and waited >= LOOK_SECONDS:
            problems = tls_problems(settings)
            if all(problems.values()):
                raise NotReachable(_unconnected(settings, problems))
        if waited >= CONNECT_SECONDS or withdraw.is_set():
            raise NotReachable(
                _unconnected(settings, problems or {}) or _unreachable(settings, f"waited {waited:.0f} s")
            )


def _unconnected(settings: HighAvailabilitySettings, problems: Mapping[str, str]) -> str:
    """Empty where TLS is not to blame."""
    found = "; ".join(f"{server}: {problem}" for server, problem in problems.items() if problem)
    return found and f"no connection with ZooKeeper at {settings.quorum} comes about. {found}"


def _prepare(client: _Client, settings: HighAvailabilitySettings, withdraw: threading.Event) -> None:
    """Our nodes are there. A connection that breaks meanwhile is waited for as long as the first one was."""
    began = time.monotonic()
    while True:
        try:
            make_nodes(client, settings)
        except NO_ANSWER:
            if client.is_refused or withdraw.is_set() or time.monotonic() - began >= CONNECT_SECONDS:
                raise
            withdraw.wait(AGAIN_SECONDS)
        else:
            return


def make_nodes(client: KazooClient, settings: HighAvailabilitySettings) -> None:
    """Those that a cluster has, where they are missing. Raises NotOurs, AccessDenied."""
    paths = ZooKeeperPaths(settings)
    asked(client.ensure_path_async(paths.root))
    try:
        asked(client.create_async(paths.format, FORMAT))
    except NodeExistsError:
        found, _ = asked(client.get_async(paths.format))
        if found != FORMAT:
            raise NotOurs(f"ZooKeeper's {paths.format}", f"{found[:40]!r}, wanted {FORMAT!r}") from None
    asked(client.ensure_path_async(paths.leader))
    asked(client.ensure_path_async(paths.jobs))
    if settings.acl == CREATOR:
        for path in (paths.root, paths.format, paths.leader, paths.jobs):
            acls, _ = asked(client.get_acls_async(path))
            if is_open(acls):
                raise not_for_us_alone(settings, path, acls)


def closed_to_us(client: KazooClient, settings: HighAvailabilitySettings, path: str) -> AccessDenied:
    """A leader may not change this node: as its ACL says, or that of the folder, which lets make and remove it."""
    acls = None
    with contextlib.suppress(*NO_ANSWER):
        folder = path.rpartition("/")[0]
        acls = _acls(client, folder)
        if acls is None or _lets(acls, Permissions.CREATE | Permissions.DELETE):
            return not_for_us(settings, path, _acls(client, path))
        path = folder
    return not_for_us(settings, path, acls)


def _lets(acls: Sequence[ACL], permissions: int) -> bool:
    """Whether somebody may do all of that; who, only the server knows."""
    return any(acl.perms & permissions == permissions for acl in acls)


def _denied(client: KazooClient, settings: HighAvailabilitySettings) -> AccessDenied:
    """Says which node is not for us: one that we may not read, or the lowest on the way to our root."""
    paths, found = ZooKeeperPaths(settings), "/"
    with contextlib.suppress(*NO_ANSWER):
        parts = paths.root.split("/")
        on_the_way = ["/".join(parts[:count]) or "/" for count in range(1, len(parts) + 1)]
        for path in (*on_the_way, paths.format, paths.leader, paths.jobs):
            try:
                asked(client.get_async(path))
            except NoNodeError:
                continue
            except NoAuthError:
                return not_for_us(settings, path, _acls(client, path))
            if path in on_the_way:
                found = path
        return not_for_us(settings, found, _acls(client, found))
    return not_for_us(settings, paths.root, None)


def _acls(client: KazooClient, path: str) -> list[ACL] | None:
    try:
        acls: list[ACL] = asked(client.get_acls_async(path))[0]
    except (NoAuthError, NoNodeError):
        return None
    return acls
