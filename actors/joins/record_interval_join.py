"""RecordIntervalJoin: the interval join of records of any kind; results are pairs (left, right), with None for a side
that is missing in an outer join. It does what IntervalJoin says.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from ..operators.collector import Collector, OutputTag
from ..operators.timers import KeyedTimer
from .interval_join import TimeInterval
from .joined_columns import How
from .late_records import LATE, CountsLateRecords
from .record_sides import RecordSides, rounded_up


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
        """Rows of one side have no more matches: those that had none become results in an outer join. All whose time
        has come by the watermark go at once, with their timers.
        """
        side: int = timer.namespace[0]
        state, _ = self._sides(side)
        kept_for = self._interval.kept_for(side)
        until_ms = max(timer.time_ms, self.watermark) - kept_for
        kept: list[Any] = []
        over: list[Any] = []
        for held in state.get():
            (over if held[1] <= until_ms else kept).append(held)
        if not over:
            return
        state.update(kept)
        if not self._outer[side]:
            return
        over.sort(key=itemgetter(1))
        for time_ms in dict.fromkeys(held[1] + kept_for for held in over):
            if time_ms != timer.time_ms:
                self.timers.delete_event_time(time_ms, timer.namespace)
        alone = [held for held in over if not held[2]]
        if alone:
            pairs = [(None, held[0]) if side else (held[0], None) for held in alone]
            out.emit(pairs, np.array([held[1] + max(0, kept_for) for held in alone]))

    def _take(self, side: int, record: Any, out: Collector) -> None:
        time_ms = self.timestamp
        if self._is_late(record, time_ms, LATE[side], out):
            return
        own, other = self._sides(side)
        held_there = other.get()
        matches = [held for held in held_there if self._are_near(side, time_ms, held[1])]
        own.add([record, time_ms, bool(matches)])
        self.timers.at_event_time(self._removed_ms(side, time_ms), (side,))
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

    def _removed_ms(self, side: int, time_ms: int) -> int:
        """When a row goes. One of which nothing comes then may stay a little longer, so that many go at once."""
        kept_for = self._interval.kept_for(side)
        due_ms = time_ms + kept_for
        return due_ms if self._outer[side] else rounded_up(due_ms, kept_for)
