"""ExpiringState: what the accessors of state with a TTL share. They hold pairs of values and times (timed_values.py).

Reads never give what has expired. It is removed bit by bit: every 64 accesses the next 256 times are compared, turn
after turn, so memory stays flat while keys come and go; and a snapshot leaves it out. Flink: TtlStateFactory,
TtlIncrementalCleanup.

By event time, what is written before the first watermark by no record, or was stored without times, has NO_TIME; it
gets the time at which event time is known first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence, Set
from functools import partial
from typing import Any, ClassVar, Final

from ..kinds.state_declaration import KeyedStateDeclaration
from .backend import NO_TIME
from .changed_keys import ChangedKeys
from .expiring_view import ExpiringView
from .frozen_state import FrozenState
from .heap_blocks import KeyLayout
from .heap_state import HeapScope, HeapState
from .timed_values import Shape, Timed, live

ACCESSES_PER_CLEANING: Final = 64
LOOKS_PER_CLEANING: Final = 4 * ACCESSES_PER_CLEANING
"""Four per access: while each access adds a key, about a third more is held than lives."""

LATEST_MS: Final = 2**63 - 1
"""No time is later."""


class ExpiringState(HeapState):
    """Has no __slots__, so that an accessor can be of this class and of one that has some."""

    shape: ClassVar[Shape]
    keys_at_once: ClassVar[int]
    """The cleaning looks at this many in one go."""

    def __init__(self, declaration: KeyedStateDeclaration, scope: HeapScope) -> None:
        super().__init__(declaration, scope)
        ttl, clock = declaration.ttl, scope.clock
        assert ttl is not None
        assert clock is not None, "a backend has a clock before states with a TTL are bound"
        self._ttl = ttl
        self._on_read = ttl.on == "read"
        self._now_ms: Callable[[], int] = clock.processing_ms
        self._written_ms: Callable[[], int] = clock.processing_ms
        if ttl.clock == "event":
            self._now_ms = clock.event_ms
            self._written_ms = partial(clock.written_ms, f"a time for state {declaration.name!r}, which expires,")
        self._has_unknown = False
        """Whether something may have NO_TIME."""
        self._accesses = 0
        self._cleaned_below_ms = NO_TIME
        """All that was last updated before this has been removed."""
        self._limit_of_cleaning = NO_TIME
        self._looks_left = 0
        self._cleaning = self._clean()

    def view(self, some: Set[Any] | None = None) -> FrozenState:
        limit_ms, declaration = self._limit_now(), self.declaration
        schema = {"ttl": self.node.schema, "clock": self._ttl.clock}
        return ExpiringView(
            declaration.name,
            declaration.kind,
            schema,
            self.node.encode,
            self._frozen(some),
            self.contents,
            self.shape,
            limit_ms,
        )

    def note_expired(self, changes: ChangedKeys) -> None:
        limit_ms, times = self._limit_now(), self.shape.times
        if limit_ms >= self._cleaned_below_ms or self._ttl.clock == "event":  # late records write older times
            for entries in self.namespaces.values():
                changes.add([key for key, pair in entries.items() if min(times(pair)) <= limit_ms])

    def load(
        self,
        namespace: Hashable,
        keys: Sequence[Any],
        values: Sequence[Any],
        times: Sequence[Any] | None,
        clock: str | None,
    ) -> None:
        """What has no times by this state's clock counts as written now."""
        shape = self.shape
        if times is None or clock != self._ttl.clock:
            now_ms = self._now_ms()
            self._has_unknown |= now_ms == NO_TIME
            pairs = [shape.with_times(value, [now_ms] * shape.parts(value)) for value in values]
        else:
            pairs = list(map(shape.with_stored, values, times))
            if clock == "event":
                self._has_unknown |= any(min(shape.times(pair)) == NO_TIME for pair in pairs)
        self._put(namespace, keys, pairs)

    def keys_in(self, namespace: Hashable) -> list[Any]:
        return self._live_keys(self.namespaces.get(namespace, {}), self._limit_now())

    def keys_by_namespace(self) -> list[Collection[Any]]:
        limit_ms = self._limit_now()
        return [self._live_keys(entries, limit_ms) for entries in self.namespaces.values()]

    def entry_count(self) -> int:
        return sum(map(len, self.keys_by_namespace()))

    def _live_keys(self, entries: dict[Any, Timed], limit_ms: int) -> list[Any]:
        times = self.shape.times
        return [key for key, pair in entries.items() if max(times(pair)) > limit_ms]

    def _limit_now(self) -> int:
        """What was last updated then, or before, has expired."""
        now_ms = self._now_ms()
        if self._has_unknown and now_ms != NO_TIME:
            self._make_known(now_ms)
        return now_ms - self._ttl.duration_ms

    def _limit(self) -> int:
        """The same for one access."""
        self._count_access()
        return self._limit_now()

    def _count_access(self) -> None:
        """Every so often, clean up."""
        self._accesses += 1
        if self._accesses >= ACCESSES_PER_CLEANING and not self._scope.is_read_only:
            self._accesses = 0
            self._clean_up()

    def _updated_ms(self, before_ms: int) -> int:
        """The time of an update; a late record, or a clock that was set back, makes nothing older."""
        written_ms = self._written_ms()
        if written_ms == NO_TIME:
            self._has_unknown = True
        return written_ms if written_ms > before_ms else before_ms

    def _make_known(self, now_ms: int) -> None:
        self._has_unknown = False
        shape = self.shape
        for entries in self.namespaces.values():
            for key, pair in entries.items():
                if min(times := shape.times(pair)) == NO_TIME:
                    known = [now_ms if time_ms == NO_TIME else time_ms for time_ms in times]
                    entries[key] = shape.with_times(pair[0], known)
                    self._note((key,))

    def _note(self, keys: Iterable[Any]) -> None:
        """These change, and none of them need be the current key."""
        if self._scope.changes is not None:
            self._scope.changes.add(keys)

    def _clean_up(self) -> None:
        """One step. A large list or map is looked at as a whole; what that takes is saved in the steps after it."""
        self._limit_of_cleaning = self._limit_now()
        if self._limit_of_cleaning < self._cleaned_below_ms:
            return
        self._looks_left = min(self._looks_left, 0) + LOOKS_PER_CLEANING
        while self._looks_left > 0 and (looks := next(self._cleaning)):
            self._looks_left -= looks

    def _clean(self) -> Iterator[int]:
        """Goes through all keys, turn after turn, and yields how many times it has compared since; 0 ends a turn."""
        while True:
            oldest_ms = self._limit_of_cleaning + self._ttl.duration_ms
            for namespace in list(self.namespaces):
                entries = self.namespaces.get(namespace, {})
                keys = list(entries)
                for start in range(0, len(keys), self.keys_at_once):
                    looks, least_ms = self._look_at(entries, keys[start : start + self.keys_at_once])
                    oldest_ms = min(oldest_ms, least_ms)
                    yield looks
                if not entries and namespace != self._namespace and self.namespaces.get(namespace) is entries:
                    del self.namespaces[namespace]
            self._cleaned_below_ms = oldest_ms
            yield 0

    def _look_at(self, entries: dict[Any, Timed], keys: Sequence[Any]) -> tuple[int, int]:
        """Remove what has expired of these keys: how many times were compared, and the oldest of those left."""
        shape, limit_ms = self.shape, self._limit_of_cleaning
        looks, oldest_ms = 0, LATEST_MS
        for key in keys:
            looks += 1
            pair = entries.get(key)
            if pair is None:
                continue
            looks += len(shape.times(pair))
            left = live(shape, pair, limit_ms)
            if left is not pair:
                self._note((key,))
            if left is None:
                del entries[key]
                continue
            if left is not pair:
                entries[key] = left
            oldest_ms = min(oldest_ms, min(shape.times(left)))
        return looks, oldest_ms

    def _layout_of(self, namespace: Hashable, entries: dict[Any, Any]) -> KeyLayout:
        return KeyLayout()  # a layout is good until a key is removed, and here keys go all the time
