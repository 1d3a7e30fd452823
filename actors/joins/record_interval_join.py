"""RecordIntervalJoin: the interval join of records of any kind; results are pairs (left, right), with None for a side
that is missing in an outer join. It does what IntervalJoin says.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..operators.collector import Collector, OutputTag
from ..operators.timers import KeyedTimer
from .interval_join import TimeInterval
from .joined_columns import How
from .late_records import LATE, CountsLateRecords
from .record_sides import RecordSides


class RecordIntervalJoin(RecordSides, CountsLateRecords):
    """See the module. Kept are (record, its time, whether it has had a match), as lists."""

    late_right_tag: ClassVar[OutputTag] = LATE[1]

    results: ClassVar[str] = "(left, right)"
    """How they are called in texts."""

    def __init__(self, how: How, interval: TimeInterval) -> None:
        super().__init__(how)
        self._interval = interval

    def _rules(self) -> dict[str, str]:
        return {"how": self._how, "interval": self._interval.rule}

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        """Rows of one side have no more matches: those that had none become results in an outer join."""
        side: int = timer.namespace[0]
        state, _ = self._sides(side)
        kept = []
        for held in state.get():
            if held[1] + self._interval.kept_for(side) > timer.time_ms:
                kept.append(held)
            elif self._outer[side] and not held[2]:
                at_ms = max(held[1], timer.time_ms)
                out.emit([(None, held[0]) if side else (held[0], None)], np.array([at_ms]))
        state.update(kept)

    def _take(self, side: int, record: Any, out: Collector) -> None:
        time_ms = self.timestamp
        if self._is_late(record, time_ms, LATE[side], out):
            return
        own, other = self._sides(side)
        held_there = other.get()
        matches = [held for held in held_there if self._are_near(side, time_ms, held[1])]
        own.add([record, time_ms, bool(matches)])
        self.timers.at_event_time(time_ms + self._interval.kept_for(side), (side,))
        for held in matches:
            pair = (record, held[0]) if side == 0 else (held[0], record)
            out.emit([pair], np.array([max(time_ms, held[1])]))
        if any(self._outer) and not all(held[2] for held in matches):
            for held in matches:
                held[2] = True
            other.update(held_there)

    def _are_near(self, side: int, time_ms: int, other_ms: int) -> bool:
        apart = other_ms - time_ms if side == 0 else time_ms - other_ms
        return self._interval.lower_ms <= apart <= self._interval.upper_ms
