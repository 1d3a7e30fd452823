"""PacedWorld: a world whose time does not run ahead of real time, and stands still while code runs.

Between two events it waits as long as they are apart, so that rates, intervals and timeouts are what they say. Code
takes no time, however long it takes: later events happen when it is done. So at a breakpoint nothing times out, and
afterwards nothing is made up for. The world goes on only while somebody waits for it; a little of the time in between
it can make up for (`catch_up`), so that also who only asks again and again sees it go on.

All happens on one thread. Another thread may only hand something over, with `from_outside`.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ..world.process import EPOCH_MS, Process, ProcessClock
from ..world.running_loop import put_back, take_out
from ..world.trace import Trace
from ..world.world import World

_NAP_MS = 5.0
"""Shorter waits are put together: a sleep takes some time of its own."""

CATCH_UP_MS = 1000.0
"""Whoever was at a breakpoint outside for an hour does not want to wait until all of it is made up for."""


def _real_ms() -> float:
    return time.monotonic() * 1000


class PacedWorld(World):
    """Made, and run, on one thread. It keeps no trace."""

    def __init__(self, real_ms: Callable[[], float] = _real_ms, nap: Callable[[float], bool] | None = None) -> None:
        """`real_ms`: the clock that it keeps to; `nap(seconds)`: waits, and tells whether something knocked."""
        super().__init__(seed=0)
        self.trace = _NoTrace(self)
        self.thread = threading.get_ident()
        self._born_ms = int(time.time() * 1000)
        self._owed_ms = 0.0
        """How far this time is ahead of real time."""
        self._real_ms = real_ms
        self._looked_ms = self._left_ms = real_ms()
        """When real time was looked at last, and when this world was left."""
        self._is_paced = True
        self._outside: deque[Callable[[], object]] = deque()
        self._knocked = threading.Event()
        self._nap = nap or self._knocked.wait

    def process(self, name: str, host: str = "") -> Process:
        """Its wall clock is right when the world begins."""
        process = super().process(name, host)
        process.clock = ProcessClock(self, 0.0, self._born_ms - EPOCH_MS)
        return process

    def from_outside(self, function: Callable[[], object]) -> None:
        """Have it called soon, on the world's thread. From any thread."""
        self._outside.append(function)
        self._knocked.set()

    def catch_up(self) -> None:
        """Let as much time go on as has passed outside, while nobody waited, up to `CATCH_UP_MS`."""
        if self.current is None:
            outside_ms = min(self._real_ms() - self._left_ms, CATCH_UP_MS)
            self._is_paced = False
            try:
                self.run_for(outside_ms)
            finally:
                self._is_paced = True

    def run_until(self, is_over: Callable[[], bool], limit_ms: float) -> bool:
        running, current = take_out(), self.current
        self._enter(current)
        try:
            while not is_over():
                if self._let_in():
                    continue
                due_ms = self._due_ms()
                if due_ms > limit_ms or due_ms == math.inf:
                    if limit_ms == math.inf or self._wait_until(limit_ms):
                        return False
                elif self._wait_until(due_ms):
                    self._take_next()
            return True
        finally:
            self._left_ms = self._real_ms()
            self.current = current
            put_back(running)

    def _due_ms(self) -> float:
        if self._soon:
            return self.now_ms
        return self._later[0][0] if self._later else math.inf

    def _take_next(self) -> None:
        event = self._soon.popleft() if self._soon else heapq.heappop(self._later)[2]
        if not event.is_cancelled:
            self._happen(event)

    def _let_in(self) -> bool:
        """Whether anything has come from outside."""
        self._knocked.clear()
        count = len(self._outside)
        for _ in range(count):
            self._outside.popleft()()
        return bool(count)

    def _wait_until(self, due_ms: float) -> bool:
        """Let time go on; False when something came from outside first."""
        ahead_ms = max(0.0, due_ms - self.now_ms)
        if not self._is_paced:
            self.now_ms += ahead_ms
            return True
        real_ms = self._real_ms()
        self._owed_ms = max(0.0, self._owed_ms + ahead_ms - (real_ms - self._looked_ms))
        self._looked_ms = real_ms
        if self._owed_ms < _NAP_MS:
            self.now_ms += ahead_ms
            return True
        has_knocked = self._nap(self._owed_ms / 1000)
        slept_ms = self._real_ms() - real_ms
        self._looked_ms = real_ms + slept_ms
        left_ms = min(ahead_ms, max(0.0, self._owed_ms - slept_ms)) if has_knocked else 0.0
        self._owed_ms = 0.0
        self.now_ms += ahead_ms - left_ms
        return not has_knocked


class _NoTrace(Trace):
    def add(self, who: str, what: str, *details: Any) -> None:
        """Nothing reads it, and a job may run for days."""
