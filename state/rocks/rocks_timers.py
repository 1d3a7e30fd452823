"""RocksTimers: a queue of timers on the heap, each of which is a row in RocksDB besides.

The queue works as any; what was added and removed since is written as rows before a snapshot, and now and then. So a
snapshot holds the timers that changed, and not all of them. Memory must hold all timers of a subtask.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final

from ...messages import MalformedMessage
from ..backends.timer_queue import TimerEntry, TimerQueue
from .row_codec import packed_parts
from .row_keys import RowKeys
from .store import RocksStore

_MOST_CHANGES: Final = 16_384


class RocksTimers(TimerQueue):
    """`number`: that of the state under whose name they stand."""

    def __init__(self, name: str, number: int, store: RocksStore, keys: RowKeys) -> None:
        super().__init__(name)
        self.number = number
        self._store = store
        self._keys = keys
        self._changes: dict[TimerEntry, bool] = {}
        """By timer whether it is to have a row; where that is not what RocksDB has."""

    def add(self, timer: TimerEntry) -> bool:
        is_new = super().add(timer)
        if is_new:
            self._note(timer, has_row=True)
        return is_new

    def remove(self, timer: TimerEntry) -> bool:
        was_there = super().remove(timer)
        if was_there:
            self._note(timer, has_row=False)
        return was_there

    def due(self, until_ms: int) -> Iterator[TimerEntry]:
        for timer in super().due(until_ms):
            self._note(timer, has_row=False)
            yield timer

    def clear(self) -> None:
        for timer in self:
            self._changes[timer] = False
        super().clear()

    def restored(self, timers: Iterable[TimerEntry]) -> None:
        """These have their rows."""
        for timer in timers:
            super().add(timer)

    def write_back(self) -> None:
        """From now on the rows are the timers. Raises InvalidKey, StateNotStorable."""
        rows = [
            (self._row(timer), _packed(self._keys, timer) if has_row else None)
            for timer, has_row in self._changes.items()
        ]
        self._keys.check_own([row for row, _ in rows])
        self._store.write(rows)
        self._changes.clear()

    def _note(self, timer: TimerEntry, *, has_row: bool) -> None:
        self._changes[timer] = has_row
        if len(self._changes) >= _MOST_CHANGES:
            self.write_back()

    def _row(self, timer: TimerEntry) -> bytes:
        time_ms, key, namespace = timer
        return self._keys.timer_row(self.number, time_ms, key, namespace)


def _packed(keys: RowKeys, timer: TimerEntry) -> bytes:
    time_ms, key, namespace = timer
    return packed_parts((time_ms, namespace), None, keys.encoded(key))


def timer_of(value: Any, key: Any) -> TimerEntry:
    """What a row's value says. Raises MalformedMessage."""
    match value:
        case (int(time_ms), own):
            namespace: Hashable = own
            return time_ms, key, namespace
        case _:
            raise MalformedMessage(f"wanted a timer's time and namespace, found {value!r:.60}")
