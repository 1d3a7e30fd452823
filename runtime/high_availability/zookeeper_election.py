"""ZooKeeperElection: candidates stand in a queue of ephemeral nodes, and the first of them leads.

A node lives as long as its session, and each watches the one before it. A leader writes in transactions, each with the
check that its own node is there: so a leader whose session has ended writes nothing, whatever it thinks.

Flink: ZooKeeperLeaderElectionDriver; the queue is Curator's LeaderLatch.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import ConnectionLoss, KazooException, NoAuthError, NoNodeError

from ...messages import LeaderSessionId
from ...state.errors import LostLeadership
from .ahead import Ahead
from .errors import NotOurs, NotReachable
from .leader import Leader
from .leader_node import leader_bytes
from .nodes import CANDIDATE, Place, by_number, place_in_queue, who_leads
from .settings import HighAvailabilitySettings
from .term import Term, TermLeadership, elapsed_s
from .zookeeper_client import (
    AGAIN_SECONDS,
    NO_ANSWER,
    KazooNodes,
    Silence,
    ZooKeeperPaths,
    answers,
    asked,
    closed_to_us,
    connected,
    end,
    make_nodes,
)

log = logging.getLogger(__name__)

_REMOVED = "ZooKeeper's %s was removed by somebody, and is made again"


class ZooKeeperElection:
    """One process's candidacy, with a session of its own for each term."""

    def __init__(
        self, settings: HighAvailabilitySettings, now_s: Callable[[], float] = elapsed_s, *, key_id: str = ""
    ) -> None:
        self._settings = settings
        self._key_id = key_id
        self._paths = ZooKeeperPaths(settings)
        self._now_s = now_s

    def campaign(
        self, withdraw: threading.Event, known: Callable[[], None] = lambda: None
    ) -> ZooKeeperLeadership | None:
        try:
            client = connected(self._settings, withdraw=withdraw)
        except NotReachable:
            if withdraw.is_set():  # nobody waits for the connection any more
                return None
            raise
        silence, is_whole = Silence(self._settings), True
        with answers(self._settings):
            while not withdraw.is_set():
                try:
                    if not is_whole:
                        make_nodes(client, self._settings)
                    is_whole, won = True, self._stand(client, withdraw, known)
                except NO_ANSWER as error:
                    silence.goes_on(f"a candidate of cluster {self._settings.cluster_id}", error)
                    withdraw.wait(AGAIN_SECONDS)
                    if client.is_refused:  # was it its server's end, or have passwords changed?
                        with contextlib.suppress(NotReachable):
                            client = connected(self._settings, withdraw=withdraw)
                except NoNodeError:
                    log.warning(_REMOVED, self._paths.leader)
                    is_whole = False
                except BaseException:
                    end(client)
                    raise
                else:
                    if won is not None:
                        return won
        end(client)
        return None

    def _stand(
        self, client: KazooClient, withdraw: threading.Event, known: Callable[[], None]
    ) -> ZooKeeperLeadership | None:
        """Queue up, and wait for our turn; None when it is withdrawn, or has to queue up again."""
        own, nodes = self._own_node(client), KazooNodes(client)
        ahead = Ahead(self._settings, self._key_id, f"ZooKeeper's {self._paths.leader}", known)
        alive_from_s = self._now_s() + self._settings.session_timeout_ms / 1000
        while not withdraw.is_set():
            moved, sent_s = threading.Event(), self._now_s()
            match place_in_queue(nodes, self._paths.leader, own, moved.set):
                case Place.OUT:
                    return None
                case Place.FIRST:
                    node = f"{self._paths.leader}/{own}"
                    return ZooKeeperLeadership(client, self._settings, node, sent_s, self._now_s, self._key_id)
            self._check_owned(client)
            while not (moved.wait(AGAIN_SECONDS) or withdraw.is_set() or client.state != KazooState.CONNECTED):
                if not ahead.is_known:
                    leader = who_leads(nodes, self._paths.leader, lambda: None)
                    ahead.seen(leader, lives=self._now_s() >= alive_from_s)
            if client.state != KazooState.CONNECTED:
                withdraw.wait(AGAIN_SECONDS)
        return None

    def _check_owned(self, client: KazooClient) -> None:
        """Raises NotOurs for a candidate that would never go."""
        for child in by_number(asked(client.get_children_async(self._paths.leader))):
            node = f"{self._paths.leader}/{child}"
            status = asked(client.exists_async(node))
            if status is not None and not status.ephemeralOwner:
                found = "a candidate that belongs to no session, so that nobody behind it ever leads"
                raise NotOurs(f"ZooKeeper's {node}", found)

    def _own_node(self, client: KazooClient) -> str:
        """One of this session: also one that was made though nobody heard the answer."""
        if client.client_id is None:
            raise ConnectionLoss  # there is no connection just now
        session = client.client_id[0]
        for child in by_number(asked(client.get_children_async(self._paths.leader))):
            status = asked(client.exists_async(f"{self._paths.leader}/{child}"))
            if status is not None and status.ephemeralOwner == session:
                return child
        prefix = f"{self._paths.leader}/{CANDIDATE}"
        made: str = asked(client.create_async(prefix, b"", ephemeral=True, sequence=True))
        return made.rpartition("/")[2]


class ZooKeeperLeadership(TermLeadership):
    """From `campaign`. Owns the client."""

    def __init__(
        self,
        client: KazooClient,
        settings: HighAvailabilitySettings,
        node: str,
        since_s: float,
        now_s: Callable[[], float],
        key_id: str,
    ) -> None:
        self._client = client
        self._key_id = key_id
        self._settings = settings
        self._paths = ZooKeeperPaths(settings)
        self._node = node
        self._now_s = now_s
        granted_ms = getattr(client, "_session_timeout", 0) or settings.session_timeout_ms
        session = LeaderSessionId(f"{int(node.rpartition('-')[2])}-{uuid4().hex[:12]}")
        self._term = Term(session, min(granted_ms, settings.session_timeout_ms) / 1000, since_s, now_s, self._look)
        client.add_listener(self._state_changed)
        self._term.begin()

    def publish(self, address: str) -> None:
        data = leader_bytes(Leader(address, self.session, self._key_id))
        self._surely(self._node, lambda: self._checked("set_data", self._node, data))

    def resign(self) -> None:
        self._term.end()
        end(self._client)

    # -- records

    def read(self) -> Mapping[str, bytes]:
        found: dict[str, bytes] = {}
        self._term.check()
        with answers(self._settings):
            try:
                names = asked(self._client.get_children_async(self._paths.jobs))
            except NoNodeError:
                raise NotOurs(f"ZooKeeper's {self._paths.jobs}", "nothing, the node is gone") from None
            for name in names:
                with contextlib.suppress(NoNodeError):  # removed by hand, just now
                    found[name] = asked(self._client.get_async(f"{self._paths.jobs}/{name}"))[0] or b""
        self._term.check()
        return found

    def write(self, name: str, data: bytes) -> None:
        path = f"{self._paths.jobs}/{name}"

        def work() -> None:
            try:
                self._checked("set_data", path, data)
            except NoNodeError:
                self._create(path, data)

        self._surely(path, work)

    def remove(self, name: str) -> None:
        path = f"{self._paths.jobs}/{name}"

        def work() -> None:
            with contextlib.suppress(NoNodeError):
                self._checked("delete", path)

        self._surely(path, work)

    def place(self, name: str) -> str:
        return f"ZooKeeper's {self._paths.jobs}/{name}"

    # -- inside

    def _checked(self, what: str, *arguments: Any) -> None:
        """One change, if our node is there still."""
        transaction = self._client.transaction()
        transaction.check(self._node, -1)
        getattr(transaction, what)(*arguments)
        lead, done = asked(transaction.commit_async())
        if isinstance(lead, NoNodeError):
            self._term.lose("its session with ZooKeeper has ended")
            raise LostLeadership(self.session)
        if isinstance(done, Exception):
            raise done

    def _create(self, path: str, data: bytes) -> None:
        """A record, and the folder of all of them if that is not there any more."""
        try:
            self._checked("create", path, data)
        except NoNodeError:
            log.warning(_REMOVED, self._paths.jobs)
            make_nodes(self._client, self._settings)
            self._checked("create", path, data)

    def _surely(self, path: str, work: Callable[[], None]) -> None:
        """Until it is done, or the leadership is lost: whoever asks has to know which. Raises AccessDenied where an ACL
        forbids it, and NotReachable for what else is refused.
        """
        while True:
            self._term.check()
            try:
                work()
            except NO_ANSWER as error:
                log.info("leader session %s tries a write again: %s", self.session, error)
                self._term.pause(AGAIN_SECONDS)
            except NoAuthError as error:
                raise closed_to_us(self._client, self._settings, path) from error
            except KazooException as error:
                why = str(error) or "somebody else has changed what is there"
                raise NotReachable(f"ZooKeeper refuses to change {path}: {type(error).__name__}: {why}") from error
            else:
                return

    def _look(self) -> float:
        sent_s = self._now_s()
        if asked(self._client.exists_async(self._node)) is None:
            raise LostLeadership(self.session)
        return sent_s

    def _state_changed(self, state: str) -> None:
        if state == KazooState.LOST:
            self._term.lose("its session with ZooKeeper has ended")
