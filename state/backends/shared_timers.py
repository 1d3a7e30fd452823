"""SharedTimers: timers that coroutines set. What a unit of work adds or removes is kept with it until it is committed.

The timers' part of a SharedBackend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from .frozen_state import FrozenState
from .timer_queue import PendingTimers, PlacesAt, TimerEntry
from .unit_of_work import CURRENT, UnitOfWork


class SharedTimers:
    """Stands before one queue. `lock` is held around each access."""

    def __init__(
        self, inner: PendingTimers, lock: AbstractContextManager[Any], refuse: Callable[[UnitOfWork, str], NoReturn]
    ) -> None:
        """`refuse`: for a unit that is over."""
        self._inner = inner
        self._lock = lock
        self._refuse = refuse
        self.name = inner.name

    def places_at(self, time_ms: int) -> PlacesAt:
        return PlacesAt(self, time_ms)

    def __len__(self) -> int:
        return len(self._inner)

    def __contains__(self, timer: object) -> bool:
        unit = CURRENT.get()
        if unit is not None and unit.timers is not None:
            changed = unit.timers.get((self._inner, timer))
            if changed is not None:
                return changed
        return timer in self._inner

    def __iter__(self) -> Iterator[TimerEntry]:
        return iter(self._inner)

    def add(self, timer: TimerEntry) -> bool:
        return self._change(timer, is_added=True)

    def remove(self, timer: TimerEntry) -> bool:
        return self._change(timer, is_added=False)

    def next_ms(self) -> int | None:
        with self._lock:
            return self._inner.next_ms()

    def pop(self, until_ms: int) -> TimerEntry | None:
        with self._lock:
            return self._inner.pop(until_ms)

    def due(self, until_ms: int) -> Iterator[TimerEntry]:
        """With the lock in hand."""
        return self._inner.due(until_ms)

    def freeze(self) -> FrozenState:
        return self._inner.freeze()

    def _change(self, timer: TimerEntry, *, is_added: bool) -> bool:
        unit = CURRENT.get()
        if unit is None:
            with self._lock:
                return self._inner.add(timer) if is_added else self._inner.remove(timer)
        if unit.is_over:
            self._refuse(unit, "self.timers")
        was_there = timer in self
        if unit.timers is None:
            unit.timers = {}
        unit.timers[self._inner, timer] = is_added
        return was_there != is_added
