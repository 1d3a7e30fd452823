"""ZooKeeperRetrieval: watches the first candidate of ZooKeeper's queue. Flink: ZooKeeperLeaderRetrievalDriver."""

from __future__ import annotations

import logging
import threading

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import NoNodeError

from .errors import HighAvailabilityError
from .listeners import HeardLeader, Listeners
from .nodes import who_leads
from .settings import HighAvailabilitySettings
from .zookeeper_client import (
    AGAIN_SECONDS,
    NO_ANSWER,
    KazooNodes,
    Silence,
    ZooKeeperPaths,
    allowed,
    connected,
    end,
)

log = logging.getLogger(__name__)

_LATER_SECONDS = 5.0
"""After an error that somebody has to do something about."""


class ZooKeeperRetrieval(HeardLeader):
    """One listener, with a session and a thread of its own. Raises NotReachable, NotOurs, AccessDenied and UnusableFile
    when it is made.

    As long as ZooKeeper does not answer, the last leader that was heard of is taken for the leader: it may be well. So
    it is while ZooKeeper refuses our user, or our nodes to him: an error in the log says so, and it is tried again.
    """

    def __init__(self, settings: HighAvailabilitySettings) -> None:
        self._settings = settings
        self._paths = ZooKeeperPaths(settings)
        self._listeners = Listeners()
        self._changed, self._closed = threading.Event(), threading.Event()
        self._client = self._connected()
        self._silence = Silence(settings)
        self._thread = threading.Thread(target=self._watch, name="understudy-leader", daemon=True)
        self._thread.start()

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._listeners.close()
            self._changed.set()
            end(self._client)
            if self._thread is not threading.current_thread():
                self._thread.join()
                end(self._client)  # another one, if it was just made

    def _connected(self) -> KazooClient:
        client = connected(self._settings, withdraw=self._closed)
        client.add_listener(self._state_changed)
        return client

    def _watch(self) -> None:
        while not self._closed.is_set():
            self._changed.clear()
            try:
                self._look()
            except (*NO_ANSWER, NoNodeError) as error:  # the folder may have been removed, and be made again
                if not self._closed.is_set():
                    self._silence.goes_on("who asks who leads", error)
                    self._changed.wait(AGAIN_SECONDS)
            except HighAvailabilityError as error:
                if not self._closed.is_set():
                    log.error("the leader cannot be looked up, and is looked up again: %s", error)
                    self._closed.wait(_LATER_SECONDS)
            else:
                self._changed.wait()

    def _look(self) -> None:
        """And watch. Raises one of NO_ANSWER, NoNodeError, and HighAvailabilityError for what needs somebody."""
        if self._client.is_refused:
            end(self._client)
            self._client = self._connected()
        with allowed(self._settings):
            leader = who_leads(KazooNodes(self._client), self._paths.leader, self._changed.set)
        self._listeners.heard(leader)

    def _state_changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:  # what changed meanwhile, no watch may say
            self._changed.set()
