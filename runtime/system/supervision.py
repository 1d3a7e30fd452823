"""Supervision as a value machine: given a failure, what becomes of the actor."""

from __future__ import annotations

from collections import deque

from ...actors.actor import RestartLimit, SupervisorStrategy


class Supervision:
    """One actor's record of restarts. RESTART turns into STOP when there were too many of them."""

    def __init__(self, strategy: SupervisorStrategy, limit: RestartLimit) -> None:
        self._strategy = strategy
        self._limit = limit
        self._restarts_ms: deque[float] = deque()

    def decide(self, now_ms: float) -> SupervisorStrategy:
        """What to do about a failure at `now_ms`; a RESTART is recorded as done."""
        if self._strategy is not SupervisorStrategy.RESTART:
            return self._strategy
        while self._restarts_ms and self._restarts_ms[0] <= now_ms - self._limit.within_ms:
            self._restarts_ms.popleft()
        if len(self._restarts_ms) >= self._limit.max_restarts:
            return SupervisorStrategy.STOP
        self._restarts_ms.append(now_ms)
        return SupervisorStrategy.RESTART
