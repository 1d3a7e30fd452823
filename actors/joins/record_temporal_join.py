"""RecordTemporalJoin: the temporal join of records of any kind; results are pairs (left, version), with None for no
version in a left join. It does what TemporalJoin says.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from operator import itemgetter
from typing import Any, ClassVar, Final

import numpy as np

from ...state.kinds.descriptors import ListState
from ..errors import NoEventTime
from ..operators.collector import Collector
from ..operators.timers import KeyedTimer
from .keys_of_sides import ComparesKeys
from .late_records import LATE, CountsLateRecords

_MANY: Final = 64
_MOST_CROWDED_KEYS: Final = 4096
_TIME: Final[Callable[[Any], int]] = itemgetter(1)


class RecordTemporalJoin(ComparesKeys, CountsLateRecords):
    """See the module."""

    inputs: ClassVar[int] = 2

    _waiting: ListState[Any] = ListState(object, name="waiting")
    _versions: ListState[Any] = ListState(object, name="versions")
    """(record, its time), as lists; versions by their times, and of one time as they came."""

    results: ClassVar[str] = "(left, right)"
    """How they are called in texts."""

    def __init__(self, is_left: bool) -> None:
        self._is_left = is_left

    def open(self) -> None:
        self._crowded: dict[Any, tuple[int, int]] = {}
        """Of keys with many versions: the time of the last, and how many may come before all are looked at again."""

    def process(self, record: Any, out: Collector) -> None:
        if self._looks_at_keys:
            self._look_at_key(0)
        time_ms = self.timestamp
        if not self._is_late(record, time_ms, LATE[0], out):
            self._waiting.add([record, time_ms])
            self.timers.at_event_time(time_ms)

    def process_2(self, record: Any, out: Collector) -> None:
        if self._looks_at_keys:
            self._look_at_key(1)
        if self.timestamps is None:
            raise NoEventTime(self.context.name, "the time of a version", self._input_index)
        time_ms = self.timestamp
        last_ms, more = self._crowded.get(self.key, (time_ms, 0))
        if more and last_ms <= time_ms:
            self._versions.add([record, time_ms])
            self._crowded[self.key] = time_ms, more - 1
            return
        versions = self._versions.get()
        if not versions or versions[-1][1] <= time_ms:
            self._versions.add([record, time_ms])
            versions.append([record, time_ms])
        else:
            insort(versions, [record, time_ms], key=_TIME)
            self._versions.update(versions)
        self._forget_old(versions, self._reached_ms)
        if len(versions) > _MANY:
            if len(self._crowded) >= _MOST_CROWDED_KEYS:
                self._crowded.clear()
            self._crowded[self.key] = versions[-1][1], len(versions)
        else:
            self._crowded.pop(self.key, None)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        """The watermark has reached the time of waiting records: of all that it has reached, in one go."""
        until_ms = max(timer.time_ms, self.watermark)
        due: list[Any] = []
        left: list[Any] = []
        for held in self._waiting.get():
            (due if held[1] <= until_ms else left).append(held)
        if not due:
            return
        self._waiting.update(left)
        due.sort(key=_TIME)
        versions = self._versions.get()
        begins = list(map(_TIME, versions))
        results, times = [], []
        for record, time_ms in due:
            place = bisect_right(begins, time_ms)
            if place or self._is_left:
                results.append((record, versions[place - 1][0] if place else None))
                times.append(time_ms)
        for time_ms in dict.fromkeys(map(_TIME, due)):
            if time_ms != timer.time_ms:
                self.timers.delete_event_time(time_ms)
        if results:
            out.emit(results, np.array(times))
        self._forget_old(versions, until_ms)

    def _forget_old(self, versions: list[Any], until_ms: int) -> None:
        """Versions that were followed by another one by then, which no record that waits or may come can need. They
        go once they are half of all, so that the others are not written again for each.
        """
        if len(versions) > 1 and versions[1][1] <= until_ms:
            old = bisect_right(versions, until_ms, key=_TIME) - 1
            if 2 * old >= len(versions) - 1:
                self._versions.update(versions[old:])
