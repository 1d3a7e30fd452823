"""Which windows there are columns for, and how `state/columnar` sees them: as panes, or as a gap between sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from ...state.columnar.pane_windows import PaneWindows, SlidingPanes, cumulative_panes, sliding_panes
from ...state.kinds.durations import DAY_MS
from .assigners import Cumulative, Sessions, Sliding, Tumbling, WindowAssigner
from .local_days import LocalDays


@dataclass(frozen=True, slots=True)
class SessionGap:
    """Sessions: records of a key that are at most so far apart are in one window."""

    gap_ms: int

    @property
    def described(self) -> dict[str, Any]:
        """As plain data: equal for equal gaps."""
        return {"kind": "session", "gap_ms": self.gap_ms}


@dataclass(frozen=True, slots=True)
class DayGrid:
    """Panes that are the days of a time zone."""

    days: LocalDays

    def pane_of(self, time_ms: int) -> int:
        return self.days.day_of(time_ms)

    def start_of(self, pane: int) -> int:
        return self.days.start_of(pane)

    @property
    def described(self) -> dict[str, Any]:
        return {"tz": self.days.tz, "offset_ms": self.days.offset_ms}


ColumnarShape: TypeAlias = PaneWindows | SessionGap


def columnar_shape(assigner: WindowAssigner) -> ColumnarShape | None:
    """The windows of this assigner; None if they are for records one by one."""
    if assigner.time != "event":
        return None
    match assigner:
        case Sessions(gap=int(gap_ms)):
            return SessionGap(gap_ms)
        case Cumulative(tz=None):
            return cumulative_panes(assigner.step_ms, assigner.size_ms, assigner.offset_ms)
        case Sliding(tz=None) if type(assigner) in (Sliding, Tumbling):
            return sliding_panes(assigner.size_ms, assigner.step_ms, assigner.offset_ms)
        case Sliding(tz=str(tz)) if type(assigner) in (Sliding, Tumbling):
            grid = DayGrid(LocalDays(tz, assigner.offset_ms))
            return SlidingPanes(grid, assigner.size_ms // DAY_MS, assigner.step_ms // DAY_MS)
    return None
