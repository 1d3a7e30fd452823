"""Accessors of state in RocksDB, one for each kind of declaration, without and with a TTL. See RocksState.

State that expires is cleaned up a row at a time, as on the heap: every so often a few rows are looked at, turn after
turn. A value that is held as an object is left to whoever reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from ..backends.backend import NO_NAMESPACE, NO_TIME
from ..backends.expiring_accessors import ExpiringFolding, ExpiringList, ExpiringMap, ExpiringReducing, ExpiringValue
from ..backends.expiring_state import LATEST_MS, LOOKS_PER_CLEANING, ExpiringState
from ..backends.heap_accessors import (
    HeapAnything,
    HeapAnythingOrCopy,
    HeapFolding,
    HeapList,
    HeapMap,
    HeapReducing,
    HeapValue,
    HeapValueOrCopy,
)
from ..backends.heap_state import HeapScope
from ..backends.private_copy import private_copy
from ..backends.timed_values import live
from ..kinds.descriptors import ValueState
from ..kinds.schema_fit import Schema
from .rocks_state import Entry, RocksState
from .row_codec import Parts, RowCodec
from .row_keys import group_prefix


class RocksValue(RocksState, HeapValue):
    pass


class RocksValueOrCopy(RocksState, HeapValueOrCopy):
    pass


class RocksAnything(RocksState, HeapAnything):
    pass


class RocksAnythingOrCopy(RocksState, HeapAnythingOrCopy):
    pass


class RocksList(RocksState, HeapList):
    pass


class RocksMap(RocksState, HeapMap):
    pass


class RocksReducing(RocksState, HeapReducing):
    pass


class RocksFolding(RocksState, HeapFolding):
    pass


class RocksExpiring(RocksState, ExpiringState):
    """State with a TTL."""

    def schema(self) -> Schema:
        return {"ttl": self.node.schema, "clock": self._ttl.clock}

    def entries(self, namespace_prefix: bytes = b"", groups: Sequence[int] | None = None) -> Iterator[Entry]:
        self._limit_now()  # which makes times known
        return super().entries(namespace_prefix, groups)

    def lives(self, parts: Parts) -> bool:
        times = parts.times
        return bool((times if type(times) is int else max(times)) > self._limit_now())

    @property
    def has_unknown(self) -> bool:
        """Whether something may have no time yet."""
        return self._has_unknown

    def restored(self, *, has_unknown: bool) -> None:
        """Of rows that it takes over as they are."""
        self._has_unknown |= has_unknown

    def _codec(self) -> RowCodec:
        return RowCodec(self.node.encode, self.node.decoder(self.node.schema), self.shape)

    def _make_known(self, now_ms: int) -> None:
        self._has_unknown = False
        for entry in super().entries():
            held = self.codec.held_of(entry.parts)
            times = self.shape.times(held)
            if min(times) == NO_TIME:
                known = [now_ms if time_ms == NO_TIME else time_ms for time_ms in times]
                self._put(entry.namespace, [entry.key], [self.shape.with_times(held[0], known)])

    def _clean(self) -> Iterator[int]:
        """Goes through all rows, turn after turn, and yields how many times it has compared since; 0 ends a turn."""
        while True:
            oldest_ms = self._limit_of_cleaning + self._ttl.duration_ms
            for group in self._rocks.key_groups:
                start = b""
                while rows := list(islice(self._rows(group, start), LOOKS_PER_CLEANING)):
                    looks, least_ms = self._look_at_rows(rows)
                    oldest_ms = min(oldest_ms, least_ms)
                    yield looks
                    start = rows[-1].row + b"\0"
            self._cleaned_below_ms = oldest_ms
            yield 0

    def _rows(self, group: int, start: bytes) -> Iterator[Entry]:
        return map(self.entry_of, self._rocks.store.items(group_prefix(group, self.number), start))

    def _look_at_rows(self, entries: Sequence[Entry]) -> tuple[int, int]:
        """Remove what has expired: how many times were compared, and the oldest of those left."""
        looks, oldest_ms, limit_ms = len(entries), LATEST_MS, self._limit_of_cleaning
        changes: list[tuple[bytes, bytes | None]] = []
        in_default, in_others = self._both()
        for entry in entries:
            held = self.codec.held_of(entry.parts)
            looks += len(self.shape.times(held))
            left = live(self.shape, held, limit_ms)
            if left is not None:
                oldest_ms = min(oldest_ms, min(self.shape.times(left)))
            if left is held:
                continue
            is_default = entry.namespace == NO_NAMESPACE
            if entry.key in in_default if is_default else (entry.namespace, entry.key) in in_others:
                continue
            changes.append((entry.row, None if left is None else self._packed(entry.key, left)))
        self._rocks.store.write(changes)
        return looks, oldest_ms


class RocksExpiringValue(RocksExpiring, ExpiringValue):
    pass


class RocksExpiringList(RocksExpiring, ExpiringList):
    pass


class RocksExpiringMap(RocksExpiring, ExpiringMap):
    pass


class RocksExpiringReducing(RocksExpiring, ExpiringReducing):
    pass


class RocksExpiringFolding(RocksExpiring, ExpiringFolding):
    pass


def _value(declaration: ValueState[Any], scope: HeapScope) -> RocksState:
    default = declaration.default
    checked = declaration.fit().kind is not None
    if private_copy(default) is default:
        return (RocksValue if checked else RocksAnything)(declaration, scope)
    return (RocksValueOrCopy if checked else RocksAnythingOrCopy)(declaration, scope)


Accessors = dict[str, Callable[[Any, HeapScope], RocksState]]

LASTING: Final[Accessors] = {
    "ValueState": _value,
    "ListState": RocksList,
    "MapState": RocksMap,
    "ReducingState": RocksReducing,
    "FoldingState": RocksFolding,
}
EXPIRING: Final[Accessors] = {
    "ValueState": RocksExpiringValue,
    "ListState": RocksExpiringList,
    "MapState": RocksExpiringMap,
    "ReducingState": RocksExpiringReducing,
    "FoldingState": RocksExpiringFolding,
}
