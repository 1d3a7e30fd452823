"""Triggers that go by time. Flink: EventTimeTrigger, ProcessingTimeTrigger and the continuous ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Unpack

from ...state.kinds.durations import Duration, Units, as_if_seconds, duration_ms
from ..flow.elements import END_OF_TIME
from .errors import InvalidWindow
from .triggers import CONTINUE, FIRE, Trigger, TriggerContext, TriggerResult
from .window import Window, window_start

_duration_ms = partial(duration_ms, error=InvalidWindow)


@dataclass(frozen=True)
class EventTimeTrigger(Trigger):
    """Fires when the watermark has reached the window's last time, and with each record that comes after that."""

    def on_record(
        self, record: Any, timestamp_ms: int | None, window: Window, context: TriggerContext
    ) -> TriggerResult:
        if window.max_timestamp <= context.watermark:
            return FIRE
        context.at_event_time(window.max_timestamp)
        return CONTINUE

    def on_event_time(self, time_ms: int, window: Window, context: TriggerContext) -> TriggerResult:
        return FIRE if time_ms == window.max_timestamp else CONTINUE

    def on_merge(self, window: Window, context: TriggerContext) -> None:
        if window.max_timestamp > context.watermark:  # else the record that merges them fires
            context.at_event_time(window.max_timestamp)

    def clear(self, window: Window, context: TriggerContext) -> None:
        context.delete_event_time(window.max_timestamp)


@dataclass(frozen=True)
class ProcessingTimeTrigger(Trigger):
    """Fires when the clock has reached the window's last time."""

    def on_record(
        self, record: Any, timestamp_ms: int | None, window: Window, context: TriggerContext
    ) -> TriggerResult:
        context.at_processing_time(window.max_timestamp)
        return CONTINUE

    def on_processing_time(self, time_ms: int, window: Window, context: TriggerContext) -> TriggerResult:
        return FIRE if time_ms == window.max_timestamp else CONTINUE

    def on_merge(self, window: Window, context: TriggerContext) -> None:
        context.at_processing_time(window.max_timestamp)

    def clear(self, window: Window, context: TriggerContext) -> None:
        context.delete_processing_time(window.max_timestamp)


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(EventTimeTrigger):
    """Fires when the watermark reaches a multiple of the interval before the window's end, and then as event_time().

    The first multiple is the one after the first record's time. A watermark that passes several fires for each.
    """

    interval_ms: int
    as_if_seconds: str = field(default="", compare=False, repr=False)
    """How it was written, if that may well be meant as seconds."""

    def on_record(
        self, record: Any, timestamp_ms: int | None, window: Window, context: TriggerContext
    ) -> TriggerResult:
        if super().on_record(record, timestamp_ms, window, context) is FIRE:
            return FIRE
        if context.get("next") is None:
            since_ms = window.start if timestamp_ms is None else timestamp_ms
            self._await(window_start(since_ms, 0, self.interval_ms) + self.interval_ms, window, context)
        return CONTINUE

    def on_event_time(self, time_ms: int, window: Window, context: TriggerContext) -> TriggerResult:
        if time_ms != context.get("next"):
            return super().on_event_time(time_ms, window, context)
        self._await(time_ms + self.interval_ms, window, context)
        return CONTINUE if self._is_ending(window, context) else FIRE

    def on_merge(self, window: Window, context: TriggerContext) -> None:
        super().on_merge(window, context)
        if times := context.of_merged("next"):
            self._await(min(times), window, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        super().clear(window, context)
        if (next_ms := context.get("next")) is not None:
            context.delete_event_time(next_ms)

    def _await(self, next_ms: int, window: Window, context: TriggerContext) -> None:
        context.put("next", next_ms)
        if next_ms < window.max_timestamp and not self._is_ending(window, context):
            context.at_event_time(next_ms)

    def _is_ending(self, window: Window, context: TriggerContext) -> bool:
        """Whether the data of a window without end has ended: then no multiple counts but that."""
        return context.watermark == window.max_timestamp == END_OF_TIME


@dataclass(frozen=True)
class ContinuousProcessingTimeTrigger(ProcessingTimeTrigger):
    """Fires when the clock reaches a multiple of the interval, as long as there are records; and at the end of a window
    of processing time. A window of event time is forgotten at its end without another firing.
    """

    interval_ms: int

    def on_record(
        self, record: Any, timestamp_ms: int | None, window: Window, context: TriggerContext
    ) -> TriggerResult:
        if context.get("next") is None:
            self._await(self._multiple_after(context.processing_time()), window, context)
        return CONTINUE

    def on_processing_time(self, time_ms: int, window: Window, context: TriggerContext) -> TriggerResult:
        next_ms = context.get("next")
        if time_ms not in (next_ms, window.max_timestamp):
            return CONTINUE
        self._await(self._multiple_after(time_ms) if time_ms == next_ms else next_ms, window, context)
        return FIRE

    def on_merge(self, window: Window, context: TriggerContext) -> None:
        if times := context.of_merged("next"):
            self._await(min(times), window, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        super().clear(window, context)
        if (next_ms := context.get("next")) is not None:
            context.delete_processing_time(next_ms)

    def _multiple_after(self, time_ms: int) -> int:
        return window_start(time_ms, 0, self.interval_ms) + self.interval_ms

    def _await(self, next_ms: int, window: Window, context: TriggerContext) -> None:
        """A multiple, and the window's end if that comes before it: which it does not in a session that grows."""
        end_ms = window.max_timestamp
        context.put("next", next_ms)
        context.at_processing_time(end_ms if context.processing_time() < end_ms < next_ms else next_ms)


def event_time() -> Trigger:
    """Fire at the end of the window, and with each late record after that."""
    return EventTimeTrigger()


def processing_time() -> Trigger:
    """Fire when the clock reaches the end of the window."""
    return ProcessingTimeTrigger()


def continuous_event_time(interval: Duration | None = None, **units: Unpack[Units]) -> Trigger:
    """Fire at each multiple of the interval of event time, and at the end of the window."""
    interval_ms = _duration_ms("continuous_event_time: interval", interval, units)
    return ContinuousEventTimeTrigger(interval_ms, as_if_seconds("continuous_event_time", interval))


def continuous_processing_time(interval: Duration | None = None, **units: Unpack[Units]) -> Trigger:
    """Fire at each multiple of the interval of the clock: any_of(event_time(), continuous_processing_time(seconds=1))
    shows a window as it grows, and at its end.
    """
    return ContinuousProcessingTimeTrigger(_duration_ms("continuous_processing_time: interval", interval, units))
