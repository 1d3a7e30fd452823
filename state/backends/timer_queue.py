"""TimerQueue: the timers of one operator subtask, one for each (time, key, namespace). Flink: HeapPriorityQueueSet.

Part of the keyed state: in key groups, in every snapshot, restored and rescaled with the keys. A timer costs an entry
in the dict of its time; only times are kept in a heap, so the many timers of one window's end cost one heap entry.
Nothing is ever scanned: a time without timers is passed over when it comes, and such times go when they are more than
the others.

Order: by time; of one time in the order in which they were added, but one that was deleted and added again while those
of its time fire may have its old place. Timers that a snapshot gave back have no order among those of one time that
could be relied on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, MutableMapping, Sequence, Set
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import chain, islice
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from ...messages import MalformedMessage, pack_plain
from ..columns.packed_columns import Column, column_of, narrowed, objects_alike, packed, taken
from ..keys.key_groups import key_groups_of_list
from ..kinds.record_serializer import Convert
from ..kinds.schema_fit import Schema
from .frozen_state import FrozenState, Stored

KIND: Final = "Timers"
"""The kind of state in snapshots."""

EVENT_TIMERS: Final = "event-time timers"
PROCESSING_TIMERS: Final = "processing-time timers"
"""Names of states in snapshots; no declaration can have them."""

_MOST_EMPTY = 1024

_NO_NAMESPACE: Final = ()
"""That of `backend`, which imports this module."""

TimerEntry: TypeAlias = tuple[int, Any, Hashable]
"""One timer of one key: time in ms, key, namespace. A plain tuple, for millions are made."""

WITH_NAMESPACE: Final = object()
"""The first item of a place that has a namespace; no key holds it."""


def place_of(key: Any, namespace: Hashable) -> Any:
    """What stands for a timer among those of its time: the bare key, which is the quickest to find, or, with a
    namespace, both in a tuple.
    """
    return key if namespace == _NO_NAMESPACE else (WITH_NAMESPACE, key, namespace)


def timer_at(time_ms: int, place: Any) -> TimerEntry:
    """The timer of a place."""
    if type(place) is tuple and _has_namespace(place):
        return time_ms, place[1], place[2]
    return time_ms, place, _NO_NAMESPACE


def _has_namespace(place: tuple[Any, ...]) -> bool:
    return len(place) == 3 and place[0] is WITH_NAMESPACE


class PendingTimers(Protocol):
    """The timers of one domain, as whoever registers and fires them sees them: a TimerQueue, or one in columns."""

    name: str

    def places_at(self, time_ms: int) -> Container[Any]:
        """The places (`place_of`) of the timers of a time, to look into in the quickest way. They may be kept: each
        place found there is pending, at any later moment too; one that is not found may be, so ask again.
        """
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


@dataclass(frozen=True, slots=True)
class PlacesAt:
    """The places of one time of a queue that finds whole timers."""

    queue: PendingTimers
    time_ms: int

    def __contains__(self, place: object) -> bool:
        return timer_at(self.time_ms, place) in self.queue


class TimerQueue:
    """In dicts. Owned by the task's thread; snapshots are written elsewhere, of a copy."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._count = 0
        self._at: dict[int, dict[Any, None]] = {}
        """By time the places of its timers, in the order of registration. One that leaves is empty for ever."""
        self._times: list[int] = []
        """A heap of the keys of `_at`."""
        self._empty = 0
        """The number of times without a timer."""
        self._turn: list[Any] = []
        """Places of the time whose turn it is, the last one first; some of them may have been deleted."""
        self._turn_ms: int | None = None

    def places_at(self, time_ms: int) -> Container[Any]:
        return self._at.get(time_ms, ())

    def __len__(self) -> int:
        return self._count

    def __contains__(self, timer: object) -> bool:
        match timer:
            case (int(time_ms), key, namespace):
                return place_of(key, namespace) in self._at.get(time_ms, ())
        return False

    def add(self, timer: TimerEntry) -> bool:
        """Whether it was not there yet."""
        time_ms, key, namespace = timer
        place = key if namespace == _NO_NAMESPACE else (WITH_NAMESPACE, key, namespace)
        waiting = self._at.get(time_ms)
        if waiting is None:
            self._at[time_ms] = {place: None}
            heappush(self._times, time_ms)
        elif place in waiting:
            return False
        else:
            if not waiting:
                self._empty -= 1
            waiting[place] = None
        self._count += 1
        return True

    def remove(self, timer: TimerEntry) -> bool:
        """Whether it was there."""
        time_ms, key, namespace = timer
        place = place_of(key, namespace)
        waiting = self._at.get(time_ms)
        if waiting is None or place not in waiting:
            return False
        self._take_out(place, waiting)
        if self._empty > len(self._at) // 2 + _MOST_EMPTY:
            self._drop_empty()
        return True

    def next_ms(self) -> int | None:
        """The earliest time, or earlier where timers were deleted; None when there are none."""
        return self._times[0] if self._count else None

    def pop(self, until_ms: int) -> TimerEntry | None:
        """Take out the first timer, if its time is not after `until_ms`."""
        return next(self.due(until_ms), None)

    def due(self, until_ms: int) -> Iterator[TimerEntry]:
        """Take out one timer after the other, as long as there is one whose time is not after `until_ms`. Between two
        of them timers may be added and removed.
        """
        times = self._times
        while times and (time_ms := times[0]) <= until_ms:
            waiting = self._at[time_ms]
            if not waiting:
                self._drop_first()
                continue
            if time_ms != self._turn_ms or not self._turn:
                self._take_turn(time_ms, waiting)
            turn = self._turn
            while turn and turn is self._turn and times[0] == time_ms:
                place = turn.pop()
                if place in waiting:
                    self._take_out(place, waiting)
                    yield timer_at(time_ms, place)

    def __iter__(self) -> Iterator[TimerEntry]:
        for time_ms, waiting in self._at.items():
            for place in waiting:
                yield timer_at(time_ms, place)

    def freeze(self) -> FrozenTimers:
        """All that are pending now, for a snapshot."""
        return FrozenTimers(self.name, TimersAtOnce(self._at))

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
        for waiting in self._at.values():
            waiting.clear()
        self._count = 0
        self._drop_empty()

    def _take_turn(self, time_ms: int, waiting: dict[Any, None]) -> None:
        """Those of this time that are there now are next."""
        self._turn = list(waiting)
        if time_ms == self._turn_ms:  # a dict whose first items have been taken out is slow to go through
            waiting.clear()
            waiting.update(dict.fromkeys(self._turn))
        self._turn.reverse()
        self._turn_ms = time_ms

    def _take_out(self, place: Any, waiting: dict[Any, None]) -> None:
        del waiting[place]
        self._count -= 1
        if not waiting:
            self._empty += 1

    def _drop_first(self) -> None:
        """The first time, which has no timers."""
        del self._at[heappop(self._times)]
        self._empty -= 1
        self._turn, self._turn_ms = [], None

    def _drop_empty(self) -> None:
        for time_ms in [time_ms for time_ms, waiting in self._at.items() if not waiting]:
            del self._at[time_ms]
        self._empty = 0
        self._times[:] = self._at
        heapify(self._times)
        self._turn, self._turn_ms = [], None


class TimersAtOnce:
    """All timers of a queue at one moment: as lists that are made quickly, and as timers when somebody goes through."""

    def __init__(self, at: dict[int, dict[Any, None]]) -> None:
        self._times = list(at)
        self._counts = list(map(len, at.values()))
        self._places = list(chain.from_iterable(at.values()))

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[TimerEntry]:
        places = iter(self._places)
        for time_ms, count in zip(self._times, self._counts, strict=True):
            for place in islice(places, count):
                yield timer_at(time_ms, place)

    def without_namespaces(self) -> tuple[Column, list[Any]] | None:
        """Times and keys, if no timer has a namespace, which is quicker than to go through them."""
        if any(type(place) is tuple and _has_namespace(place) for place in self._places):
            return None
        return narrowed(np.repeat(np.array(self._times, np.int64), self._counts)), self._places


@dataclass(slots=True)
class FrozenTimers:
    """Timers at one moment. A FrozenState of a keyed snapshot: under each key a timer's time and namespace."""

    name: str
    timers: TimersAtOnce | Sequence[TimerEntry]
    kind: str = KIND
    schema: Schema = None

    @property
    def is_empty(self) -> bool:
        return not self.timers

    def payloads(self, max_parallelism: int, encode_key: Convert) -> Iterator[tuple[int, bytes]]:
        timers, self.timers = self.timers, ()
        if not timers:
            return
        keys, values = _columns_of(timers)
        groups = key_groups_of_list(keys, max_parallelism)
        order = np.argsort(groups, kind="stable")
        groups = groups[order]
        stored = keys if encode_key is None else [encode_key(key) for key in keys]
        key_column = taken(column_of(stored), order)
        values = taken(values, order)
        starts = np.flatnonzero(np.diff(groups, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(groups)], strict=True):
            payload = pack_plain([(), packed(key_column, start, end), packed(values, start, end)])
            yield int(groups[start]), payload


def _columns_of(timers: TimersAtOnce | Sequence[TimerEntry]) -> tuple[list[Any], Column]:
    """Keys, and times with namespaces."""
    if isinstance(timers, TimersAtOnce) and (plain := timers.without_namespaces()) is not None:
        times, keys = plain
        return keys, (times, objects_alike(_NO_NAMESPACE, len(keys)))
    each_time, keys, namespaces = (list(part) for part in zip(*timers, strict=True))
    return keys, column_of(list(zip(each_time, namespaces, strict=True)))


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
