"""TimerWheel: deadlines of many calls, with one timer of the event loop for all of them.

Deadlines are rounded up to a tick, and those of one tick lie in one list: a deadline costs an append, and nothing when
its call ends before. On the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final, Generic, TypeVar

T = TypeVar("T")

TICK_MS: Final = 10


class TimerWheel(Generic[T]):
    """Calls `expired` with each item whose deadline has come. It does not know whether an item is over by then."""

    def __init__(self, loop: asyncio.AbstractEventLoop, expired: Callable[[T], None]) -> None:
        self._loop = loop
        self._expired = expired
        self._ticks: dict[int, list[T]] = {}
        self._order: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0

    def add(self, item: T, after_ms: float) -> None:
        tick = int((self._loop.time() * 1000 + after_ms) // TICK_MS) + 1
        listed = self._ticks.get(tick)
        if listed is not None:
            listed.append(item)
            return
        self._ticks[tick] = [item]
        heappush(self._order, tick)
        if self._timer is None or tick < self._next:
            self._set(tick)

    def close(self) -> None:
        self._ticks.clear()
        self._order.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, tick: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = tick
        self._timer = self._loop.call_at(tick * TICK_MS / 1000, self._turn)

    def _turn(self) -> None:
        self._timer = None
        now = max(self._next, int(self._loop.time() * 1000 // TICK_MS))  # as floats it may come a hair too early
        while self._order and self._order[0] <= now:
            for item in self._ticks.pop(heappop(self._order)):
                self._expired(item)
        if self._order:
            self._set(self._order[0])
