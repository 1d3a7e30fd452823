"""TaskTime: event time and the clock in one task: fires what is due, a part at a time.

A watermark that comes in makes timers due and windows fire. That may be a lot, so the task does a part of it per step:
between two parts a barrier may pass, and what has not fired yet is part of the snapshot. No record is taken meanwhile;
when all is done the watermark goes on to the tasks behind this one. Flink: InternalTimerServiceImpl with interruptible
timers (FLINK-20217), ProcessingTimeService.
"""

from __future__ import annotations

from ...messages import InputWatermark
from ..context import Clock
from ..flow.elements import END_OF_TIME, NO_WATERMARK, WatermarkStatus
from .task_setup import TaskParts
from .task_watermarks import TaskWatermarks


class TaskTime:
    """One attempt's; owned by its task, on whose thread all is called."""

    def __init__(self, parts: TaskParts, clock: Clock) -> None:
        self._parts = parts
        self._clock = clock
        self.watermarks = TaskWatermarks(len(parts.gate.channels))
        self._firing: int | None = None
        """The watermark that the operators are being advanced to."""
        self._said_idle = False

    @property
    def is_firing(self) -> bool:
        """Whether a watermark has come and not all is done that it makes due."""
        return self._firing is not None

    def restore(self) -> None:
        """Go on where the snapshot was taken: what was due then and has not fired is due at once."""
        self.watermarks.restore(self._parts.state.restored_watermarks, self._parts.gate.channels)
        if self.watermarks.current_ms != NO_WATERMARK:
            self._firing = self.watermarks.current_ms

    def snapshot(self) -> tuple[InputWatermark, ...]:
        return self.watermarks.snapshot(self._parts.gate.channels)

    def receive(self, channel: int, timestamp_ms: int) -> None:
        """A watermark on a channel."""
        self._take_over(self.watermarks.receive(channel, timestamp_ms))

    def set_idle(self, channel: int, is_idle: bool) -> None:
        """A channel is idle, or active again."""
        self._take_over(self.watermarks.set_idle(channel, is_idle))

    def end(self, channel: int) -> None:
        """The channel's data has ended."""
        self._take_over(self.watermarks.end(channel))

    def end_source(self) -> None:
        """The task is a source's, and its data has ended: no timer of its own is due then."""
        while self._parts.chain.advance(END_OF_TIME):
            pass

    def fire(self) -> bool:
        """Do a part of what the watermark makes due; whether there is more."""
        assert self._firing is not None, "no watermark has come"
        if self._parts.chain.advance(self._firing):
            return True
        self._firing = None
        return False

    def fire_due(self) -> tuple[bool, float | None]:
        """Do a part of what is due by the clock: whether anything was done; else in how many ms there will be."""
        now_ms = self._clock.wall_ms()
        fired, due_ms = self._parts.chain.fire_due(now_ms)
        return fired, None if due_ms is None else max(float(due_ms - now_ms), 0.0)

    def _take_over(self, is_further: bool) -> None:
        if is_further:
            self._firing = self.watermarks.current_ms
        if self.watermarks.is_idle != self._said_idle:
            self._said_idle = not self._said_idle
            self._parts.outputs.send_watermark(WatermarkStatus(self._said_idle))
