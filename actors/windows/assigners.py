"""Assigners: which windows a record belongs to. Flink: TumblingEventTimeWindows and its relatives, GlobalWindows.

An assigner is a value and travels with the job. `time` says what time it goes by: "event", the record's own;
"processing", the clock of the task when the record is there; None, no time at all. A record of a stream
without event time therefore needs a window of one of the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, TypeAlias

from ...state.kinds.durations import DAY_MS, Duration, at_least, duration_ms, whole_ms
from .errors import InvalidWindow
from .evictors import Evictor, keep_last
from .local_days import LocalDays, check_zone
from .time_triggers import event_time, processing_time
from .triggers import Trigger, count, never, purging
from .window import GLOBAL_WINDOW, TimeWindow, Window, time_window, window_start

Time: TypeAlias = Literal["event", "processing"]

Gap: TypeAlias = Duration | Callable[[Any], Duration]
"""Of sessions: the same for all, or a function of the record."""


class WindowAssigner:
    """Subclass it for an assigner of your own. It must not remember anything."""

    time: Time | None = "event"

    as_if_seconds: str = ""
    """How it was written, where its ms may well be meant as seconds."""

    merges: bool = False
    """Whether windows of a key that touch become one, as sessions do."""

    def assign(self, record: Any, time_ms: int) -> Collection[Window]:
        """The windows of a record, in any order; perhaps none. `time_ms` is what `time` says, and 0 for None."""
        raise NotImplementedError(f"{type(self).__name__}.assign is not defined")  # abstract

    def default_trigger(self) -> Trigger:
        """When to fire if nothing else is asked for."""
        return _trigger_of(self.time)

    def default_evictor(self) -> Evictor | None:
        """The evictor if no other is asked for; None: a window keeps all its records."""
        return None


def _trigger_of(time: Time | None) -> Trigger:
    match time:
        case "event":
            return event_time()
        case "processing":
            return processing_time()
        case None:
            return never()


@dataclass(frozen=True)
class _Regular(WindowAssigner):
    """Windows that lie at regular distances, from an offset on, or from the beginning of a time zone's days."""

    size_ms: int
    step_ms: int
    """From the start of one window to the start, or of cumulative ones to the end, of the next."""
    offset_ms: int = 0
    tz: str | None = None
    time: Time = "event"
    as_if_seconds: str = field(default="", compare=False, repr=False)

    kind: ClassVar[str]

    def _check(self, period_ms: int) -> None:
        """`period_ms`: what the offset must be within."""
        at_least(1, f"{self.kind}: size", self.size_ms, error=InvalidWindow)
        at_least(1, f"{self.kind}: step", self.step_ms, error=InvalidWindow)
        if self.time not in ("event", "processing"):
            raise InvalidWindow(f"{self.kind}: time: wanted 'event' or 'processing', found {self.time!r:.80}")
        if self.tz is not None:
            check_zone(self.tz)
            if period_ms % DAY_MS or self.size_ms % DAY_MS:
                raise InvalidWindow(
                    f"{self.kind}: tz={self.tz!r} is for windows of whole days, as days=1; found {self.size_ms} ms: "
                    "leave tz out, and use offset_ms where hours begin at other minutes"
                )
            period_ms = DAY_MS
        whole_ms(f"{self.kind}: offset_ms", self.offset_ms, error=InvalidWindow)
        if not 0 <= self.offset_ms < period_ms:
            raise InvalidWindow(
                f"{self.kind}: offset_ms: wanted at least 0 and below {period_ms}, found {self.offset_ms}: the same "
                f"windows have the offset {self.offset_ms % period_ms}"
            )

    @property
    def _days(self) -> LocalDays | None:
        return None if self.tz is None else LocalDays(self.tz, self.offset_ms)


@dataclass(frozen=True)
class Sliding(_Regular):
    """Windows of one size, one beginning each `step_ms`. They overlap, or, with a size below it, leave gaps."""

    kind: ClassVar[str] = "sliding"

    def __post_init__(self) -> None:
        self._check(self.step_ms)

    def assign(self, record: Any, time_ms: int) -> Collection[Window]:
        if (days := self._days) is not None:
            size, step, day = self.size_ms // DAY_MS, self.step_ms // DAY_MS, days.day_of(time_ms)
            starts = range(day - day % step, day - size, -step)
            return [TimeWindow(days.start_of(start), days.start_of(start + size)) for start in reversed(starts)]
        last, size_ms = window_start(time_ms, self.offset_ms, self.step_ms), self.size_ms
        starts = range(last, time_ms - size_ms, -self.step_ms)
        return [time_window(start, start + size_ms) for start in reversed(starts)]


@dataclass(frozen=True)
class Tumbling(Sliding):
    """Windows of one size, one after the other: each time is in one of them."""

    kind: ClassVar[str] = "tumbling"

    def assign(self, record: Any, time_ms: int) -> Collection[Window]:
        if self.tz is not None:
            return super().assign(record, time_ms)
        start = time_ms - (time_ms - self.offset_ms) % self.size_ms
        return (time_window(start, start + self.size_ms),)


@dataclass(frozen=True)
class Cumulative(_Regular):
    """Windows that begin together each `size_ms` and end one after the other, each `step_ms`. Flink SQL: CUMULATE.

    In a time zone a day of 25 hours has more of them, and each day's last one ends with the day.
    """

    kind: ClassVar[str] = "cumulative"

    def __post_init__(self) -> None:
        self._check(self.size_ms)
        if self.size_ms % self.step_ms:
            raise InvalidWindow(
                f"cumulative: wanted a size that is a multiple of the step, found a size of {self.size_ms} ms and "
                f"steps of {self.step_ms} ms"
            )

    def assign(self, record: Any, time_ms: int) -> Collection[Window]:
        start, end = self._period(time_ms)
        first_end = start + ((time_ms - start) // self.step_ms + 1) * self.step_ms
        ends = [*range(first_end, end, self.step_ms), end]
        return [time_window(start, each) for each in ends]

    def _period(self, time_ms: int) -> tuple[int, int]:
        if (days := self._days) is not None:
            size, day = self.size_ms // DAY_MS, days.day_of(time_ms)
            first = day - day % size
            return days.start_of(first), days.start_of(first + size)
        start = window_start(time_ms, self.offset_ms, self.size_ms)
        return start, start + self.size_ms


@dataclass(frozen=True)
class Sessions(WindowAssigner):
    """Windows of activity: they end when a key has had no record for the gap. Records that are no further apart than
    the gap are in one session.
    """

    gap: int | Callable[[Any], Duration]
    """In ms, or a function of the record that gives it."""
    time: Time = "event"
    as_if_seconds: str = field(default="", compare=False, repr=False)
    merges: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        if not callable(self.gap):
            at_least(1, "session: gap", self.gap, error=InvalidWindow)

    def assign(self, record: Any, time_ms: int) -> Collection[Window]:
        gap_ms = self.gap if isinstance(self.gap, int) else self._gap_of(record, self.gap)
        return (time_window(time_ms, time_ms + gap_ms),)

    def _gap_of(self, record: Any, gap: Callable[[Any], Duration]) -> int:
        found = gap(record)
        return duration_ms(f"session: the gap of {record!r:.80}", found, error=InvalidWindow)


@dataclass(frozen=True)
class Global(WindowAssigner):
    """One window of everything, which never ends: give it a trigger."""

    time: ClassVar[None] = None  # type: ignore[misc]

    def assign(self, record: Any, time_ms: int) -> Collection[Window]:
        return _GLOBAL


@dataclass(frozen=True)
class Counted(Global):
    """Windows of a number of records of a key. Flink: countWindow."""

    size: int
    slide: int | None = None
    """Fire after this many records, with the last `size` of them; None: after `size`, and begin with nothing again."""

    def __post_init__(self) -> None:
        for name, number in (("size", self.size), ("slide", self.slide)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number <= 0):
                raise InvalidWindow(f"count window: {name}: wanted a number of records above 0, found {number!r:.80}")

    def default_trigger(self) -> Trigger:
        return purging(count(self.size)) if self.slide is None else count(self.slide)

    def default_evictor(self) -> Evictor | None:
        return None if self.slide is None else keep_last(self.size)


_GLOBAL: Final = (GLOBAL_WINDOW,)
