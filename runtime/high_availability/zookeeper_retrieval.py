"""ZooKeeperRetrieval: watches the first candidate of ZooKeeper's queue. Flink: ZooKeeperLeaderRetrievalDriver."""

from __future__ import annotations

import logging
import threading

from kazoo.client import KazooState
from kazoo.exceptions import NoNodeError

from .leader import Leader, LeaderChanged
from .listeners import Listeners
from .nodes import who_leads
from .settings import HighAvailabilitySettings
from .zookeeper_client import NO_ANSWER, KazooNodes, ZooKeeperPaths, answers, connected, end

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 0.1


class ZooKeeperRetrieval:
    """One listener, with a session and a thread of its own. Raises NotReachable, NotOurs when it is made.

    As long as ZooKeeper does not answer, the last leader that was heard of is taken for the leader: it may be well.
    """

    def __init__(self, settings: HighAvailabilitySettings) -> None:
        self._paths = ZooKeeperPaths(settings)
        with answers(settings):
            self._client = connected(settings)
        self._nodes = KazooNodes(self._client)
        self._listeners = Listeners()
        self._changed = threading.Event()
        self._is_closed = False
        self._client.add_listener(self._state_changed)
        self._thread = threading.Thread(target=self._watch, name="understudy-leader", daemon=True)
        self._thread.start()

    def leader(self) -> Leader | None:
        return self._listeners.leader

    def on_change(self, callback: LeaderChanged) -> None:
        self._listeners.add(callback)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._listeners.close()
            self._changed.set()
            end(self._client)
            if self._thread is not threading.current_thread():
                self._thread.join()

    def _watch(self) -> None:
        while not self._is_closed:
            self._changed.clear()
            try:
                self._listeners.heard(who_leads(self._nodes, self._paths.leader, self._changed.set))
            except (*NO_ANSWER, NoNodeError) as error:  # the folder may have been removed, and be made again
                if not self._is_closed:
                    log.info("nobody says who leads for now: %s", error)
                    self._changed.wait(_AGAIN_SECONDS)
                continue
            self._changed.wait()

    def _state_changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:  # what changed meanwhile, no watch may say
            self._changed.set()
