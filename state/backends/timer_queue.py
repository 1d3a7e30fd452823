"""TimerQueue: the timers of one operator subtask, one for each (time, key, namespace). Flink: HeapPriorityQueueSet.

Part of the keyed state: in key groups, in every snapshot, restored and rescaled with the keys. A timer costs an entry
in a dict and one in the list of its time; only times are kept in a heap, so the many timers of one window's end cost
one heap entry. Nothing is ever scanned: a deleted timer leaves its place in the list, which is passed over when its
time comes, and lists are made again when such places are more than the timers.

Order: by time; of one time in the order in which they were added, but one that was deleted and added again may have its
old place. Timers that a snapshot gave back have no order among those of one time that could be relied on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, MutableMapping, Sequence, Set
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from ...messages import MalformedMessage, pack_plain
from ..columns.packed_columns import column_of, packed, taken
from ..keys.key_groups import key_groups_of_list
from ..kinds.record_serializer import Convert
from ..kinds.schema_fit import Schema
from .frozen_state import FrozenState, Stored

KIND: Final = "Timers"
"""The kind of state in snapshots."""

EVENT_TIMERS: Final = "event-time timers"
PROCESSING_TIMERS: Final = "processing-time timers"
"""Names of states in snapshots; no declaration can have them."""

_MOST_STALE = 1024


TimerEntry: TypeAlias = tuple[int, Any, Hashable]
"""One timer of one key: time in ms, key, namespace. A plain tuple, for millions are made."""


class PendingTimers(Protocol):
    """The timers of one domain, as whoever registers and fires them sees them: a TimerQueue, or one in columns."""

    name: str

    @property
    def pending(self) -> Container[TimerEntry]:
        """Whether a timer is there, in the quickest way."""
        ...

    def __len__(self) -> int: ...

    def __contains__(self, timer: object) -> bool: ...

    def __iter__(self) -> Iterator[TimerEntry]:
        """All of them, in no order to rely on."""
        ...

    def add(self, timer: TimerEntry) -> bool:
        """Whether it was not there yet."""
        ...

    def remove(self, timer: TimerEntry) -> bool:
        """Whether it was there."""
        ...

    def next_ms(self) -> int | None:
        """The earliest time, or earlier where timers were deleted; None when there are none."""
        ...

    def pop(self, until_ms: int) -> TimerEntry | None:
        """Take out the first timer, if its time is not after `until_ms`."""
        ...

    def due(self, until_ms: int) -> Iterator[TimerEntry]:
        """Take out one timer after the other, as long as there is one whose time is not after `until_ms`. Between two
        of them timers may be added and removed.
        """
        ...

    def freeze(self) -> FrozenState:
        """All that are pending now, for a snapshot."""
        ...


class TimerQueue:
    """In dicts. Owned by the task's thread; snapshots are written elsewhere, of a copy."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._pending: dict[TimerEntry, None] = {}
        self._at: dict[int, list[TimerEntry]] = {}
        """By time, in the order of registration; some of them may have been deleted since."""
        self._times: list[int] = []
        """A heap of the keys of `_at`."""
        self._turn: list[TimerEntry] = []
        """What is left of the list whose time has come, the last one first."""
        self._stale = 0
        """The number of places in lists whose timers were deleted."""

    @property
    def pending(self) -> Container[TimerEntry]:
        return self._pending

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, timer: object) -> bool:
        return timer in self._pending

    def add(self, timer: TimerEntry) -> bool:
        """Whether it was not there yet."""
        if timer in self._pending:
            return False
        self._pending[timer] = None
        time_ms = timer[0]
        listed = self._at.get(time_ms)
        if listed is None:
            self._at[time_ms] = [timer]
            heappush(self._times, time_ms)
        else:
            listed.append(timer)
        return True

    def remove(self, timer: TimerEntry) -> bool:
        """Whether it was there."""
        if timer not in self._pending:
            return False
        del self._pending[timer]
        self._stale += 1
        if self._stale > len(self._pending) + _MOST_STALE:
            self._list_again()
        return True

    def next_ms(self) -> int | None:
        """The earliest time, or earlier where timers were deleted; None when there are none."""
        if not self._pending:
            return None
        turn_ms = self._turn[0][0] if self._turn else None
        if not self._times:
            return turn_ms
        return self._times[0] if turn_ms is None else min(turn_ms, self._times[0])

    def pop(self, until_ms: int) -> TimerEntry | None:
        """Take out the first timer, if its time is not after `until_ms`."""
        return next(self.due(until_ms), None)

    def due(self, until_ms: int) -> Iterator[TimerEntry]:
        """Take out one timer after the other, as long as there is one whose time is not after `until_ms`. Between two
        of them timers may be added and removed.
        """
        pending = self._pending
        while self._take_turn(until_ms):
            turn, times = self._turn, self._times
            time_ms = turn[0][0]
            while turn and turn is self._turn and not (times and times[0] < time_ms):
                timer = turn.pop()
                if timer in pending:
                    del pending[timer]
                    yield timer
                else:
                    self._stale -= 1

    def __iter__(self) -> Iterator[TimerEntry]:
        return iter(self._pending)

    def freeze(self) -> FrozenTimers:
        """All that are pending now, for a snapshot."""
        return FrozenTimers(self.name, list(self._pending))

    def load(self, stored: Stored) -> None:
        """Add what a snapshot holds. Raises MalformedMessage."""
        for _, keys, values in stored.entries():
            for key, value in zip(keys, values, strict=True):
                match value:
                    case (int(time_ms), own):
                        self.add((time_ms, key, own))
                    case _:
                        raise MalformedMessage(f"wanted a timer's time and namespace, found {value!r:.60}")

    def clear(self) -> None:
        self._pending.clear()
        self._list_again()

    def _take_turn(self, until_ms: int) -> bool:
        """Whether `_turn` has something whose time is not after `until_ms`."""
        times, turn = self._times, self._turn
        if times and times[0] <= until_ms and (not turn or times[0] < turn[0][0]):
            if turn:  # a timer has been added that is earlier than those whose turn it is
                self._put_back()
            self._turn = self._at.pop(heappop(times))
            self._turn.reverse()
            return True
        return bool(turn) and turn[0][0] <= until_ms

    def _put_back(self) -> None:
        turn, self._turn = self._turn, []
        turn.reverse()
        time_ms = turn[0][0]
        if time_ms not in self._at:
            heappush(self._times, time_ms)
        self._at[time_ms] = turn + self._at.get(time_ms, [])

    def _list_again(self) -> None:
        self._stale = 0
        self._turn = []
        self._at = {}
        for timer in self._pending:
            self._at.setdefault(timer[0], []).append(timer)
        self._times = list(self._at)
        heapify(self._times)


@dataclass(slots=True)
class FrozenTimers:
    """Timers at one moment. A FrozenState of a keyed snapshot: under each key a timer's time and namespace."""

    name: str
    timers: Sequence[TimerEntry]
    kind: str = KIND
    schema: Schema = None

    @property
    def is_empty(self) -> bool:
        return not self.timers

    def payloads(self, max_parallelism: int, encode_key: Convert) -> Iterator[tuple[int, bytes]]:
        timers, self.timers = self.timers, ()
        if not timers:
            return
        times, keys, namespaces = (list(part) for part in zip(*timers, strict=True))
        groups = key_groups_of_list(keys, max_parallelism)
        order = np.argsort(groups, kind="stable")
        groups = groups[order]
        stored = keys if encode_key is None else [encode_key(key) for key in keys]
        key_column = taken(column_of(stored), order)
        values = taken(column_of(list(zip(times, namespaces, strict=True))), order)
        starts = np.flatnonzero(np.diff(groups, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(groups)], strict=True):
            payload = pack_plain([(), packed(key_column, start, end), packed(values, start, end)])
            yield int(groups[start]), payload


class TimerQueues(NamedTuple):
    """Those of event time and of processing time."""

    event: PendingTimers
    processing: PendingTimers

    @classmethod
    def restored(
        cls, restored: MutableMapping[str, Any], make: Callable[[str], TimerQueue] = TimerQueue
    ) -> TimerQueues:
        """With what snapshots hold, which is taken out of `restored`. Raises MalformedMessage."""
        queues = make(EVENT_TIMERS), make(PROCESSING_TIMERS)
        for queue in queues:
            for stored in restored.pop(queue.name, ()):
                queue.load(stored)
        return cls(*queues)

    def freeze(self, some: Set[Any] | None = None) -> list[FrozenState]:
        """All timers, or those of some keys."""
        if some is None:
            return [queue.freeze() for queue in self]
        return [FrozenTimers(queue.name, [timer for timer in queue if timer[1] in some]) for queue in self]
