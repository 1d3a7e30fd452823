"""ZooKeeperRetrieval: watches the first candidate of ZooKeeper's queue. Flink: ZooKeeperLeaderRetrievalDriver."""

from __future__ import annotations

import logging
import threading

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import NoNodeError

from .leader import Leader, LeaderChanged
from .leader_node import read_leader
from .listeners import Listeners
from .settings import HighAvailabilitySettings
from .zookeeper_client import NO_ANSWER, ZooKeeperPaths, answers, asked, connected, end
from .zookeeper_election import by_number

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
                self._listeners.heard(_first(self._client, self._paths, self._changed))
            except NO_ANSWER as error:
                if not self._is_closed:
                    log.info("nobody says who leads for now: %s", error)
                    self._changed.wait(_AGAIN_SECONDS)
                continue
            self._changed.wait()

    def _state_changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:  # what changed meanwhile, no watch may say
            self._changed.set()


def _first(client: KazooClient, paths: ZooKeeperPaths, changed: threading.Event) -> Leader | None:
    """Who leads; `changed` is set when that may not be so any more."""
    queue = by_number(asked(client.get_children_async(paths.leader, watch=lambda _: changed.set())))
    if not queue:
        return None
    node = f"{paths.leader}/{queue[0]}"
    try:
        data, _ = asked(client.get_async(node, watch=lambda _: changed.set()))
    except NoNodeError:
        changed.set()
        return None
    return read_leader(data, f"ZooKeeper's {node}")
