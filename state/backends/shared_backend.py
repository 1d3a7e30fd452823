"""SharedBackend: a keyed backend that coroutines on another thread use, each as a unit of work of its own.

It stands before the backend that holds the state, and adds what units need: a lock around each access, the key of the
unit whose code runs, and what was there before a unit wrote. Reads give private copies. A snapshot holds nothing of
units that are not committed: what was there before stands in its place while the backend freezes its state. Timers
that a unit adds or removes change nothing before it is committed.

The task's thread, which has no unit, uses it like any backend.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final, NoReturn, TypeVar, cast

from ...messages import CheckpointId, KeyedStateHandle
from ..errors import CallIsOver, UpdateForgotten
from ..kinds.misnamed import Misnamed
from ..kinds.state_declaration import KeyedStateDeclaration
from .backend import (
    NO_KEY,
    NO_NAMESPACE,
    KeepingBackend,
    KeyedSnapshot,
    ReadState,
    StateClock,
    is_counted,
    is_sampled,
    is_sharing,
)
from .frozen_state import KeptState
from .heap_accessors import forgotten
from .private_copy import IMMUTABLE, is_changed, private_copy
from .shared_timers import SharedTimers
from .timer_queue import TimerQueues
from .unit_of_work import CURRENT, UnitOfWork

S = TypeVar("S", bound=KeyedStateDeclaration)

READS: Final = frozenset({"value", "get", "contains", "keys", "values", "items", "is_empty"})
WRITES: Final = frozenset({"update", "add", "add_all", "put", "remove", "clear"})
"""The methods of accessors, of all kinds."""


class SharedBackend:
    """Stands before `inner`, which nobody else may use from then on. `lock` may be taken again by its holder."""

    def __init__(self, inner: KeepingBackend, lock: AbstractContextManager[Any]) -> None:
        self.inner = inner
        self.lock = lock
        """Held around each access. Whoever holds it for longer keeps snapshots waiting."""
        self._own_key: Any = NO_KEY
        self._accessors: dict[str, SharedState] = {}
        self.misused: Callable[[CallIsOver], None] = lambda _: None
        """Called where code of a unit that was committed goes on, as its changes are lost; on any thread."""
        self.written: dict[UnitOfWork, None] = {}
        """The units that have written and are not over."""
        self._timers: TimerQueues | None = None

    # -- the current key: the unit's, or that of the task's thread

    @property
    def current_key(self) -> Any:
        unit = CURRENT.get()
        return self._own_key if unit is None else unit.key

    @current_key.setter
    def current_key(self, key: Any) -> None:
        self._own_key = key

    @property
    def operator_name(self) -> str:
        return self.inner.operator_name

    @operator_name.setter
    def operator_name(self, name: str) -> None:
        self.inner.operator_name = name

    @property
    def clock(self) -> StateClock | None:
        return self.inner.clock

    @clock.setter
    def clock(self, clock: StateClock | None) -> None:
        self.inner.clock = clock

    # -- units of work

    def commit(self, unit: UnitOfWork) -> None:
        """All that the unit changed is part of the state now. With the lock in hand, or on the task's thread."""
        unit.is_over = True
        if unit.before is not None:
            unit.before = None
            self.written.pop(unit, None)
        if unit.timers:
            for (queue, timer), is_added in unit.timers.items():
                if is_added:
                    queue.add(timer)
                else:
                    queue.remove(timer)

    def remember(self, unit: UnitOfWork, before: dict[tuple[Any, Any], Any]) -> None:
        """What was there before the unit began, which has used the states behind this backend's back. With the lock in
        hand.
        """
        unit.before = before
        self.written[unit] = None

    def roll_back(self, unit: UnitOfWork) -> None:
        """As if the unit had changed nothing."""
        with self.lock:
            unit.is_over = unit.is_undone = True
            unit.timers = None
            for (accessor, namespace), held in (unit.before or {}).items():
                accessor.replace(unit.key, namespace, private_copy(held))
            unit.before = None
            self.written.pop(unit, None)

    def forgotten(self, unit: UnitOfWork) -> UpdateForgotten | None:
        """Of a unit that has ended: the error if it has changed a copy of a value in place, and has not put it back."""
        lent, unit.lent = unit.lent or (), None
        for slot, copy, value in lent:
            if (unit.before is None or slot not in unit.before) and is_changed(copy, value):
                return forgotten(slot[0].inner.declaration, unit.key, self.operator_name, "a copy, as in any coroutine")
        return None

    def refuse(self, unit: UnitOfWork, used: str, begun: Sequence[Any] | None = None) -> NoReturn:
        """The unit is over, and its code has used this. Raises CallIsOver. `begun`: what it had left running; by
        default what it has now.
        """
        running = [each for each in unit.begun or () if not each.is_done] if begun is None else begun
        lines = dict.fromkeys(each.line for each in running)
        error = CallIsOver(used, self.operator_name, begun_at=" and ".join(filter(None, lines)))
        if not unit.is_undone:
            self.misused(error)
        raise error

    @contextmanager
    def _as_committed(self) -> Iterator[None]:
        """Within it, the backend holds nothing of units that are not over."""
        with self.lock:
            unfinished: dict[tuple[SharedState, Hashable], dict[Any, Any]] = {}
            for unit in self.written:
                for slot, held in (unit.before or {}).items():
                    own = unfinished.get(slot)
                    if own is None:
                        own = unfinished[slot] = {}
                    own[unit.key] = held
            for (accessor, namespace), own in unfinished.items():
                accessor.exchange_all(namespace, own)
            try:
                yield
            finally:
                for (accessor, namespace), own in unfinished.items():
                    accessor.exchange_all(namespace, own)

    # -- the contract of backends

    def state(self, declaration: S) -> S:
        known = self._accessors.get(declaration.name)
        if known is None:
            known = self._accessors[declaration.name] = SharedState(self, self.inner.state(declaration))
        return cast(S, known)

    def timers(self) -> TimerQueues:
        if self._timers is None:
            own = self.inner.timers()
            self._timers = TimerQueues(
                *(SharedTimers(each, self.lock, self.refuse) for each in (own.event, own.processing))
            )
        return self._timers

    def keep(self, part: KeptState) -> None:
        self.inner.keep(part)

    def read_ahead(self, keys: Sequence[Any]) -> None:
        with self.lock:
            self.inner.read_ahead(keys)

    def checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        self.inner.checkpoint_complete(checkpoint_id)

    def snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        with self._as_committed():
            return self.inner.snapshot(checkpoint_id)

    def whole_snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        with self._as_committed():
            if is_sharing(self.inner):
                return self.inner.whole_snapshot(checkpoint_id)
            return self.inner.snapshot(checkpoint_id)

    def restore(self, handles: Sequence[KeyedStateHandle], read: ReadState) -> None:
        self.inner.restore(handles, read)

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Units wait meanwhile, and what they have not committed is not seen."""
        with self._as_committed(), self.inner.read_only():
            yield

    def keys(self, state_name: str, namespace: Hashable = NO_NAMESPACE) -> Collection[Any]:
        with self._as_committed():
            return self.inner.keys(state_name, namespace)

    def each_key(self) -> Iterator[Any]:
        with self._as_committed():
            keys = list(self.inner.each_key())
        for key in keys:
            self.current_key = key
            yield key

    def some_keys(self, most: int) -> list[Any]:
        with self.lock:
            return self.inner.some_keys(most) if is_sampled(self.inner) else []

    def entry_count(self) -> int:
        with self.lock:
            return self.inner.entry_count()

    def stored_entries(self) -> int:
        with self.lock:
            return self.inner.stored_entries() if is_counted(self.inner) else 0

    def close(self) -> None:
        """Units that still run find no state any more."""
        with self.lock:
            for accessor in self._accessors.values():
                accessor.is_closed = True
            self.misused = lambda _: None
            self.written.clear()
            self.inner.close()


class SharedState(Misnamed):
    """Stands before the accessor of one state, with the methods of its kind."""

    def __init__(self, backend: SharedBackend, inner: Any) -> None:
        self.declaration = inner.declaration
        self.is_closed = False
        self._backend = backend
        self._inner_backend = backend.inner
        self.inner = inner
        self._namespace: Hashable = NO_NAMESPACE
        """Of the task's thread."""
        self._entered: Hashable = NO_NAMESPACE
        """Of the inner accessor."""
        for name in filter(partial(hasattr, inner), READS):
            lends = name == "value" or (name == "get" and inner.declaration.kind == "MapState")
            setattr(self, name, self._reading(getattr(inner, name), lends=lends))
        for name in filter(partial(hasattr, inner), WRITES):
            setattr(self, name, self._writing(getattr(inner, name)))

    def set_namespace(self, namespace: Hashable) -> None:
        if namespace is None:
            raise ValueError(f"state {self.inner.declaration.name!r}: a namespace is plain data and not None")
        unit = CURRENT.get()
        if unit is None:
            self._namespace = namespace
        else:
            unit.namespaces = {**(unit.namespaces or {}), self: namespace}

    def merge_namespaces(self, target: Hashable, sources: Any) -> None:
        sources = list(sources)
        unit = CURRENT.get()
        with self._backend.lock:
            self._enter(unit)
            if unit is not None:
                before = unit.before = {} if unit.before is None else unit.before
                self._backend.written[unit] = None
                for namespace in (target, *sources):
                    if (self, namespace) not in before:
                        self._enter_namespace(namespace)
                        before[self, namespace] = private_copy(self.inner.held())
            self.inner.merge_namespaces(target, sources)

    def replace(self, key: Any, namespace: Hashable, held: Any) -> Any:
        """Put what `exchange` gave, as it is, in place of what this key holds, and return that. Under the lock."""
        self._inner_backend.current_key = key
        self._enter_namespace(namespace)
        return self.inner.exchange(held)

    def exchange_all(self, namespace: Hashable, held: dict[Any, Any]) -> None:
        """The same for many keys; what they held stands in `held` afterwards."""
        self._enter_namespace(namespace)
        self.inner.exchange_all(held)

    def _enter(self, unit: UnitOfWork | None) -> None:
        """Set key and namespace."""
        if unit is None:
            self._inner_backend.current_key = self._backend._own_key
            namespace = self._namespace
        else:
            if unit.is_over or self.is_closed:
                self._backend.refuse(unit, self.inner.declaration.name)
            self._inner_backend.current_key = unit.key
            namespace = NO_NAMESPACE if unit.namespaces is None else unit.namespaces.get(self, NO_NAMESPACE)
        if namespace is not self._entered:
            self._enter_namespace(namespace)

    def enter_default(self) -> None:
        """Make the inner accessor that of the default namespace."""
        self._enter_namespace(NO_NAMESPACE)

    def _enter_namespace(self, namespace: Hashable) -> None:
        if namespace != self._entered:
            self.inner.set_namespace(namespace)
            self._entered = namespace

    def _reading(self, method: Callable[..., Any], *, lends: bool) -> Callable[..., Any]:
        """`lends`: it gives one value, and not a list of several."""
        lock, enter, current, inner = self._backend.lock, self._enter, CURRENT.get, self._inner_backend

        def read(*args: Any, **named: Any) -> Any:
            unit = current()
            with lock:
                if unit is None:
                    enter(None)
                    return method(*args, **named)
                if unit.is_over or self.is_closed or unit.namespaces or self._entered is not NO_NAMESPACE:
                    enter(unit)
                else:
                    inner.current_key = unit.key
                result = method(*args, **named)
                if type(result) in IMMUTABLE:
                    return result
                copy = private_copy(result)
                if lends and copy is not result:
                    unit.lent = [] if unit.lent is None else unit.lent
                    unit.lent.append(((self, self._entered), copy, result))
                return copy

        return read

    def _writing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        lock, enter, current, inner = self._backend.lock, self._enter, CURRENT.get, self._inner_backend
        held, written = self.inner.held, self._backend.written
        default_slot: tuple[SharedState, Hashable] = self, NO_NAMESPACE

        def write(*args: Any, **named: Any) -> None:
            unit = current()
            with lock:
                if unit is None:
                    enter(None)
                    method(*args, **named)
                    return
                slot = default_slot
                if unit.is_over or self.is_closed or unit.namespaces or self._entered is not NO_NAMESPACE:
                    enter(unit)
                    slot = self, self._entered
                else:
                    inner.current_key = unit.key
                before = unit.before
                if before is None:
                    unit.before = {slot: private_copy(held())}
                    written[unit] = None
                elif slot not in before:
                    before[slot] = private_copy(held())
                method(*args, **named)

        return write
