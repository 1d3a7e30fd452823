"""Watermark generators: how far event time has come, judged by the records that were seen.

A strategy is what a program names, as `bounded_out_of_orderness(5_000)`; each subtask, and each split of a source,
makes a generator of it. All that a generator must remember over a failure is its watermark: a restored one gets that.
Flink: WatermarkStrategy, WatermarkGenerator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, Unpack

import numpy as np

from ...messages.absent import name_absent
from ...state.columns.timed_batch import least_and_greatest
from ...state.kinds.durations import Duration, Units, as_if_seconds, duration_ms
from ..flow.elements import NO_WATERMARK, Batch, Times
from ..flow.records import rows_of
from .event_times import UnusableTime


class WatermarkGenerator(Protocol):
    """Makes the watermarks of one split, or of a whole subtask where a source has no splits."""

    def on_batch(self, times: Times, records: Batch) -> int | None:
        """These records have come, with these event times, at least one. Returns the watermark after them: no record
        with this or an older time comes any more. None: nothing new. One that goes back counts for nothing.
        """
        ...

    def restore(self, watermark_ms: int) -> None:
        """Go on from this watermark, in place of a fresh start."""
        ...


def watermarks_before(generator: WatermarkGenerator, times: Times, records: Batch, watermark_ms: int) -> Times | None:
    """For each record the watermark before it, if the generator were asked after each; None where no record is at or
    below its own. `watermark_ms`: the one before the batch. To be asked before `on_batch`.

    A generator without a method `before_each` is asked once a batch: then it is the one before the batch for all.
    """
    before_each = getattr(generator, "before_each", None)
    before: Times | None = None if before_each is None else before_each(times, records)
    if before is None:
        return None if times.min() > watermark_ms else np.full(len(times), watermark_ms)
    marks: Times = np.maximum(before, watermark_ms)
    return marks if (times <= marks).any() else None


_OF_FLINK: Final = {
    "for_bounded_out_of_orderness": "write bounded_out_of_orderness(seconds=5)",
    "for_monotonous_timestamps": "write monotonous()",
    "for_generator": "give assign_timestamps an object whose generator() returns a WatermarkGenerator",
    "no_watermarks": "leave assign_timestamps out",
    "with_timestamp_assigner": "write assign_timestamps(column_or_function, watermarks)",
    "with_idleness": "write idle_after_ms=... in assign_timestamps",
    "with_watermark_alignment": "write max_drift_ms=... in assign_timestamps",
}
"""Methods of its WatermarkStrategy."""


class WatermarkStrategy(Protocol):
    """Makes the generators; travels with the program, and so must be picklable."""

    def generator(self) -> WatermarkGenerator:
        """A new one, for one split."""
        ...


@dataclass(frozen=True, slots=True)
class BoundedOutOfOrderness:
    """A record comes at most `delay_ms` behind the newest one. Flink: BoundedOutOfOrdernessWatermarks."""

    delay_ms: int
    as_if_seconds: str = field(default="", compare=False, repr=False)
    """How it was written, where its ms may well be meant as seconds."""

    def generator(self) -> WatermarkGenerator:
        return _Bounded(self.delay_ms)


@dataclass(frozen=True, slots=True)
class Punctuated:
    """Some records say how far time has come. Flink: AssignerWithPunctuatedWatermarks."""

    watermark_of: Callable[[Any, int], int | None]

    def generator(self) -> WatermarkGenerator:
        return _Punctuated(self.watermark_of)


for _strategy in (WatermarkStrategy, BoundedOutOfOrderness, Punctuated):
    name_absent(_strategy, "a strategy of watermarks", _OF_FLINK)

LARGE_BOUND_MS: Final = 60_000
"""Of such a bound it is looked at how much of it records need."""


class _Bounded:
    def __init__(self, delay_ms: int) -> None:
        self._delay_ms = delay_ms
        self._newest_ms = NO_WATERMARK
        self.most_behind_ms: int | None = 0 if delay_ms >= LARGE_BOUND_MS else None
        """How far a record was behind the newest before it, at most; None: that is not looked at."""

    def on_batch(self, times: Times, records: Batch) -> int | None:
        newest_ms = int(times.max())
        if self.most_behind_ms is not None:
            behind_ms = max(self._newest_ms - int(times.min()), int((np.maximum.accumulate(times) - times).max()))
            self.most_behind_ms = max(self.most_behind_ms, behind_ms)
            self._newest_ms = max(self._newest_ms, newest_ms)
        return max(newest_ms - self._delay_ms - 1, NO_WATERMARK)

    def restore(self, watermark_ms: int) -> None:
        """The watermark says it all: whoever calls it lets none go back."""

    def before_each(self, times: Times, records: Batch) -> Times | None:
        """By the records of this batch alone, the watermark before each of them; None if none is late by another one,
        as is usual.
        """
        least, greatest = least_and_greatest(times)
        # Below all time this difference is beyond the end of time: then it is looked at record by record.
        if bool((least > np.maximum.accumulate(greatest) - self._delay_ms - 1).all()):
            return None
        before = np.full(len(times), NO_WATERMARK)
        before[1:] = np.maximum.accumulate(times)[:-1]
        return np.where(before > NO_WATERMARK + self._delay_ms, before - self._delay_ms - 1, NO_WATERMARK)


class _Punctuated:
    def __init__(self, watermark_of: Callable[[Any, int], int | None]) -> None:
        self._watermark_of = watermark_of

    def on_batch(self, times: Times, records: Batch) -> int | None:
        rows: Sequence[Any] = records if isinstance(records, list) else rows_of(records)
        found = map(self._asked, rows, times.tolist())
        return max((watermark for watermark in found if watermark is not None), default=None)

    def _asked(self, record: Any, time_ms: int) -> int | None:
        """Raises UnusableTime for what is no watermark."""
        watermark = self._watermark_of(record, time_ms)
        if watermark is None or type(watermark) is int:
            return watermark
        if hasattr(watermark, "__index__") and not isinstance(watermark, bool):
            return int(watermark)
        raise UnusableTime(
            f"punctuated: wanted the watermark in whole milliseconds since 1970, or None, found {watermark!r:.60} for "
            f"the record {record!r:.60}: for a datetime write int(moment.timestamp() * 1000)"
        )

    def restore(self, watermark_ms: int) -> None:
        """Nothing is kept."""

    def before_each(self, times: Times, records: Batch) -> Times:
        """By the records of this batch alone, the watermark before each of them."""
        rows: Sequence[Any] = records if isinstance(records, list) else rows_of(records)
        found = map(self._asked, rows, times.tolist())
        each = np.array([NO_WATERMARK if watermark is None else watermark for watermark in found], np.int64)
        return np.concatenate(([NO_WATERMARK], np.maximum.accumulate(each)[:-1]))


def bounded_out_of_orderness(delay_ms: Duration | None = None, **units: Unpack[Units]) -> BoundedOutOfOrderness:
    """Watermarks for records that come at most so long behind the newest one; what comes later than that is late. A
    number of ms, a timedelta, or keywords: bounded_out_of_orderness(seconds=5). Raises ValueError.
    """
    what = "bounded_out_of_orderness"
    bound_ms = duration_ms(what, delay_ms, units, error=ValueError, least=0)
    return BoundedOutOfOrderness(bound_ms, as_if_seconds(what, delay_ms))


def monotonous() -> BoundedOutOfOrderness:
    """Watermarks for records in the order of their times. Flink: forMonotonousTimestamps."""
    return BoundedOutOfOrderness(0)


def punctuated(watermark_of: Callable[[Any, int], int | None]) -> Punctuated:
    """Watermarks that records bring along: `watermark_of(record, time_ms)` returns one in ms, or None."""
    if not callable(watermark_of):
        raise ValueError(f"punctuated: wanted a function of a record and its time, found {watermark_of!r:.60}")
    return Punctuated(watermark_of)
