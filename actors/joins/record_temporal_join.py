"""RecordTemporalJoin: the temporal join of records of any kind; results are pairs (left, version), with None for no
version in a left join. It does what TemporalJoin says.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...state.kinds.descriptors import ListState
from ..errors import NoEventTime
from ..operators.collector import Collector
from ..operators.keyed_operator import KeyedOperator
from ..operators.timers import KeyedTimer
from .late_records import LATE, CountsLateRecords


class RecordTemporalJoin(KeyedOperator, CountsLateRecords):
    """See the module."""

    inputs: ClassVar[int] = 2

    _waiting: ListState[Any] = ListState(object, name="waiting")
    _versions: ListState[Any] = ListState(object, name="versions")
    """(record, its time), as lists; versions by their times, and of one time as they came."""

    results: ClassVar[str] = "(left, right)"
    """How they are called in texts."""

    def __init__(self, is_left: bool) -> None:
        self._is_left = is_left

    def process(self, record: Any, out: Collector) -> None:
        time_ms = self.timestamp
        if not self._is_late(record, time_ms, LATE[0], out):
            self._waiting.add([record, time_ms])
            self.timers.at_event_time(time_ms)

    def process_2(self, record: Any, out: Collector) -> None:
        if self.timestamps is None:
            raise NoEventTime(self.context.name, "the time of a version", self._input_index)
        versions = [*self._versions.get(), [record, self.timestamp]]
        versions.sort(key=lambda version: version[1])
        self._versions.update(versions)
        self._forget_old(self.watermark)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        """The watermark has reached the time of waiting records."""
        left = []
        for record, time_ms in self._waiting.get():
            if time_ms == timer.time_ms:
                valid = [version for version, begin_ms in self._versions.get() if begin_ms <= time_ms]
                if valid or self._is_left:
                    out.collect((record, valid[-1] if valid else None))
            else:
                left.append([record, time_ms])
        self._waiting.update(left)
        self._forget_old(timer.time_ms)

    def _forget_old(self, until_ms: int) -> None:
        """Versions that were followed by another one by then, which no record that waits or may come can need."""
        versions = self._versions.get()
        oldest_ms = min((time_ms for _, time_ms in self._waiting.get()), default=until_ms)
        begun = [place for place, (_, begin_ms) in enumerate(versions) if begin_ms <= min(until_ms, oldest_ms)]
        if len(begun) > 1:
            self._versions.update(versions[begun[-1] :])
