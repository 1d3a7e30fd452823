"""Accessors of keyed state on the heap: dicts of key -> value, one per namespace.

Copy on write. A snapshot takes a shallow copy of the dicts; the values are then shared between it and the working
state. So while a snapshot is being written, a value that may be changed in place is copied before it is handed out or
changed, once per key and snapshot; numbers, texts and other immutable values never are. Flink: CopyOnWriteStateTable.

Questions get copies of changeable values and may not write at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from .descriptors import FoldingState, KeyedStateDeclaration, ReducingState, ValueState
from .errors import NoCurrentKey, ReadOnlyState

NO_KEY: Final = type("NoKey", (), {"__repr__": lambda _: "NO_KEY"})()
"""`current_key` where none is set."""

NO_NAMESPACE: Final = ()
"""The namespace of state that knows none. Flink: VoidNamespace."""

MISSING: Final = type("Missing", (), {"__repr__": lambda _: "MISSING"})()

IMMUTABLE: Final = frozenset(
    {bool, int, float, str, bytes, type(None), datetime, date, time, timedelta, Decimal, UUID, complex}
)

Namespaces = dict[Hashable, dict[Any, Any]]
"""namespace -> key -> value."""


def private_copy(value: Any) -> Any:
    """A deep copy, quick for lists and dicts of immutable values."""
    kind = type(value)
    if kind in IMMUTABLE:
        return value
    if kind is list:
        return [item if type(item) in IMMUTABLE else private_copy(item) for item in value]
    if kind is dict:
        return {key: item if type(item) in IMMUTABLE else private_copy(item) for key, item in value.items()}
    return deepcopy(value)


class HeapScope:
    """What the accessors of one backend share: the key, and who else looks at their values."""

    def __init__(self) -> None:
        self.current_key: Any = NO_KEY
        self.is_read_only = False
        self.snapshots_in_flight: set[int] = set()
        """Snapshots not yet written. Writers on other threads only ever discard from it."""


class HeapState:
    """The accessor of one state; the task's thread owns it."""

    __slots__ = ("_entries", "_namespace", "_owned", "_scope", "declaration", "namespaces", "node")

    def __init__(self, declaration: KeyedStateDeclaration, scope: HeapScope) -> None:
        self.declaration = declaration
        self.node = declaration.node()
        self.namespaces: Namespaces = {}
        self._scope = scope
        self._owned: set[tuple[Hashable, Any]] = set()
        self._namespace: Hashable = NO_NAMESPACE
        self._entries = self.namespaces.setdefault(NO_NAMESPACE, {})

    def set_namespace(self, namespace: Hashable) -> None:
        if namespace is None:
            raise ValueError(f"state {self.declaration.name!r}: a namespace is plain data and not None")
        if not self._entries:  # windows come and go: an empty namespace is dropped on leaving
            del self.namespaces[self._namespace]
        self._namespace = namespace
        self._entries = self.namespaces.setdefault(namespace, {})

    def clear(self) -> None:
        self._check_writable()
        self._entries.pop(self._scope.current_key, None)

    def view(self) -> Namespaces:
        """The state as it is now, for a snapshot that is in flight already: later changes do not show in it."""
        self._owned = set()
        return {namespace: entries.copy() for namespace, entries in self.namespaces.items() if entries}

    def load(self, namespace: Hashable, entries: Iterable[tuple[Any, Any]]) -> None:
        """Put restored entries in."""
        self.namespaces.setdefault(namespace, {}).update(entries)

    def entry_count(self) -> int:
        return sum(map(len, self.namespaces.values()))

    def _read(self) -> Any:
        """What the current key holds, or MISSING. It may be changed in place by whoever may write."""
        scope = self._scope
        key = scope.current_key
        value = self._entries.get(key, MISSING)
        if type(value) in IMMUTABLE:
            return value
        if value is MISSING:
            if key is NO_KEY:
                raise NoCurrentKey(self.declaration.name)
            return MISSING
        if scope.is_read_only:
            return private_copy(value)
        if scope.snapshots_in_flight and (self._namespace, key) not in self._owned:
            value = self._entries[key] = private_copy(value)
            self._owned.add((self._namespace, key))
        return value

    def _write(self, value: Any) -> None:
        self._check_writable()
        self._entries[self._scope.current_key] = value

    def _changeable(self, make: Callable[[], Any]) -> Any:
        """The container that the current key holds, made when there is none, to be changed in place."""
        self._check_writable()
        held = self._read()
        if held is MISSING:
            held = make()
            self._write(held)
        return held

    def _check_writable(self) -> None:
        if self._scope.is_read_only:
            raise ReadOnlyState(self.declaration.name)
        if self._scope.current_key is NO_KEY:
            raise NoCurrentKey(self.declaration.name)

    def _move(self, target: Hashable, sources: Iterable[Hashable], merge: Callable[[Any, Any], Any]) -> None:
        """Merge the current key's values of `sources`, in order, into that of `target`."""
        self._check_writable()
        here, merged = self._namespace, MISSING
        for source in dict.fromkeys((target, *sources)):
            self.set_namespace(source)
            held = self._read()
            self.clear()
            if held is not MISSING:
                merged = held if merged is MISSING else merge(merged, held)
        self.set_namespace(target)
        if merged is not MISSING:
            self._write(merged)
        self.set_namespace(here)


class HeapValue(HeapState):
    __slots__ = ("_default",)

    def __init__(self, declaration: ValueState[Any], scope: HeapScope) -> None:
        super().__init__(declaration, scope)
        self._default = declaration.default

    def value(self) -> Any:
        value = self._entries.get(self._scope.current_key, MISSING)
        if type(value) in IMMUTABLE:
            return value
        value = self._read()
        return private_copy(self._default) if value is MISSING else value

    def update(self, value: Any) -> None:
        if value is None:
            self.clear()
        else:
            self._write(value)


class HeapList(HeapState):
    __slots__ = ()

    def get(self) -> list[Any]:
        held = self._read()
        return [] if held is MISSING else list(held)

    def add(self, item: Any) -> None:
        self._changeable(list).append(item)

    def add_all(self, items: Iterable[Any]) -> None:
        added = list(items)
        if added:
            self._changeable(list).extend(added)

    def update(self, items: Iterable[Any]) -> None:
        held = list(items)
        if held:
            self._write(held)
        else:
            self.clear()

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        self._move(target, sources, lambda held, added: held + added)


class HeapMap(HeapState):
    __slots__ = ()

    def get(self, key: Any, default: Any = None) -> Any:
        return self._held().get(key, default)

    def put(self, key: Any, value: Any) -> None:
        self._changeable(dict)[key] = value

    def remove(self, key: Any) -> None:
        self._check_writable()
        held = self._held()
        held.pop(key, None)
        if not held:
            self.clear()

    def contains(self, key: Any) -> bool:
        return key in self._held()

    def keys(self) -> list[Any]:
        return list(self._held())

    def values(self) -> list[Any]:
        return list(self._held().values())

    def items(self) -> list[tuple[Any, Any]]:
        return list(self._held().items())

    def is_empty(self) -> bool:
        return not self._held()

    def _held(self) -> dict[Any, Any]:
        held = self._read()
        return {} if held is MISSING else held


class HeapReducing(HeapState):
    __slots__ = ("_reduce",)

    def __init__(self, declaration: ReducingState[Any], scope: HeapScope) -> None:
        super().__init__(declaration, scope)
        self._reduce = declaration.reduce

    def get(self) -> Any:
        held = self._read()
        return None if held is MISSING else held

    def add(self, value: Any) -> None:
        self._check_writable()
        held = self._read()
        self._write(value if held is MISSING else self._reduce(held, value))

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        self._move(target, sources, self._reduce)


class HeapFolding(HeapState):
    __slots__ = ("_fold", "_initial")

    def __init__(self, declaration: FoldingState[Any], scope: HeapScope) -> None:
        super().__init__(declaration, scope)
        self._fold, self._initial = declaration.fold, declaration.initial

    def get(self) -> Any:
        held = self._read()
        return None if held is MISSING else held

    def add(self, value: Any) -> None:
        self._check_writable()
        held = self._read()
        self._write(self._fold(private_copy(self._initial) if held is MISSING else held, value))


ACCESSORS: Final[dict[str, Callable[[Any, HeapScope], HeapState]]] = {
    "ValueState": HeapValue,
    "ListState": HeapList,
    "MapState": HeapMap,
    "ReducingState": HeapReducing,
    "FoldingState": HeapFolding,
}
