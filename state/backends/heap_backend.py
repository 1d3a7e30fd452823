"""HeapBackend: keyed state in Python dicts, snapshotted by key group. Flink: HeapKeyedStateBackend.

One dict per state and namespace, by key: an access is one dict lookup, and the key group of a key is worked out only
when the first snapshot with it is written. Restored state is decoded when it is bound; state that nobody
declares any more is carried along from snapshot to snapshot, so that bringing the declaration back brings the state
back.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Hashable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar, cast

from ...messages import CheckpointId, KeyedStateHandle
from ..kinds.record_serializer import Convert, node_of
from ..kinds.state_declaration import KeyedStateDeclaration
from .backend import NO_NAMESPACE, KeyedSnapshot, ReadState
from .changed_keys import ChangedKeys, NotingTimerQueue, RunKeys
from .expiring_accessors import EXPIRING_ACCESSORS
from .frozen_state import FrozenState, KeptState
from .heap_accessors import ACCESSORS
from .heap_state import HeapScope, HeapState
from .keyed_snapshot import SnapshotWriter, StoredState, read_snapshots
from .run_ledger import PlannedRuns, write_runs
from .timer_queue import TimerQueue, TimerQueues

S = TypeVar("S", bound=KeyedStateDeclaration)


class HeapBackend(HeapScope):
    """The working state of one operator subtask. Owned by its task's thread; only snapshots are written elsewhere."""

    def __init__(self, first_key_group: int, last_key_group: int, max_parallelism: int, *, key_type: Any = Any) -> None:
        super().__init__()
        self.key_groups = range(first_key_group, last_key_group + 1)
        self.max_parallelism = max_parallelism
        self._key_node = node_of(key_type)
        self._states: dict[str, HeapState] = {}
        self._restored: dict[str, list[StoredState]] = {}
        self._timers: TimerQueues | None = None
        self._kept: list[KeptState] = []
        self._snapshots = 0

    def state(self, declaration: S) -> S:
        known = self._states.get(declaration.name)
        if known is None:
            accessors = ACCESSORS if declaration.ttl is None else EXPIRING_ACCESSORS
            known = accessors[declaration.kind](declaration, self)
            for name in (declaration.name, *declaration.former_names):
                for stored in self._restored.pop(name, ()):
                    _load(known, stored)
            self._states[declaration.name] = known
        return cast(S, known)

    def timers(self) -> TimerQueues:
        if self._timers is None:
            changes = self.changes
            make = TimerQueue if changes is None else lambda name: NotingTimerQueue(name, changes)
            self._timers = TimerQueues.restored(self._restored, make)
        return self._timers

    def keep(self, part: KeptState) -> None:
        for stored in self._restored.pop(part.name, ()):
            part.load(stored)
        self._kept.append(part)

    def read_ahead(self, keys: Sequence[Any]) -> None:
        """All is in memory. What these keys hold counts as changed."""
        if self.changes is not None:
            self.changes.add(keys)

    def checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        if self.changes is not None:
            self.changes.ledger.complete(checkpoint_id)

    def track_changes(self, owner: str) -> None:
        self.changes = ChangedKeys(owner)

    def snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        if self.changes is not None:
            self.changes.start_over()
        return self._frozen(None)

    def increment(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        changes = self.changes
        assert changes is not None, "changes are tracked"
        if self._restored or self._kept:  # what no state has taken, or is no state, is only in whole snapshots
            changes.start_over()
        for state in self._states.values():
            state.note_expired(changes)
        plan, keys = changes.plan(checkpoint_id, self._most_entries())
        frozen = None if plan.new is None else self._frozen(keys)
        planned = [PlannedRuns(plan, changes.ledger.owner, frozen)]
        return lambda target: write_runs(planned, self.key_groups, target)

    def _most_entries(self) -> int:
        """Of one state."""
        return max((sum(map(len, state.namespaces.values())) for state in self._states.values()), default=0)

    def _frozen(self, some: list[Any] | None) -> SnapshotWriter:
        """What all keys hold, or some; then as a run that says everything of them."""
        for state in self._states.values():
            state.check_lent()
        self.check_refusal()
        chosen = None if some is None else frozenset(some)
        views: list[FrozenState] = [] if some is None else [RunKeys(some)]
        views += [state.view(chosen) for state in self._states.values()]
        views += self._timers.freeze(chosen) if self._timers else ()
        views += [part.freeze() for part in self._kept]
        self._snapshots += 1
        number = self._snapshots
        self.observers.add(number)
        carried = [stored for several in self._restored.values() for stored in several]
        snapshot = SnapshotWriter(
            self.key_groups, self.max_parallelism, self._key_node, views, carried, self.operator_name
        )
        # Runs when the snapshot is written, or when nobody holds it any more because it was cancelled.
        snapshot.release = weakref.finalize(snapshot, self.observers.discard, number)
        return snapshot

    def restore(self, handles: Sequence[KeyedStateHandle], read: ReadState) -> None:
        assert not self._states, "a backend is restored before its states are bound"
        self._restored = read_snapshots(handles, read, self.key_groups, self.max_parallelism, self._key_node)

    def keys(self, state_name: str, namespace: Hashable = NO_NAMESPACE) -> Collection[Any]:
        state = self._states.get(state_name)
        return [] if state is None else state.keys_in(namespace)

    def each_key(self) -> Iterator[Any]:
        """In the order in which the first state was given them, then those that only later states have."""
        held = [keys for state in self._states.values() for keys in state.keys_by_namespace() if keys]
        for key in list(held[0]) if len(held) == 1 else dict.fromkeys(chain.from_iterable(held)):
            self.current_key = key
            if self.changes is not None:
                self.changes.add((key,))
            yield key

    def some_keys(self, most: int) -> list[Any]:
        return [key for state in self._states.values() for key in state.some_keys(most)]

    def entry_count(self) -> int:
        return sum(state.entry_count() for state in self._states.values())

    def stored_entries(self) -> int:
        return sum(len(entries) for state in self._states.values() for entries in state.namespaces.values())

    def close(self) -> None:
        for state in self._states.values():
            state.drop()
        self._states.clear()
        self._restored.clear()
        self._timers = None


def _load(state: HeapState, stored: StoredState) -> None:
    """Decode what was restored for this state into it; raises StateIncompatible."""
    with stored.loaded_for(state.declaration, state._scope.operator_name):
        decode = state.node.decoder(stored.value_schema)
        for namespace, keys, values, times in stored.timed_entries():
            state.load(namespace, keys, _converted(values, decode), times, stored.ttl_clock)


def _converted(values: list[Any], convert: Convert) -> Sequence[Any]:
    return values if convert is None else [convert(value) for value in values]
