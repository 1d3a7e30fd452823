"""RecordDeduplicate: `deduplicate` of records of any kind. It does what Deduplicate says."""

from __future__ import annotations

from typing import Any

from ...state.kinds.descriptors import ListState
from ..errors import NoEventTime
from ..operators.collector import Collector
from ..operators.keyed_operator import KeyedOperator
from ..operators.timers import KeyedTimer
from .late_records import LATE, CountsLateRecords
from .time_to_live import TimeToLive


class RecordDeduplicate(KeyedOperator, CountsLateRecords):
    """See the module."""

    _times: ListState[int] = ListState(int, name="times")
    """Of the records of the key that went on."""

    def __init__(self, within: TimeToLive) -> None:
        self.lifetime = within

    def _rules(self) -> dict[str, str]:
        return {"records count": self.lifetime.rule}

    def process(self, record: Any, out: Collector) -> None:
        within_ms, time_ms = self.lifetime.ttl_ms, 0
        if within_ms is not None and self.lifetime.domain == "event":
            if self.timestamps is None:
                raise NoEventTime(self.context.name, "deduplicate within a time by event time")
            time_ms = self.timestamp
            if self._is_late(record, time_ms, LATE[0], out):
                return
        elif within_ms is not None:
            time_ms = self.processing_time()
        if any(within_ms is None or abs(time_ms - each) < within_ms for each in self._times.get()):
            return
        self._times.add(time_ms)
        out.collect(record)
        if within_ms is None:
            return
        if self.lifetime.domain == "event":
            self.timers.at_event_time(time_ms + within_ms)
        else:
            self.timers.at_processing_time(time_ms + within_ms)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        assert self.lifetime.ttl_ms is not None, "timers are for what is forgotten"
        left = timer.time_ms - self.lifetime.ttl_ms
        self._times.update([each for each in self._times.get() if each > left])
