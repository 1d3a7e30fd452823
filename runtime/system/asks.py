"""OpenAsks: every ask that has no answer yet, so that each one ends.

It ends by an answer, a failure, its timeout, or the end of the system.
"""

from __future__ import annotations

import math
import threading
from typing import Any

from ...actors.ask_errors import ActorDead, AskTimeout
from ...actors.timeouts import timeout_milliseconds
from .event_loop import SystemLoop
from .future import ActorFuture


class OpenAsks:
    """Hands out futures that are sure to be done one day. Any thread may use it."""

    def __init__(self, loop: SystemLoop, default_timeout_ms: float) -> None:
        self._loop = loop
        self._default_timeout_ms = default_timeout_ms
        self._lock = threading.Lock()
        self._open: dict[ActorFuture[Any], str] = {}
        self._closed = False

    def open(self, address: str, timeout_ms: float | None) -> ActorFuture[Any]:
        """A future that fails with AskTimeout after `timeout_ms` (None: the default; infinity: never)."""
        asked = timeout_milliseconds(timeout_ms)
        limit = self._default_timeout_ms if asked is None else asked
        future: ActorFuture[Any] = ActorFuture()
        if self._loop.home is not None and self._loop.home.is_elsewhere:
            future.try_fail(ActorDead(address, self._loop.home.why))
            return future
        with self._lock:
            closed = self._closed
            if not closed:
                self._open[future] = address
        if closed:
            future.try_fail(ActorDead(address, "its system is shut down"))
            return future
        self._arm(future, address, limit)
        return future

    def close(self) -> None:
        """Fail all open asks, and any that come later, with ActorDead."""
        with self._lock:
            self._closed = True
            left = list(self._open.items())
        for future, address in left:
            future.try_fail(ActorDead(address, "the system was shut down before the answer came"))

    def _arm(self, future: ActorFuture[Any], address: str, limit: float) -> None:
        future.add_done_callback(self._forget)
        if limit == math.inf:
            return
        timer = self._loop.call_later(
            limit, lambda: future.try_fail(AskTimeout(address, f"no answer within {limit:g} ms"))
        )
        future.add_done_callback(lambda _: self._loop.cancel(timer))

    def _forget(self, future: ActorFuture[Any]) -> None:
        with self._lock:
            self._open.pop(future, None)
