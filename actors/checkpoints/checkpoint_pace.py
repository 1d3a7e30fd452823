"""CheckpointPace: when the next periodic checkpoint may start. The timing half of Flink's CheckpointCoordinator.

The ticking stops while a tick that found no room is queued, and while the minimum pause runs; it resumes when the
checkpoint that was in the way is gone, or the pause is over. At most one request is queued. It belongs to the
CheckpointCoordinator, whose effects it adds its timers to.
"""

from __future__ import annotations

from collections.abc import Callable

from ...messages import CheckpointConfig
from .checkpoint_effects import CancelTimer, Refusal, Schedule
from .checkpoint_events import PeriodicTick, TimerEvent


class CheckpointPace:
    """Interval, minimum pause and the limit of concurrent checkpoints."""

    def __init__(self, config: CheckpointConfig, emit: Callable[[Schedule[TimerEvent] | CancelTimer], None]) -> None:
        self.is_on = False
        self._config = config
        self._emit = emit
        self._ticks = 0
        self._tick: PeriodicTick | None = None
        self._is_request_queued = False
        self._last_completion_ms: float | None = None

    def start(self) -> None:
        self.is_on = True
        self.schedule_next()

    def stop(self) -> None:
        self.is_on = False
        self.suspend()

    def suspend(self) -> None:
        """No tick and no queued request until `schedule_next`."""
        self._is_request_queued = False
        self._cancel_tick()

    def schedule_next(self) -> None:
        """Tick one interval from now; a job without an interval has no periodic checkpoints."""
        if self.is_on and self._config.interval_ms is not None:
            self._schedule_tick(max(self._config.interval_ms, self._config.min_pause_ms))

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

    def refusal(self, pending: int, now_ms: float) -> Refusal | None:
        """Why one more checkpoint may not start beside `pending` others; the request is queued or its tick put off."""
        if self._is_request_queued:
            return Refusal.ALREADY_QUEUED
        if pending >= self._config.max_concurrent:
            self._is_request_queued = True
            self._cancel_tick()
            return Refusal.TOO_MANY_CONCURRENT
        pause_ms = self._remaining_pause_ms(now_ms)
        if pause_ms > 0:
            if self.is_on:
                self._schedule_tick(pause_ms)
            return Refusal.MIN_PAUSE
        return None

    def _remaining_pause_ms(self, now_ms: float) -> float:
        if self._last_completion_ms is None:
            return 0
        return self._last_completion_ms + self._config.min_pause_ms - now_ms

    def _schedule_tick(self, delay_ms: float) -> None:
        self._cancel_tick()
        self._ticks += 1
        self._tick = PeriodicTick(self._ticks)
        self._emit(Schedule(delay_ms, self._tick))

    def _cancel_tick(self) -> None:
        if self._tick is not None:
            self._emit(CancelTimer(self._tick))
            self._tick = None
