"""SlotTimerQueue: the timers of a compiled operator by key, as all Python of the operator sees them; in snapshots, too.

The format in snapshots is TimerQueue's, so a savepoint of the compiled operator is restored by the interpreted one, and
the other way round. A compiled operator has event-time timers without a namespace, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from ...messages import MalformedMessage, pack_plain
from ..backends.backend import NO_NAMESPACE
from ..backends.keyed_snapshot import StoredState
from ..backends.timer_queue import EVENT_TIMERS, KIND, PROCESSING_TIMERS, PlacesAt, TimerEntry, TimerQueue
from ..columns.packed_columns import Column, objects_alike, packed, unpacked
from ..columns.timed_batch import Times
from ..errors import InvalidState, StateIncompatible
from ..keys.word_table import Slots
from ..kinds.record_serializer import Convert
from ..kinds.schema_fit import Schema
from .slot_keys import AnyKeys
from .slot_restore import Entries, number_column, slots_of_entries, stored_entries
from .slot_snapshot import KeyOrders
from .slot_states import SlotScope
from .slot_timers import SlotTimers
from .timer_runs import TimerRun, merged

_HAS = "event-time timers without a namespace, as the operator is compiled"
_HINT = "leave `compiled` out"


class SlotTimerQueue:
    """PendingTimers in columns: their keys are those of `scope`."""

    def __init__(self, scope: SlotScope, orders: KeyOrders) -> None:
        self.name = EVENT_TIMERS
        self.timers = SlotTimers()
        self._scope, self._orders = scope, orders

    def places_at(self, time_ms: int) -> PlacesAt:
        return PlacesAt(self, time_ms)

    def __len__(self) -> int:
        return len(self.timers)

    def __contains__(self, timer: object) -> bool:
        match timer:
            case (int(time_ms), key, namespace) if namespace == NO_NAMESPACE:
                slot = self._scope.slot_keys.find(key)
                return slot >= 0 and self.timers.has(time_ms, slot)
        return False

    def __iter__(self) -> Iterator[TimerEntry]:
        for time_ms, slot in self.timers.pending():
            yield time_ms, self._key(slot), NO_NAMESPACE

    def add(self, timer: TimerEntry) -> bool:
        """Raises InvalidState for one with a namespace, and InvalidKey for a key that the key columns cannot hold."""
        time_ms, key, namespace = timer
        if namespace != NO_NAMESPACE:
            raise InvalidState(f"a timer with the namespace {namespace!r:.60}: there are {_HAS}; {_HINT}")
        slot = self._scope.slot_keys.slot_of(key)
        self._scope.make_room()
        self._scope.changed(slot)
        return self.timers.add(time_ms, slot)

    def remove(self, timer: TimerEntry) -> bool:
        time_ms, key, namespace = timer
        slot = self._scope.slot_keys.find(key)
        if namespace != NO_NAMESPACE or slot < 0 or not self.timers.remove(time_ms, slot):
            return False
        self._scope.changed(slot)
        return True

    def next_ms(self) -> int | None:
        return self.timers.next_ms()

    def pop(self, until_ms: int) -> TimerEntry | None:
        return next(self.due(until_ms), None)

    def due(self, until_ms: int) -> Iterator[TimerEntry]:
        while (found := self.timers.pop(until_ms)) is not None:
            time_ms, slot = found
            self._scope.changed(slot)
            yield time_ms, self._key(slot), NO_NAMESPACE

    def freeze(self, some: Slots | None = None) -> FrozenSlotTimers:
        """All, or those of some slots."""
        keys = self._scope.slot_keys.known
        runs = self.timers.frozen() if some is None else self.timers.frozen_of(some, len(keys))
        return FrozenSlotTimers(runs, keys, len(keys), self._orders)

    def load(self, stored: StoredState) -> None:
        """Add what a snapshot holds. Raises MalformedMessage, and StateIncompatible for timers with a namespace."""
        replaced = [Entries(each, ()) for each in stored.replaced_keys()]
        if replaced:
            self.timers.forget(slots_of_entries(replaced, stored.decode_key, self._scope.slot_keys))
        entries = list(stored_entries(stored))
        times = [_times(each.values) for each in entries]
        slots = slots_of_entries(entries, stored.decode_key, self._scope.slot_keys)
        if entries:
            whole = np.concatenate(times)
            if len(whole) != len(slots):
                raise MalformedMessage(f"{len(slots)} keys, and {len(whole)} timers")
            self._scope.make_room()
            self.timers.load(whole, slots)

    def _key(self, slot: int) -> Any:
        (key,) = self._scope.slot_keys.known.listed(np.array([slot], np.int64))
        self._scope.slot_keys.remember(key, slot)
        return key


class NoProcessingTimers(TimerQueue):
    """In place of a compiled operator's processing-time timers: it has none."""

    def __init__(self) -> None:
        super().__init__(PROCESSING_TIMERS)

    def add(self, timer: TimerEntry) -> bool:
        """Raises InvalidState."""
        raise InvalidState(f"a processing-time timer: there are {_HAS}; {_HINT}")

    def load(self, stored: StoredState) -> None:  # type: ignore[override]
        """Raises StateIncompatible: a snapshot that holds none does not name them."""
        raise StateIncompatible(self.name, _HAS, "processing-time timers", f"{_HINT} until they have fired")


class FrozenSlotTimers:
    """Timers in columns as they were at the barrier. A FrozenState; used once, on any thread."""

    name: Final = EVENT_TIMERS
    kind: Final = KIND
    schema: Final[Schema] = None

    def __init__(self, runs: Sequence[TimerRun], keys: AnyKeys, count: int, orders: KeyOrders) -> None:
        self._runs = runs
        self._keys, self._count, self._orders = keys, count, orders

    @property
    def is_empty(self) -> bool:
        return not self._runs

    def payloads(self, max_parallelism: int, encode_key: Convert) -> Iterator[tuple[int, bytes]]:
        assert encode_key is None, "keys are plain data"
        times, slots, _ = merged(self._runs).alive()
        self._runs = ()
        groups = self._orders.groups_of(self._keys, self._count)[slots]
        order = np.argsort(groups, kind="stable")
        groups, keys = groups[order], self._keys.column(slots[order])
        values: Column = (times[order], objects_alike(NO_NAMESPACE, len(order)))
        starts = np.flatnonzero(np.diff(groups.astype(np.int64), prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(groups)], strict=True):
            payload = pack_plain([NO_NAMESPACE, packed(keys, start, end), packed(values, start, end)])
            yield int(groups[start]), payload


def _times(content: Any) -> Times:
    """The times of packed (time, namespace)s. Raises MalformedMessage and StateIncompatible."""
    match content:
        case ["tuples", packed_times, ["plain", list()] | ["same", _, int()] as namespaces]:
            times = number_column(packed_times, int)
            if times is not None:
                _check_no_namespace(unpacked(namespaces))
                return times
    return np.array([_time(value) for value in unpacked(content)], np.int64)


def _time(value: Any) -> int:
    match value:
        case (int(time_ms), namespace):
            _check_no_namespace([namespace])
            return time_ms
    raise MalformedMessage(f"wanted a timer's time and namespace, found {value!r:.60}")


def _check_no_namespace(namespaces: list[Any]) -> None:
    if namespaces.count(NO_NAMESPACE) != len(namespaces):
        found = next(each for each in namespaces if each != NO_NAMESPACE)
        raise StateIncompatible(EVENT_TIMERS, _HAS, f"one with the namespace {found!r:.60}", _HINT)
