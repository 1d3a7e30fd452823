"""Accessors of keyed state on the heap: dicts of key -> value, one per namespace.

A snapshot takes lists of the values as they are, ten nanoseconds each, and of the keys that it does not know yet
(heap_blocks.py). While it is being written it shares its values with the dicts, so one that may be changed in place is
copied before it is handed out, once per key and snapshot; numbers, texts and tuples of these never are. Flink:
CopyOnWriteStateTable.

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
from .errors import InvalidState, NoCurrentKey, ReadOnlyState
from .heap_blocks import FrozenEntries, KeyLayout, freeze_entries, is_worth_a_layout

NO_KEY: Final = type("NoKey", (), {"__repr__": lambda _: "NO_KEY", "__hash__": None})()
"""`current_key` where none is set. No dict takes it, so a write need not look for it first."""

QUESTION: Final = 0
"""The number of a question among the observers."""

NO_NAMESPACE: Final = ()
"""The namespace of state that knows none. Flink: VoidNamespace."""

MISSING: Final = type("Missing", (), {"__repr__": lambda _: "MISSING"})()

IMMUTABLE: Final = frozenset(
    {bool, int, float, str, bytes, type(None), datetime, date, time, timedelta, Decimal, UUID, complex}
)

Namespaces = dict[Hashable, dict[Any, Any]]
"""namespace -> key -> value."""


def private_copy(value: Any) -> Any:
    """A deep copy, quick for lists and dicts of immutable values; the value itself if nothing in it can change."""
    kind = type(value)
    if kind in IMMUTABLE:
        return value
    if kind is list:
        return [item if type(item) in IMMUTABLE else private_copy(item) for item in value]
    if kind is dict:
        return {key: item if type(item) in IMMUTABLE else private_copy(item) for key, item in value.items()}
    if isinstance(value, tuple) and IMMUTABLE.issuperset(map(type, value)) and not hasattr(value, "__dict__"):
        return value
    return deepcopy(value)


class HeapScope:
    """What the accessors of one backend share: the key, and who else looks at their values."""

    def __init__(self) -> None:
        self.current_key: Any = NO_KEY
        self.operator_name = ""
        self.is_read_only = False
        self.observers: set[int] = set()
        """Who else looks at the values: snapshots not yet written, by number from 1, and a QUESTION that is being
        answered. Writers on other threads only ever discard from it.
        """


class HeapState:
    """The accessor of one state; the task's thread owns it."""

    __slots__ = ("_entries", "_layouts", "_namespace", "_own_values", "_scope", "declaration", "namespaces", "node")

    def __init__(self, declaration: KeyedStateDeclaration, scope: HeapScope) -> None:
        self.declaration = declaration
        self.node = declaration.node()
        self.namespaces: Namespaces = {}
        self._layouts: dict[Hashable, KeyLayout] = {}
        """By namespace, for those that are large and have lost no key since the last snapshot."""
        self._own_values: set[tuple[Hashable, Any]] = set()
        """Namespaces and keys whose values were copied since the last snapshot began."""
        self._scope = scope
        self._enter(NO_NAMESPACE)

    def set_namespace(self, namespace: Hashable) -> None:
        if namespace is None:
            raise ValueError(f"state {self.declaration.name!r}: a namespace is plain data and not None")
        if not self._entries:  # windows come and go: an empty namespace is dropped on leaving
            del self.namespaces[self._namespace]
        self._enter(namespace)

    def clear(self) -> None:
        self._check_writable()
        if self._entries.pop(self._scope.current_key, MISSING) is not MISSING:
            self._layouts.pop(self._namespace, None)

    def freeze(self) -> dict[Hashable, FrozenEntries]:
        """By namespace what is held now, for a snapshot that will be in flight."""
        self._own_values.clear()
        return {
            namespace: freeze_entries(entries, self._layout_of(namespace, entries))
            for namespace, entries in self.namespaces.items()
            if entries
        }

    def load(self, namespace: Hashable, entries: Iterable[tuple[Any, Any]]) -> None:
        """Put restored entries in."""
        self.namespaces.setdefault(namespace, {}).update(entries)

    def keys_in(self, namespace: Hashable) -> list[Any]:
        return list(self.namespaces.get(namespace, ()))

    def entry_count(self) -> int:
        return sum(map(len, self.namespaces.values()))

    def drop(self) -> None:
        """Let go of everything."""
        self.namespaces = {}
        self._layouts.clear()
        self._own_values.clear()
        self._enter(NO_NAMESPACE)

    def _read(self) -> Any:
        """What the current key holds, or MISSING. It may be changed in place by whoever may write."""
        scope = self._scope
        try:
            held = self._entries.get(scope.current_key, MISSING)
        except TypeError:
            self._check_key()
            raise
        return self._handed_out(held) if scope.observers else held

    def _handed_out(self, held: Any) -> Any:
        """What the current key holds, as somebody else looks at it too: a copy if it can be changed."""
        kind = type(held)
        if kind is tuple:
            for item in held:
                if type(item) not in IMMUTABLE:
                    break
            else:
                return held
        elif kind in IMMUTABLE or held is MISSING:
            return held
        return private_copy(held) if self._scope.is_read_only else self._copied_once(held)

    def _copied_once(self, held: Any) -> Any:
        key = self._scope.current_key
        owned = (self._namespace, key)
        if owned in self._own_values:
            return held
        self._own_values.add(owned)
        own = self._entries[key] = private_copy(held)
        return own

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
        self._check_key()

    def _check_key(self) -> None:
        if self._scope.current_key is NO_KEY:
            raise NoCurrentKey(f"keyed state {self.declaration.name!r}", self._scope.operator_name)

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

    def _enter(self, namespace: Hashable) -> None:
        self._namespace = namespace
        self._entries = self.namespaces.setdefault(namespace, {})

    def _layout_of(self, namespace: Hashable, entries: dict[Any, Any]) -> KeyLayout:
        if not is_worth_a_layout(entries):
            return KeyLayout()
        return self._layouts.setdefault(namespace, KeyLayout())


class HeapValue(HeapState):
    """One value; its default is one that cannot be changed."""

    __slots__ = ("_default",)

    def __init__(self, declaration: ValueState[Any], scope: HeapScope) -> None:
        super().__init__(declaration, scope)
        self._default = declaration.default

    def value(self) -> Any:
        scope = self._scope
        if scope.observers:
            held = self._read()
            return self._default if held is MISSING else held
        try:
            return self._entries.get(scope.current_key, self._default)
        except TypeError:
            self._check_key()
            raise

    def update(self, value: Any) -> None:
        scope = self._scope
        if value is None or scope.is_read_only:
            self.clear()  # or raises what is wrong
            return
        try:
            self._entries[scope.current_key] = value
        except TypeError:
            self._check_key()
            raise


class HeapValueOrCopy(HeapValue):
    """One value; who has none gets a copy of the default."""

    __slots__ = ()

    def value(self) -> Any:
        held = self._read()
        return private_copy(self._default) if held is MISSING else held


def value_accessor(declaration: ValueState[Any], scope: HeapScope) -> HeapValue:
    default = declaration.default
    kind = HeapValue if private_copy(default) is default else HeapValueOrCopy
    return kind(declaration, scope)


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
    __slots__ = ("_fold", "_initial", "_merge")

    def __init__(self, declaration: FoldingState[Any], scope: HeapScope) -> None:
        super().__init__(declaration, scope)
        self._fold, self._initial, self._merge = declaration.fold, declaration.initial, declaration.merge

    def get(self) -> Any:
        held = self._read()
        return None if held is MISSING else held

    def add(self, value: Any) -> None:
        self._check_writable()
        held = self._read()
        self._write(self._fold(private_copy(self._initial) if held is MISSING else held, value))

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        if self._merge is None:
            raise InvalidState(f"state {self.declaration.name!r} has no merge function; wanted FoldingState(merge=...)")
        self._move(target, sources, self._merge)


ACCESSORS: Final[dict[str, Callable[[Any, HeapScope], HeapState]]] = {
    "ValueState": value_accessor,
    "ListState": HeapList,
    "MapState": HeapMap,
    "ReducingState": HeapReducing,
    "FoldingState": HeapFolding,
}
