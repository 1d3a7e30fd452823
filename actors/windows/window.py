"""Windows: spans of time, and the one window of everything. Values; state and timers are kept under their `namespace`.

A window holds `start` and not `end`, so the last time in it is `end - 1`: the time of its results. Times are
milliseconds since the epoch, within 64 bits: what would lie beyond is the end of time. Flink: TimeWindow, GlobalWindow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from ...messages import own_record
from ..flow.elements import END_OF_TIME, NO_WATERMARK


@own_record
class TimeWindow(NamedTuple):
    """From `start`, which is in it, to `end`, which is not."""

    start: int
    end: int

    @property
    def max_timestamp(self) -> int:
        """The last time in it."""
        return self.end - 1


@own_record
class GlobalWindow(NamedTuple):
    """The window of everything."""

    @property
    def start(self) -> int:
        return NO_WATERMARK

    @property
    def end(self) -> int:
        return END_OF_TIME

    @property
    def max_timestamp(self) -> int:
        """The end of time itself: nothing comes after it."""
        return END_OF_TIME


GLOBAL_WINDOW: Final = GlobalWindow()

Window: TypeAlias = TimeWindow | GlobalWindow


def namespace_of(window: Window) -> tuple[int, ...]:
    """The namespace of its state and its timers: plain data."""
    return tuple(window)


def window_of(namespace: Any) -> Window:
    """The window of a namespace, as a timer has it."""
    return TimeWindow(*namespace) if namespace else GLOBAL_WINDOW


def window_start(timestamp_ms: int, offset_ms: int, size_ms: int) -> int:
    """The start of the window of this size that holds a time, where one window starts at the offset. Flink:
    TimeWindow.getWindowStartWithOffset.
    """
    return timestamp_ms - (timestamp_ms - offset_ms) % size_ms


def time_window(start: int, end: int) -> TimeWindow:
    """With both ends within 64 bits."""
    if start < NO_WATERMARK or end > END_OF_TIME:
        start, end = max(start, NO_WATERMARK), min(end, END_OF_TIME)
    return tuple.__new__(TimeWindow, (start, end))


def merged(windows: Iterable[TimeWindow]) -> list[tuple[TimeWindow, tuple[TimeWindow, ...]]]:
    """Merge windows that touch: each window that comes of it, and those that it is made of, by start. Flink:
    TimeWindow.mergeWindows.
    """
    found: list[tuple[TimeWindow, tuple[TimeWindow, ...]]] = []
    for window in sorted(windows):
        if found and window.start <= found[-1][0].end:
            last, parts = found[-1]
            found[-1] = TimeWindow(last.start, max(last.end, window.end)), (*parts, window)
        else:
            found.append((window, (window,)))
    return found
