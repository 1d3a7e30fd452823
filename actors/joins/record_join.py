"""RecordJoin: the regular join of records of any kind; results are pairs (left, right).

An outer join gives (kind, left, right), with None for a side that is missing. It does what RegularJoin says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import NoEventTime
from ..flow.changelog import DELETE, INSERT, Changelog
from ..operators.collector import Collector
from ..operators.timers import KeyedTimer
from .joined_columns import How
from .record_sides import RecordSides, rounded_up
from .time_to_live import TimeToLive


class RecordJoin(RecordSides):
    """See the module. Kept are (record, since when it lives, whether it has had a match, its event time or None), as
    lists.
    """

    def __init__(self, how: How, ttl: TimeToLive) -> None:
        super().__init__(how)
        self.lifetime = ttl

    def _rules(self) -> dict[str, str]:
        return {"how": self._how, "rows live": self.lifetime.rule}

    _ended: frozenset[int] = frozenset()
    """In rounds of a loop: sides of which nothing comes any more, so records of the other one wait for nothing."""

    def _input_ended(self, input_index: int) -> None:
        self._ended |= {input_index}

    @property
    def _changelog(self) -> Changelog | None:
        return Changelog(at_once=1) if any(self._outer) else None

    @property
    def results(self) -> str:
        """How they are called in texts."""
        return "(kind, left, right)" if any(self._outer) else "(left, right)"

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        """Rows may be over."""
        for state in (self._left, self._right):
            before = state.get()
            left = [held for held in before if not self._is_over(held[1])]
            if len(left) < len(before):
                state.update(left)

    def _take(self, side: int, record: Any, out: Collector) -> None:
        own, other = self._sides(side)
        known = matches = other.get()
        came_ms = self._came_ms()
        if self.lifetime.ttl_ms is not None:
            known = [held for held in known if not self._is_over(held[1])]
            matches = [held for held in known if self._meet(came_ms, held[1])]
            self._wait(came_ms + self.lifetime.ttl_ms)
        if 1 - side not in self._ended:
            own.add([record, came_ms, bool(matches), self._time_ms()])
        if self._outer[1 - side] and not all(held[2] for held in matches):
            for held in matches:
                if not held[2]:
                    self._emit(DELETE, side, None, held[0], held[3], out)
        if any(self._outer) and not all(held[2] for held in matches):
            met = set(map(id, matches))
            other.update([[held[0], held[1], held[2] or id(held) in met, held[3]] for held in known])
        for held in matches:
            self._emit(INSERT, side, record, held[0], held[3], out)
        if not matches and self._outer[side]:
            self._emit(INSERT, side, record, None, None, out)

    def _emit(self, kind: str, side: int, own: Any, other: Any, other_ms: int | None, out: Collector) -> None:
        pair = (own, other) if side == 0 else (other, own)
        result = (kind, *pair) if any(self._outer) else pair
        if other_ms is not None and self.timestamps is not None and other_ms > self.timestamp:
            out.emit([result], np.array([other_ms]))
        else:
            out.collect(result)

    def _time_ms(self) -> int | None:
        return None if self.timestamps is None else self.timestamp

    def _came_ms(self) -> int:
        if self.lifetime.ttl_ms is None:
            return 0
        if self.lifetime.domain == "processing":
            return self.processing_time()
        if self.timestamps is None:
            raise NoEventTime(self.context.name, "a TTL by event time", self._input_index)
        return self.timestamp

    def _wait(self, until_ms: int) -> None:
        """For the removal of a row that is over by then: it is not seen any more, and may go with others."""
        assert self.lifetime.ttl_ms is not None, "rows without a TTL are never over"
        until_ms = rounded_up(until_ms, self.lifetime.ttl_ms)
        if self.lifetime.domain == "event":
            self.timers.at_event_time(until_ms)
        else:
            self.timers.at_processing_time(until_ms)

    def _meet(self, came_ms: int, other_ms: int) -> bool:
        """By event time rows of about the same time do; by the clock all that are not over."""
        assert self.lifetime.ttl_ms is not None, "rows without a TTL meet all others"
        return self.lifetime.domain == "processing" or abs(came_ms - other_ms) < self.lifetime.ttl_ms

    def _is_over(self, came_ms: int) -> bool:
        assert self.lifetime.ttl_ms is not None, "rows without a TTL are never over"
        now_ms = self.watermark if self.lifetime.domain == "event" else self.processing_time()
        return came_ms + self.lifetime.ttl_ms <= now_ms
