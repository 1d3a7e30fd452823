"""ClockJumps: that the clock of a TaskManager's machine was set, or stood still; looked at with each heartbeat.

Timeouts, heartbeats, checkpoints and idle sources go by a clock that never jumps. Timers of processing time, ages of
state by processing time and leases of names go by the time of day, so somebody should know when that has jumped.
"""

from __future__ import annotations

import logging

from ..context import Clock

log = logging.getLogger(__name__)

NOTED_MS = 10_000.0
"""A smaller jump is that of a clock that is adjusted, and of no consequence."""


class ClockJumps:
    """Of one process."""

    def __init__(self) -> None:
        self._begin_ms: float | None = None

    def look(self, clock: Clock) -> None:
        """Log what has jumped since the last look."""
        begin_ms = clock.wall_ms() - clock.now_ms()
        before_ms, self._begin_ms = self._begin_ms, begin_ms
        if before_ms is None or abs(jump_ms := begin_ms - before_ms) < NOTED_MS:
            return
        if jump_ms < 0:
            log.warning(
                "the clock of this machine went back by %.0f s: timers of processing time that were set before fire "
                "when it has come to their times again; timeouts and checkpoints do not go by it",
                -jump_ms / 1000,
            )
        else:
            log.warning(
                "the clock of this machine went forward by %.0f s: timers of processing time that fell due meanwhile "
                "fire now, and state with a ttl is older; timeouts and checkpoints do not go by it",
                jump_ms / 1000,
            )
