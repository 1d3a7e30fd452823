"""Accessors of keyed state on the heap, one for each kind of declaration.

A value must fit the declared type (value_fit.py). Most are of that very class, which is compared first, as that costs a
few nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final

from ..errors import InvalidState, UpdateForgotten
from ..kinds.descriptors import FoldingState, MapState, ReducingState, ValueState
from ..kinds.value_fit import Fit, Items, Misfit, Pairs
from .backend import NO_KEY
from .heap_state import HeapScope, HeapState
from .private_copy import MISSING, is_changed, is_same, private_copy


class HeapValue(HeapState, kind="ValueState"):
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
            self._check_hashable()
            raise

    def update(self, value: Any) -> None:
        scope = self._scope
        if type(value) is not self._kind or scope.is_read_only:
            if value is None or scope.is_read_only:
                self.clear()  # or raises what is wrong
                return
            value = self._fitting(value)
        try:
            self._entries[scope.current_key] = value
        except TypeError:
            self._check_hashable()
            raise


class HeapValueOrCopy(HeapValue):
    """One value; who has none is lent a copy of the default.

    A copy that was changed and not put back is noticed at the next use of the state, or at the next snapshot.
    """

    __slots__ = ("_compares", "_lent")

    def __init__(self, declaration: ValueState[Any], scope: HeapScope) -> None:
        super().__init__(declaration, scope)
        self._compares = is_same(private_copy(self._default), self._default)
        self._lent: tuple[Hashable, Any, Any] | None = None
        """Namespace, key and copy of the last one that nobody has put back."""

    def value(self) -> Any:
        held = self._read()
        if held is not MISSING:
            return held
        self.check_lent()
        copy = private_copy(self._default)
        if self._compares and not self._scope.is_read_only and self._scope.current_key is not NO_KEY:
            self._lent = self._namespace, self._scope.current_key, copy
        return copy

    def update(self, value: Any) -> None:
        self._settle()
        super().update(value)

    def clear(self) -> None:
        self._settle()
        super().clear()

    def check_lent(self) -> None:
        lent, self._lent = self._lent, None
        if lent is not None and not is_same(lent[2], self._default):
            raise self._scope.note(forgotten(self.declaration, lent[1], self._scope.operator_name))

    def _settle(self) -> None:
        """The current key gets another value, or none: what it was lent may be forgotten."""
        lent = self._lent
        if lent is not None:
            if lent[1] == self._scope.current_key and lent[0] == self._namespace:
                self._lent = None
            else:
                self.check_lent()


class HeapAnything(HeapValue):
    """One value, whatever it is."""

    __slots__ = ()

    def update(self, value: Any) -> None:
        scope = self._scope
        if value is None or scope.is_read_only:
            self.clear()  # or raises what is wrong
            return
        try:
            self._entries[scope.current_key] = value
        except TypeError:
            self._check_hashable()
            raise


class HeapAnythingOrCopy(HeapValueOrCopy, HeapAnything):
    __slots__ = ()


_CHANGEABLE: Final = frozenset({list, dict, set})
"""The types of defaults that a caller may fill in place."""


def forgotten(declared: Any, key: Any, operator: str, *found: str) -> UpdateForgotten:
    """`found`: what was changed in place, if not the default."""
    return UpdateForgotten((declared.named(), declared.name, declared.kind == "MapState"), key, operator, *found)


def value_accessor(declaration: ValueState[Any], scope: HeapScope) -> HeapValue:
    default = declaration.default
    checked = declaration.fit().kind is not None
    if private_copy(default) is default:
        return (HeapValue if checked else HeapAnything)(declaration, scope)
    return (HeapValueOrCopy if checked else HeapAnythingOrCopy)(declaration, scope)


class HeapList(HeapState, kind="ListState"):
    __slots__ = ()

    def get(self) -> list[Any]:
        held = self._read()
        return [] if held is MISSING else list(held)

    def add(self, item: Any) -> None:
        if type(item) is not self._kind:
            item = self._fitting(item)
        self._changeable(list).append(item)

    def add_all(self, items: Iterable[Any]) -> None:
        added = self._all_fitting(items)
        if added:
            self._changeable(list).extend(added)

    def update(self, items: Iterable[Any]) -> None:
        held = self._all_fitting(items)
        if held:
            self._write(held)
        else:
            self.clear()

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        self._move(target, sources, lambda held, added: held + added)

    def _contents(self) -> Fit | None:
        return Items(list, self._fit) if self._fit.has_contents else None


class HeapMap(HeapState, kind="MapState"):
    """A default that `get` was given, and that was changed and not put, is noticed as that of HeapValueOrCopy is."""

    __slots__ = ("_key_fit", "_key_kind", "_lent")

    def __init__(self, declaration: MapState[Any, Any], scope: HeapScope) -> None:
        self._lent: tuple[Hashable, Hashable, Any, Any, Any] | None = None
        """Namespace, key, key of the entry, the last default that was not put, and what it was."""
        self._key_fit = declaration.key_fit()
        self._key_kind = self._key_fit.kind
        super().__init__(declaration, scope)

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._held().get(key, default)
        if default is not None and found is default and type(default) in _CHANGEABLE:
            self.check_lent()
            if not self._scope.is_read_only:
                self._lent = self._namespace, self._scope.current_key, key, default, private_copy(default)
        return found

    def check_lent(self) -> None:
        lent, self._lent = self._lent, None
        if lent is not None and is_changed(lent[3], lent[4]):
            raise self._scope.note(forgotten(self.declaration, lent[1], self._scope.operator_name))

    def clear(self) -> None:
        self._settle(None)
        super().clear()

    def _settle(self, entry: Any) -> None:
        """The entry, None: each one, of the current key gets another value, or none."""
        lent = self._lent
        if lent is not None and lent[:2] == (self._namespace, self._scope.current_key) and entry in (None, lent[2]):
            self._lent = None

    def put(self, key: Any, value: Any) -> None:
        if type(value) is not self._kind:
            value = self._fitting(value)
        if type(key) is not self._key_kind:
            self._check_entry_key(key)
        if self._lent is not None:
            self._settle(key)
        self._changeable(dict)[key] = value

    def remove(self, key: Any) -> None:
        self._check_writable()
        self._settle(key)
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

    def _contents(self) -> Fit | None:
        is_checked = not (self._fit.has_contents or self._key_fit.has_contents)
        return None if is_checked else Pairs(self._key_fit, self._fit)

    def _check_entry_key(self, key: Any) -> None:
        """Of an entry. Raises WrongStateType."""
        if not self._key_fit.takes(key):
            raise self._refused(Misfit(self._key_fit.text, key, ""), "the key of an entry: ")

    def _held(self) -> dict[Any, Any]:
        held = self._read()
        return {} if held is MISSING else held


class HeapReducing(HeapState, kind="ReducingState"):
    __slots__ = ("_reduce",)

    def __init__(self, declaration: ReducingState[Any], scope: HeapScope) -> None:
        super().__init__(declaration, scope)
        self._reduce = declaration.reduce if declaration.look_at_first is None else self._first

    def get(self) -> Any:
        held = self._read()
        return None if held is MISSING else held

    def add(self, value: Any) -> None:
        self._check_writable()
        held = self._read()
        result = value if held is MISSING else self._reduce(held, value)
        if result is None and held is not MISSING:
            self._check_made(self._reduce, held, value)
        if result is value:  # others may hold it: the next call may change it in place
            result = private_copy(value)
        self._write(result if type(result) is self._kind else self._fitting(result))

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        self._move(target, sources, lambda held, other: self._fitting(self._made(self._reduce, held, other)))

    def _first(self, held: Any, value: Any) -> Any:
        """In the place of the function, once: what comes later costs no more than the function itself."""
        declaration: ReducingState[Any] = self.declaration
        look, self._reduce = declaration.look_at_first, declaration.reduce
        result = self._made(self._reduce, held, value)
        if look is not None:
            look(held, value, result)
        return result


class HeapFolding(HeapState, kind="FoldingState"):
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
        before = private_copy(self._initial) if held is MISSING else held
        result = self._fold(before, value)
        if result is None:
            self._check_made(self._fold, before, value)
        self._write(result if type(result) is self._kind else self._fitting(result))

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        if self._merge is None:
            raise InvalidState(f"state {self.declaration.name!r} has no merge function; wanted FoldingState(merge=...)")
        merge = self._merge
        self._move(target, sources, lambda held, other: self._fitting(self._made(merge, held, other)))


ACCESSORS: Final[dict[str, Callable[[Any, HeapScope], HeapState]]] = {
    "ValueState": value_accessor,
    "ListState": HeapList,
    "MapState": HeapMap,
    "ReducingState": HeapReducing,
    "FoldingState": HeapFolding,
}
