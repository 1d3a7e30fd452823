"""TaskTime: event time and the clock in one task: fires what is due, a part at a time.

A watermark that comes in makes timers due and windows fire. That may be a lot, so the task does a part of it per step:
between two parts a barrier may pass, and what has not fired yet is part of the snapshot. No record is taken meanwhile;
when all is done the watermark goes on to the tasks behind this one. Flink: InternalTimerServiceImpl with interruptible
timers (FLINK-20217), ProcessingTimeService.
"""

from __future__ import annotations

from typing import Literal

from ...messages import AnnounceWatermark, InputWatermark, ReportWatermark, TaskDeployment, TaskEventTime
from ..context import Clock, Ref
from ..flow.elements import END_OF_TIME, NO_WATERMARK, Batch, WatermarkStatus
from ..operators.assign_timestamps import AssignTimestamps
from ..operators.source import Source, SourceState
from .source_time import SourceTime
from .task_setup import TaskParts
from .task_watermarks import TaskWatermarks
from .time_report import TimeReport


class TaskTime:
    """One attempt's; owned by its task, on whose thread all is called but `event_time` and `report`."""

    def __init__(
        self, parts: TaskParts, clock: Clock, deployment: TaskDeployment, owner: Ref, warn_ms: int | None
    ) -> None:
        self._parts = parts
        self._clock = clock
        channels = parts.gate.channels
        feedback = [index for index, each in enumerate(channels) if each.feedback]
        groups = [each.idle_group for each in channels]
        self.watermarks = TaskWatermarks(len(channels), clock.now_ms(), feedback, groups)
        self._firing: int | None = None
        """The watermark that the operators are being advanced to."""
        self._said_idle = False
        operators = parts.chain.operators
        self._assigners = tuple(each for each in operators if isinstance(each, AssignTimestamps))
        first = operators[0]
        self._source = SourceTime(first, operators[1:], deployment, owner, clock) if isinstance(first, Source) else None
        last = self._assigners[-1] if self._assigners else None
        self._report = TimeReport(deployment, parts, self.watermarks, last, clock, warn_ms)

    @property
    def is_firing(self) -> bool:
        """Whether a watermark has come and not all is done that it makes due."""
        return self._firing is not None

    def restore(self) -> None:
        """Go on where the snapshot was taken: what was due then and has not fired is due at once."""
        self.watermarks.restore(self._parts.state.restored_watermarks, self._parts.gate.channels)
        if self.watermarks.current_ms != NO_WATERMARK:
            self._firing = self.watermarks.current_ms
        if self._source is not None:
            self._source.begin()

    def snapshot(self) -> tuple[InputWatermark, ...]:
        return self.watermarks.snapshot(self._parts.gate.channels)

    def receive(self, channel: int, timestamp_ms: int) -> None:
        """A watermark on a channel."""
        self._take_over(self.watermarks.receive(channel, timestamp_ms, self._clock.now_ms()))

    def set_idle(self, channel: int, is_idle: bool) -> None:
        """A channel is idle, or active again."""
        self._take_over(self.watermarks.set_idle(channel, is_idle))

    def end(self, channel: int) -> None:
        """The channel's data has ended."""
        self._take_over(self.watermarks.end(channel, self._clock.now_ms()))

    def end_source(self) -> None:
        """The task is a source's, and its data has ended: no timer of its own is due then."""
        self._end_of_time()
        while self._parts.chain.advance(END_OF_TIME):
            pass
        self._report.say_late()

    def fire(self) -> bool:
        """Do a part of what the watermark makes due; whether there is more."""
        assert self._firing is not None, "no watermark has come"
        if self._firing == END_OF_TIME:
            self._end_of_time()
        if self._parts.chain.advance(self._firing):
            return True
        self._report.say_late()
        self._firing = None
        self._say_idle()
        return False

    def fire_due(self) -> tuple[bool, float | None]:
        """Do a part of what is due by the clock: whether anything was done; else in how many ms there will be."""
        now_ms = self._clock.wall_ms()
        fired, due_ms = self._parts.chain.fire_due(now_ms)
        return fired, None if due_ms is None else max(float(due_ms - now_ms), 0.0)

    # -- the source

    def poll(self) -> Batch | Literal[SourceState.END] | None:
        """The next batch of the task's source. Raises what that does, and UnwantedResult."""
        assert self._source is not None, "the task has no source"
        return self._source.poll()

    def poll_delay_ms(self) -> float | None:
        """After None: when to poll again at the latest. Raises what the source does."""
        assert self._source is not None, "the task has no source"
        return self._source.poll_delay_ms()

    @property
    def is_paused(self) -> bool:
        """Whether the source is ahead of others that wait for it, and is not polled."""
        return self._source is not None and self._source.is_paused

    # -- idleness: by the time in which records could have been taken

    def stands_still(self) -> None:
        """No record is taken: outputs hold the task back, or its source is not to be polled."""
        for assigner in self._assigners:
            assigner.clock.stop()

    def goes_on(self, now_ms: float, records_in: int) -> None:
        """Records are taken, unless it says otherwise in the same step. `records_in`: how many have been."""
        for assigner in self._assigners:
            assigner.clock.go_on()
        self._report.look(now_ms, records_in)

    def rests(self) -> None:
        """All has been taken and sent."""
        if not self._parts.outputs.is_available():
            self.stands_still()

    # -- for others

    def align(self, message: AnnounceWatermark) -> None:
        """How far the slowest source of the group is."""
        if self._source is not None:
            self._source.align(message.minimum_ms)

    def report(self) -> ReportWatermark | None:
        """For the others of its group; None where nobody waits for it. From any thread."""
        return None if self._source is None else self._source.report()

    def event_time(self, is_held_back: bool) -> TaskEventTime:
        """For the metrics. From any thread."""
        return self._report.event_time(is_held_back)

    def _take_over(self, is_further: bool) -> None:
        if is_further:
            self._firing = self.watermarks.current_ms
        if self._firing is None or not self.watermarks.is_idle:
            self._say_idle()

    def _say_idle(self) -> None:
        """That all channels are idle goes behind the watermark that was due by it, which would take it back."""
        if self.watermarks.is_idle != self._said_idle:
            self._said_idle = not self._said_idle
            if not self._assigners:
                self._parts.outputs.send_watermark(WatermarkStatus(self._said_idle))

    def _end_of_time(self) -> None:
        for assigner in self._assigners:
            assigner.end()
        if self._source is not None:
            self._source.end()
