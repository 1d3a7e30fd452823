"""AssignedTimes: `assign_timestamps`, from which on records have an event time. A part of every DataStream."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar, Unpack

from ...actors.operators.assign_timestamps import AssignTimestamps
from ...actors.operators.of_records import T
from ...actors.operators.operator import Operator
from ...actors.operators.watermark_generators import WatermarkStrategy
from ...state.kinds.durations import Duration
from .event_time import checked_alignment, checked_ms, checked_strategy, checked_time
from .known_options import Options, known_options
from .samples import check_times
from .stream_graph import StreamEdge

S = TypeVar("S", covariant=True)
"""A stream of the same records."""


class AssignedTimes(Generic[S, T]):
    """A part of every stream."""

    _edges: tuple[StreamEdge, ...]

    @abstractmethod
    def _then(self, kind: str, operator: Operator, **options: Any) -> S:
        """The stream of one more operator."""

    @known_options(example='assign_timestamps("at", bounded_out_of_orderness(5_000))')
    def assign_timestamps(
        self,
        time: str | Callable[[T], Any],
        watermarks: WatermarkStrategy,
        *,
        idle_after_ms: Duration | None = None,
        max_drift_ms: Duration | None = None,
        group: str = "default",
        **options: Unpack[Options],
    ) -> S:
        """Give each record its event time: what stands in a column or field of this name, or what a function of the
        record returns: milliseconds since 1970 as an int, or a datetime (without a time zone: UTC).

        `watermarks`: how far event time has come, judged by the records: `bounded_out_of_orderness(5_000)`,
        `monotonous()`, `punctuated(function)`, or a WatermarkStrategy of your own. Windows and event-time timers behind
        this go by them. Right behind a source that names its splits there is a watermark for each.

        `idle_after_ms`: a split, or a subtask of a source without splits, that brings no record for so long is not
        waited for until it does; None: it is always. The time in which it is not read does not count. Flink:
        withIdleness.
        `max_drift_ms`: what is further than the slowest of its `group` by more than this is not read until the others
        have caught up; right behind sources only. Flink: withWatermarkAlignment.
        """
        alignment = checked_alignment(max_drift_ms, group)
        timed = AssignTimestamps(
            checked_time(time), checked_strategy(watermarks), checked_ms("idle_after_ms", idle_after_ms), alignment
        )
        check_times(time, self._edges)
        return self._then("assign-timestamps", timed, **options)
