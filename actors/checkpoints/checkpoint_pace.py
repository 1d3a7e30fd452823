"""CheckpointPace: when the next periodic checkpoint may start. The timing half of Flink's CheckpointCoordinator.

The ticking stops while a tick that found no room is queued, and while the minimum pause runs; it resumes when the
checkpoint that was in the way is gone, or the pause is over. At most one request is queued. It belongs to the
CheckpointRequests.
"""

from __future__ import annotations

from typing import TypeAlias

from ...messages import CheckpointConfig
from .checkpoint_effects import CancelTimer, Schedule
from .checkpoint_events import PeriodicTick, TimerEvent
from .checkpoint_reasons import Refusal

Timers: TypeAlias = list[Schedule[TimerEvent] | CancelTimer]


class CheckpointPace:
    """Interval, minimum pause and the limit of concurrent checkpoints."""

    def __init__(self, config: CheckpointConfig) -> None:
        self.is_on = False
        self._config = config
        self._ticks = 0
        self._tick: PeriodicTick | None = None
        self._is_request_queued = False
        self._last_completion_ms: float | None = None

    def start(self) -> Timers:
        self.is_on = True
        return self.schedule_next()

    def stop(self) -> Timers:
        self.is_on = False
        return self.suspend()

    def suspend(self) -> Timers:
        """No tick and no queued request until `schedule_next`."""
        self._is_request_queued = False
        return self._cancel_tick()

    def schedule_next(self) -> Timers:
        """Tick one interval from now; a job without an interval has no periodic checkpoints."""
        if not self.is_on or self._config.interval_ms is None:
            return []
        return self._schedule_tick(max(self._config.interval_ms, self._config.min_pause_ms))

    def take_tick(self, tick: PeriodicTick) -> bool:
        """Whether this is the tick that is due, and not one that was cancelled while it was under way."""
        is_due = tick == self._tick
        if is_due:
            self._tick = None
        return is_due

    def take_queued(self) -> bool:
        """A checkpoint is gone and has made room: whether a request waits for it, that may go now."""
        is_queued, self._is_request_queued = self._is_request_queued, False
        return is_queued and self.is_on

    def completed(self, now_ms: float) -> None:
        """The minimum pause begins."""
        self._last_completion_ms = now_ms

    def has_room(self, pending: int) -> bool:
        """Whether one more checkpoint may be under way beside `pending` others."""
        return pending < self._config.max_concurrent

    def refusal(self, pending: int, now_ms: float) -> tuple[Refusal | None, Timers]:
        """Why one more checkpoint may not start beside `pending` others; the request is queued or its tick put off."""
        if self._is_request_queued:
            return Refusal.ALREADY_QUEUED, []
        if not self.has_room(pending):
            self._is_request_queued = True
            return Refusal.TOO_MANY_CONCURRENT, self._cancel_tick()
        pause_ms = self._remaining_pause_ms(now_ms)
        if pause_ms > 0:
            return Refusal.MIN_PAUSE, self._schedule_tick(pause_ms) if self.is_on else []
        return None, []

    def _remaining_pause_ms(self, now_ms: float) -> float:
        if self._last_completion_ms is None:
            return 0
        return self._last_completion_ms + self._config.min_pause_ms - now_ms

    def _schedule_tick(self, delay_ms: float) -> Timers:
        cancelled = self._cancel_tick()
        self._ticks += 1
        self._tick = PeriodicTick(self._ticks)
        return [*cancelled, Schedule(delay_ms, self._tick)]

    def _cancel_tick(self) -> Timers:
        tick, self._tick = self._tick, None
        return [] if tick is None else [CancelTimer(tick)]
