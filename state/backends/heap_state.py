"""HeapState: what the accessors of keyed state on the heap share: dicts of key -> value, one per namespace.

A snapshot takes lists of the values as they are, ten nanoseconds each, and of the keys that it does not know yet
(heap_blocks.py). While it is being written it shares its values with the dicts, so one that may be changed in place is
copied before it is handed out, once per key and snapshot; numbers, texts and tuples of these never are. Flink:
CopyOnWriteStateTable.

Questions get copies of changeable values and may not write at all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import chain, islice, repeat
from typing import Any, Final, TypeVar

from ...messages.shown import place_of_function, shown
from ..errors import InvalidState, NoCurrentKey, ReadOnlyState, UpdateForgotten, WrongStateType, of_operator
from ..keys.key_hash import java_hash
from ..kinds.misnamed import Misnamed
from ..kinds.state_declaration import KeyedStateDeclaration
from ..kinds.value_fit import Fit, Misfit, plain_scalar
from .backend import NO_KEY, NO_NAMESPACE, StateClock
from .changed_keys import ChangedKeys
from .frozen_state import FrozenState
from .heap_blocks import FrozenEntries, KeyLayout, freeze_entries, is_worth_a_layout
from .heap_view import StateView
from .own_thread import OwnThread
from .private_copy import IMMUTABLE, MISSING, private_copy
from .read_only import ReadOnlySwitch

log = logging.getLogger(__name__)

QUESTION: Final = 0
"""The number of a question among the observers."""

_Refusal = TypeVar("_Refusal", UpdateForgotten, WrongStateType)

Namespaces = dict[Hashable, dict[Any, Any]]
"""namespace -> key -> value."""


class HeapScope(ReadOnlySwitch):
    """What the accessors of one backend share: the key, and who else looks at their values."""

    def __init__(self) -> None:
        super().__init__()
        self.current_key: Any = NO_KEY
        self.operator_name = ""
        self.observers: set[int] = set()
        """Who else looks at the values: snapshots not yet written, by number from 1, and a QUESTION that is being
        answered. Writers on other threads only ever discard from it.
        """
        self.clock: StateClock | None = None
        self.changes: ChangedKeys | None = None
        """Which keys have changed, where checkpoints write no others."""
        self.owner: OwnThread | None = None
        """Of an operator without coroutines, from when its task opens it."""
        self._refusal: UpdateForgotten | WrongStateType | None = None
        """The last one. If there is a snapshot after it, it has not failed the task: somebody has passed over it."""
        self._has_warned = False

    def note(self, refusal: _Refusal) -> _Refusal:
        """An accessor is about to raise it. Coroutines have a say of their own in what becomes of their errors."""
        if self.owner is not None and not (self.is_read_only and isinstance(refusal, WrongStateType)):
            self._refusal = refusal
        return refusal

    def check_refusal(self) -> None:
        """At a snapshot: raises an UpdateForgotten again, and warns of what else was passed over, once."""
        refusal, self._refusal = self._refusal, None
        if isinstance(refusal, UpdateForgotten):
            raise refusal
        if refusal is not None and not self._has_warned:
            self._has_warned = True
            log.warning(
                "an `except` has passed over what state has refused, and that state is as it was before: %s. If that "
                "is meant, catch WrongStateType alone there; an `except Exception` also hides other mistakes",
                refusal,
            )

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """The question looks at values, too."""
        self.observers.add(QUESTION)
        try:
            with super().read_only():
                yield
        finally:
            if not self.is_read_only:
                self.observers.discard(QUESTION)


class HeapState(Misnamed):
    """The accessor of one state; the task's thread owns it."""

    __slots__ = (
        "_entries",
        "_fit",
        "_kind",
        "_layouts",
        "_namespace",
        "_own_values",
        "_scope",
        "contents",
        "declaration",
        "namespaces",
        "node",
    )

    def __init__(self, declaration: KeyedStateDeclaration, scope: HeapScope) -> None:
        self.declaration = declaration
        self.node = declaration.stored_node()
        self._fit = declaration.fit()
        self._kind = self._fit.kind
        """The class of most values that fit: it is compared before anything else. None: anything fits."""
        self.contents = self._contents()
        """What is held for a key, to be looked into before a snapshot; None if it has been checked as it came in."""
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
        try:
            held = self._entries.pop(self._scope.current_key, MISSING)
        except TypeError:
            self._check_hashable()
            raise
        if held is not MISSING:
            self._layouts.pop(self._namespace, None)

    def held(self) -> Any:
        """What the current key holds, with its times if it expires, or MISSING: as it is, for `exchange`."""
        return self._entries.get(self._scope.current_key, MISSING)

    def exchange(self, held: Any) -> Any:
        """Put what `held` or `exchange` gave in place of what the current key holds, and return that."""
        key, before = self._scope.current_key, self.held()
        if held is not MISSING:
            self._entries[key] = held
        elif before is not MISSING:
            del self._entries[key]
            self._layouts.pop(self._namespace, None)
        return before

    def exchange_all(self, held: dict[Any, Any]) -> None:
        """The same for many keys, in place: what they held stands in `held` afterwards."""
        entries, is_gone = self._entries, False
        for key, own in held.items():
            held[key] = entries.get(key, MISSING)
            if own is not MISSING:
                entries[key] = own
            else:
                is_gone = entries.pop(key, MISSING) is not MISSING or is_gone
        if is_gone:
            self._layouts.pop(self._namespace, None)

    def view(self, some: Set[Any] | None = None) -> FrozenState:
        """What is held now, by all keys or by some, for a snapshot that will be in flight."""
        declaration, node = self.declaration, self.node
        return StateView(
            declaration.name, declaration.kind, node.schema, node.encode, self._frozen(some), self.contents
        )

    def check_lent(self) -> None:
        """Raises UpdateForgotten for a default that was changed in place; only some accessors lend one."""

    def note_expired(self, changes: ChangedKeys) -> None:
        """Add the keys that have lost something by the mere passing of time, and still have it in their dict."""

    def _frozen(self, some: Set[Any] | None) -> dict[Hashable, FrozenEntries]:
        """By namespace."""
        self._own_values.clear()
        if some is not None:
            chosen = {namespace: _of_keys(entries, some) for namespace, entries in self.namespaces.items()}
            return {namespace: freeze_entries(own, KeyLayout()) for namespace, own in chosen.items() if own}
        return {
            namespace: freeze_entries(entries, self._layout_of(namespace, entries))
            for namespace, entries in self.namespaces.items()
            if entries
        }

    def load(
        self,
        namespace: Hashable,
        keys: Sequence[Any],
        values: Sequence[Any],
        times: Sequence[Any] | None,
        clock: str | None,
    ) -> None:
        """Put restored entries in: with the times by this clock that they were stored with, if they were."""
        self._put(namespace, keys, values)

    def keys_in(self, namespace: Hashable) -> list[Any]:
        return list(self.namespaces.get(namespace, ()))

    def keys_by_namespace(self) -> list[Collection[Any]]:
        return list(self.namespaces.values())

    def some_keys(self, most: int) -> list[Any]:
        """At most `most`, in any order; some may have expired."""
        return list(islice(chain.from_iterable(self.namespaces.values()), most))

    def entry_count(self) -> int:
        return sum(map(len, self.namespaces.values()))

    def drop(self) -> None:
        """Let go of everything."""
        self.namespaces = {}
        self._layouts.clear()
        self._own_values.clear()
        self._enter(NO_NAMESPACE)

    def _put(self, namespace: Hashable, keys: Sequence[Any], held: Sequence[Any]) -> None:
        """Into a namespace, which need not be the one that is entered."""
        self.namespaces.setdefault(namespace, {}).update(zip(keys, held, strict=True))

    def _read(self) -> Any:
        """What the current key holds, or MISSING. It may be changed in place by whoever may write."""
        scope = self._scope
        try:
            held = self._entries.get(scope.current_key, MISSING)
        except TypeError:
            self._check_hashable()
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
        elif kind in IMMUTABLE:
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

    def _contents(self) -> Fit | None:
        return self._fit if self._fit.has_contents else None

    def _fitting(self, value: Any) -> Any:
        """A value that is not of class `_kind`, as it is held. Raises WrongStateType."""
        fit = self._fit
        if self._kind is None or type(value) in fit.kinds:
            return value
        if fit.takes(value):
            return plain_scalar(value)
        raise self._refused(Misfit(fit.text, value, ""))

    def _made(self, function: Callable[[Any, Any], Any], held: Any, value: Any) -> Any:
        """What a function of the declaration makes of both. Raises InvalidState."""
        result = function(held, value)
        if result is None:
            self._check_made(function, held, value)
        return result

    def _check_made(self, function: Callable[[Any, Any], Any], held: Any, value: Any) -> None:
        """None was made of both. Raises InvalidState, unless one of them is None too, or the declared type says it."""
        if held is not None and value is not None and self._kind is None:
            name = getattr(function, "__qualname__", None) or shown(function)
            raise InvalidState(
                f"{of_operator(self._scope.operator_name)}{self.declaration.named()}: {name}"
                f"{place_of_function(function)} returned None: wanted the new value: is a `return` missing?"
            )

    def _all_fitting(self, values: Iterable[Any]) -> list[Any]:
        """A list of one's own. Raises WrongStateType."""
        held = list(values)
        if self._kind is None or self._fit.kinds.issuperset(map(type, held)):
            return held
        return list(map(self._fitting, held))

    def _refused(self, misfit: Misfit, what: str = "") -> WrongStateType:
        text = f"{what}{misfit} for key {self._scope.current_key!r:.60}"
        return self._scope.note(WrongStateType(self.declaration.named(), text, self._scope.operator_name))

    def _write(self, value: Any) -> None:
        self._check_writable()
        try:
            self._entries[self._scope.current_key] = value
        except TypeError:
            self._check_hashable()
            raise

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
        scope = self._scope
        if scope.current_key is NO_KEY:
            used = f"keyed state {self.declaration.name!r}"
            if scope.owner is not None:
                scope.owner.check(used, scope.operator_name)
            raise NoCurrentKey(used, scope.operator_name) from None

    def _check_hashable(self) -> None:
        """A dict has refused the current key: raises NoCurrentKey, or InvalidKey, which says why."""
        self._check_key()
        java_hash(self._scope.current_key)

    def _move(self, target: Hashable, sources: Iterable[Hashable], merge: Callable[[Any, Any], Any]) -> None:
        """Merge the current key's values of `sources`, in order, into that of `target`."""
        self._check_writable()
        here, merged = self._namespace, MISSING
        for source in dict.fromkeys((target, *sources)):
            self.set_namespace(source)
            held = self._taken()
            if held is not MISSING:
                merged = held if merged is MISSING else merge(merged, held)
        self.set_namespace(target)
        if merged is not MISSING:
            self._put_back(merged)
        self.set_namespace(here)

    def _taken(self) -> Any:
        """What the current key holds, or MISSING; then it holds nothing."""
        held = self._read()
        self.clear()
        return held

    def _put_back(self, held: Any) -> None:
        """What `_taken` gave, or several that are one now."""
        self._write(held)

    def _enter(self, namespace: Hashable) -> None:
        self._namespace = namespace
        self._entries = self.namespaces.setdefault(namespace, {})

    def _layout_of(self, namespace: Hashable, entries: dict[Any, Any]) -> KeyLayout:
        if not is_worth_a_layout(entries):
            return KeyLayout()
        return self._layouts.setdefault(namespace, KeyLayout())


def _of_keys(entries: dict[Any, Any], some: Set[Any]) -> dict[Any, Any]:
    if len(some) < len(entries):
        held = dict(zip(some, map(entries.get, some, repeat(MISSING)), strict=True))  # each looked up once
        gone = [key for key, value in held.items() if value is MISSING]
        for key in gone:
            del held[key]
        return held
    return {key: held for key, held in entries.items() if key in some}
