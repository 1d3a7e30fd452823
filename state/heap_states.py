"""Accessors of keyed state on the heap: dicts of key -> value, one per namespace, in two layers.

Copy on write. A snapshot takes the dicts as they are: they freeze, and from then on changes go into new ones, in which
MISSING stands for what was cleared. Reading looks into the newer layer first. A frozen value that may be changed in
place is copied into the newer layer before it is handed out; numbers, texts and tuples of these never are. Once no
snapshot is being written, the newer layer is merged into the older. So neither the synchronous part of a snapshot nor
an access costs anything per key that is not touched. Flink: CopyOnWriteStateTable.

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

_NOTHING: Final[dict[Any, Any]] = {}


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
        self.is_read_only = False
        self.snapshots_in_flight: set[int] = set()
        """Snapshots not yet written. Writers on other threads only ever discard from it."""


class HeapState:
    """The accessor of one state; the task's thread owns it."""

    __slots__ = (
        "_entries",
        "_frozen",
        "_has_cleared",
        "_namespace",
        "_older",
        "_scope",
        "declaration",
        "namespaces",
        "node",
    )

    def __init__(self, declaration: KeyedStateDeclaration, scope: HeapScope) -> None:
        self.declaration = declaration
        self.node = declaration.node()
        self.namespaces: Namespaces = {}
        """The newer layer."""
        self._frozen: Namespaces = {}
        """The older layer: that of the last snapshot, until it is merged. No namespace in it is empty."""
        self._has_cleared = False
        """Whether MISSING may stand in the newer layer."""
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
        if self._frozen:
            self._thaw()
        key = self._scope.current_key
        if key in self._older:
            self._entries[key] = MISSING
            self._has_cleared = True
        else:
            self._entries.pop(key, None)

    def freeze(self) -> Namespaces:
        """The state as it is now, for a snapshot that will be in flight: these dicts do not change meanwhile."""
        self._thaw()
        if self._frozen:  # an earlier snapshot still reads them
            self._frozen = {namespace: held for namespace in self._known() if (held := self.visible(namespace))}
        else:
            self._frozen = {namespace: entries for namespace, entries in self.namespaces.items() if entries}
        self.namespaces, self._has_cleared = {}, False
        self._enter(self._namespace)
        return self._frozen.copy()

    def load(self, namespace: Hashable, entries: Iterable[tuple[Any, Any]]) -> None:
        """Put restored entries in."""
        self.namespaces.setdefault(namespace, {}).update(entries)

    def visible(self, namespace: Hashable) -> dict[Any, Any]:
        """What is held in a namespace, by key; to be read only."""
        newer, older = self.namespaces.get(namespace, _NOTHING), self._frozen.get(namespace, _NOTHING)
        return self._merged(older.copy(), newer) if older else newer

    def entry_count(self) -> int:
        self._thaw()
        return sum(len(self.visible(namespace)) for namespace in self._known())

    def drop(self) -> None:
        """Let go of everything."""
        self.namespaces, self._frozen, self._has_cleared = {}, {}, False
        self._enter(NO_NAMESPACE)

    def _read(self) -> Any:
        """What the current key holds, or MISSING. It may be changed in place by whoever may write."""
        scope = self._scope
        held = self._entries.get(scope.current_key, MISSING)
        return self._find() if held is MISSING or scope.is_read_only else held

    def _find(self) -> Any:
        """The same where it is not in the newer layer, or where a copy is wanted."""
        scope = self._scope
        key = scope.current_key
        if key is NO_KEY:
            raise NoCurrentKey(self.declaration.name)
        if self._frozen:
            self._thaw()
        entries = self._entries
        held = entries[key] if key in entries else self._older.get(key, MISSING)
        if held is MISSING or (not self._older and not scope.is_read_only):
            return held
        own = private_copy(held)
        if own is not held and not scope.is_read_only:
            entries[key] = own
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

    def _enter(self, namespace: Hashable) -> None:
        self._namespace = namespace
        self._entries = self.namespaces.setdefault(namespace, {})
        self._older = self._frozen.get(namespace, _NOTHING)

    def _known(self) -> list[Hashable]:
        return list(dict.fromkeys((*self._frozen, *self.namespaces)))

    def _thaw(self) -> None:
        """Make one layer of the two, if no snapshot needs the older one any more."""
        if not self._frozen or self._scope.snapshots_in_flight:
            return
        frozen, newer, self._frozen = self._frozen, self.namespaces, {}
        for namespace, entries in newer.items():
            frozen[namespace] = self._merged(frozen.get(namespace, {}), entries)
        self.namespaces = {namespace: entries for namespace, entries in frozen.items() if entries}
        self._has_cleared = False
        self._enter(self._namespace)

    def _merged(self, older: dict[Any, Any], newer: dict[Any, Any]) -> dict[Any, Any]:
        """`older`, changed as `newer` says."""
        older.update(newer)
        if self._has_cleared:
            for key in [key for key, value in newer.items() if value is MISSING]:
                del older[key]
        return older


class HeapValue(HeapState):
    __slots__ = ("_default", "_is_default_fixed")

    def __init__(self, declaration: ValueState[Any], scope: HeapScope) -> None:
        super().__init__(declaration, scope)
        self._default = declaration.default
        self._is_default_fixed = private_copy(self._default) is self._default

    def value(self) -> Any:
        scope = self._scope
        value = self._entries.get(scope.current_key, MISSING)
        if value is MISSING or scope.is_read_only:
            value = self._find()
            if value is MISSING:
                return self._default if self._is_default_fixed else private_copy(self._default)
        return value

    def update(self, value: Any) -> None:
        scope = self._scope
        key = scope.current_key
        if value is None or key is NO_KEY or scope.is_read_only:
            self.clear()  # or raises what is wrong
        else:
            self._entries[key] = value


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
