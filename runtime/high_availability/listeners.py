"""Listeners: those of one LeaderRetrieval: each hears who leads now, and then each change, in order."""

from __future__ import annotations

import threading

from .leader import Leader, LeaderChanged


class Listeners:
    """Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._callbacks: list[LeaderChanged] = []
        self.leader: Leader | None = None

    def add(self, callback: LeaderChanged) -> None:
        with self._lock:
            self._callbacks.append(callback)
            callback(self.leader)

    def heard(self, leader: Leader | None) -> None:
        """It leads now; callbacks are notified if another one did."""
        with self._lock:
            if leader != self.leader:
                self.leader = leader
                for callback in self._callbacks:
                    callback(leader)

    def close(self) -> None:
        with self._lock:
            self._callbacks.clear()


class HeardLeader:
    """Base of LeaderRetrievals: the leader that was heard of last; each change goes to the callbacks."""

    _listeners: Listeners

    def leader(self) -> Leader | None:
        return self._listeners.leader

    def on_change(self, callback: LeaderChanged) -> None:
        self._listeners.add(callback)
