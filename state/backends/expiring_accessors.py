"""Accessors of state with a TTL on the heap, one for each kind of declaration. See ExpiringState."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

from .backend import NO_TIME
from .expiring_state import LATEST_MS, LOOKS_PER_CLEANING, ExpiringState
from .heap_accessors import HeapFolding, HeapList, HeapMap, HeapReducing, HeapValueOrCopy
from .heap_state import HeapScope, HeapState
from .private_copy import MISSING
from .timed_values import ENTRIES, ITEMS, WHOLE, Timed, live

_NEVER: Final = (None, NO_TIME)
_LATEST: Final = (None, LATEST_MS)


class _ExpiringWhole(ExpiringState):
    """State that expires as a whole: `_read` gives the value alone, and `_write` takes it."""

    shape = WHOLE
    keys_at_once = LOOKS_PER_CLEANING

    def _read(self) -> Any:
        limit_ms = self._limit()
        pair = super()._read()
        if pair is MISSING:
            return MISSING
        value, updated_ms = pair
        if not self._scope.is_read_only:
            if updated_ms <= limit_ms:
                self.clear()
            elif self._on_read:
                self._entries[self._scope.current_key] = value, self._updated_ms(updated_ms)
        return MISSING if updated_ms <= limit_ms else value

    def _write(self, value: Any) -> None:
        self._check_writable()
        self._count_access()
        entries, key = self._entries, self._scope.current_key
        try:
            entries[key] = value, self._updated_ms(entries.get(key, _NEVER)[1])
        except TypeError:
            self._check_hashable()
            raise

    def _look_at(self, entries: dict[Any, Timed], keys: Sequence[Any]) -> tuple[int, int]:
        limit_ms, oldest_ms = self._limit_of_cleaning, LATEST_MS
        for key in keys:
            updated_ms = entries.get(key, _LATEST)[1]
            if updated_ms <= limit_ms:
                del entries[key]
                self._note((key,))
            elif updated_ms < oldest_ms:
                oldest_ms = updated_ms
        return len(keys), oldest_ms

    def _taken(self) -> Any:
        limit_ms = self._limit()
        pair = super()._read()
        self.clear()
        return MISSING if pair is MISSING or pair[1] <= limit_ms else pair

    def _put_back(self, held: Any) -> None:
        self._entries[self._scope.current_key] = held

    def _move(self, target: Hashable, sources: Iterable[Hashable], merge: Callable[[Any, Any], Any]) -> None:
        """What several become has the newest of their times."""
        super()._move(target, sources, lambda held, other: (merge(held[0], other[0]), max(held[1], other[1])))


class ExpiringValue(_ExpiringWhole, HeapValueOrCopy):
    def update(self, value: Any) -> None:
        self._settle()
        if value is None or self._scope.is_read_only:
            self.clear()  # or raises what is wrong
        else:
            self._write(value if type(value) is self._kind else self._fitting(value))


class ExpiringReducing(_ExpiringWhole, HeapReducing):
    pass


class ExpiringFolding(_ExpiringWhole, HeapFolding):
    pass


class _ExpiringParts(ExpiringState):
    """State whose parts expire each by itself: `_read` gives the pair as it is held, and `_write` takes one."""

    keys_at_once = 1

    def _time_of_write(self) -> int:
        """Of parts that are written now; asked for before anything changes."""
        self._check_writable()
        self._count_access()
        return self._updated_ms(NO_TIME)

    def _live(self) -> Timed | None:
        """The pair of the current key without what has expired; None if nothing is left. A read may be an update."""
        limit_ms = self._limit()
        pair = self._read()
        if pair is MISSING:
            return None
        left = live(self.shape, pair, limit_ms)
        if self._scope.is_read_only:
            return left
        if left is None:
            self.clear()
            return None
        if self._on_read:
            read_ms = self._updated_ms(NO_TIME)
            left = self.shape.with_times(left[0], [max(read_ms, each) for each in self.shape.times(left)])
        if left is not pair:
            self._entries[self._scope.current_key] = left
        return left


class ExpiringList(_ExpiringParts, HeapList):
    shape = ITEMS

    def get(self) -> list[Any]:
        pair = self._live()
        return [] if pair is None else list(pair[0])

    def add(self, item: Any) -> None:
        if type(item) is not self._kind:
            item = self._fitting(item)
        self._extend([item])

    def add_all(self, items: Iterable[Any]) -> None:
        added = self._all_fitting(items)
        if added:
            self._extend(added)

    def update(self, items: Iterable[Any]) -> None:
        held = self._all_fitting(items)
        if held:
            self._write((held, [self._time_of_write()] * len(held)))
        else:
            self.clear()

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        self._move(target, sources, lambda held, added: (held[0] + added[0], held[1] + added[1]))

    def _extend(self, added: Sequence[Any]) -> None:
        written_ms = self._time_of_write()
        items, times = self._changeable(_no_items)
        items += added
        times += [written_ms] * len(added)


class ExpiringMap(_ExpiringParts, HeapMap):
    shape = ENTRIES

    def get(self, key: Any, default: Any = None) -> Any:
        entries = self._entries_with(key)
        return default if entries is None else entries[key]

    def contains(self, key: Any) -> bool:
        return self._entries_with(key) is not None

    def put(self, key: Any, value: Any) -> None:
        if type(value) is not self._kind:
            value = self._fitting(value)
        if type(key) is not self._key_kind:
            self._check_entry_key(key)
        written_ms = self._time_of_write()
        entries, times = self._changeable(_no_entries)
        entries[key], times[key] = value, max(written_ms, times.get(key, NO_TIME))

    def remove(self, key: Any) -> None:
        self._check_writable()
        pair = self._read()
        if pair is not MISSING:
            for part in pair:
                part.pop(key, None)
            if not pair[0]:
                self.clear()

    def is_empty(self) -> bool:
        limit_ms = self._limit()
        pair = self._read()
        return pair is MISSING or not any(updated_ms > limit_ms for updated_ms in pair[1].values())

    def _held(self) -> dict[Any, Any]:
        pair = self._live()
        return {} if pair is None else pair[0]

    def _entries_with(self, key: Any) -> dict[Any, Any] | None:
        """All entries, if there is one with this key that has not expired."""
        limit_ms = self._limit()
        pair = self._read()
        if pair is MISSING:
            return None
        updated_ms = pair[1].get(key)
        if updated_ms is None or updated_ms <= limit_ms:
            return None
        if self._on_read and not self._scope.is_read_only:
            pair[1][key] = self._updated_ms(updated_ms)
        return pair[0]  # type: ignore[no-any-return]


def _no_items() -> Timed:
    return [], []


def _no_entries() -> Timed:
    return {}, {}


EXPIRING_ACCESSORS: Final[dict[str, Callable[[Any, HeapScope], HeapState]]] = {
    "ValueState": ExpiringValue,
    "ListState": ExpiringList,
    "MapState": ExpiringMap,
    "ReducingState": ExpiringReducing,
    "FoldingState": ExpiringFolding,
}
