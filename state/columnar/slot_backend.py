"""SlotBackend: keyed state of a compiled operator, in NumPy columns by slot. Snapshots are those of HeapBackend.

A compiled `process` asks for the slots of a batch's keys and the columns of each state, and reads and writes those; all
other Python of the operator uses the ordinary accessors. A savepoint of the compiled operator is restored by the
interpreted one, and the other way round. Keys that hold nothing are forgotten when they are more than the others.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from ...messages import CheckpointId, KeyedStateHandle
from ..backends.backend import NO_NAMESPACE, KeyedSnapshot, ReadState
from ..backends.frozen_state import FrozenState
from ..backends.keyed_snapshot import SnapshotWriter, StoredState, read_layers, separate
from ..backends.run_ledger import PlannedRuns, RunLedger, write_runs
from ..backends.timer_queue import EVENT_TIMERS, PROCESSING_TIMERS, TimerQueues
from ..errors import InvalidState
from ..keys.word_table import Slots
from ..kinds.record_serializer import node_of
from ..kinds.state_declaration import KeyedStateDeclaration
from .slot_keys import SlotKeys
from .slot_restore import load_into
from .slot_snapshot import KeyOrders, SlotView, SomeKeys
from .slot_states import SLOT_ACCESSORS, SlotColumns, SlotScope, SlotState
from .slot_timer_queue import NoProcessingTimers, SlotTimerQueue
from .slot_timers import SlotTimers
from .value_kinds import ValueKinds

S = TypeVar("S", bound=KeyedStateDeclaration)

_FEWEST_KEYS = 8192


class SlotBackend(SlotScope):
    """The working state of one operator subtask. Owned by its task's thread; only snapshots are written elsewhere."""

    def __init__(self, first_key_group: int, last_key_group: int, max_parallelism: int, *, key_type: Any = Any) -> None:
        super().__init__()
        self.key_groups = range(first_key_group, last_key_group + 1)
        self.max_parallelism = max_parallelism
        self._key_node = node_of(key_type)
        if self._key_node.encode is not None:
            raise InvalidState(f"the keys of a compiled operator are columns; found the key type {key_type!r}")
        self._states: dict[str, SlotState] = {}
        self._restored: dict[str, list[StoredState]] = {}
        self._orders = KeyOrders(max_parallelism)
        self._timers: SlotTimerQueue | None = None
        self._no_timers = NoProcessingTimers()
        self._looks_at = _FEWEST_KEYS
        """With this number of keys it counts the keys that hold nothing."""

    def state(self, declaration: S) -> S:
        return cast(S, self._state(declaration))

    def slots_of(self, key_arrays: Sequence[pa.Array]) -> Slots:
        """The slot of each row's key; new keys are added, and all columns have room for them.

        Raises InvalidKey for a null, or for columns that cannot be keys or are not those of the batches before, and
        StateIncompatible if restored keys are no values of such columns.
        """
        if len(self.slot_keys) >= self._looks_at:
            self._forget_empty()
        slots = self.slot_keys.slots_of(key_arrays)
        self.make_room()
        self.changed(slots, len(slots))
        return slots

    def columns(self, declaration: KeyedStateDeclaration) -> SlotColumns:
        """A state's columns, to be asked for per batch, after `slots_of`. Raises what `state` raises."""
        return self._state(declaration).columns

    def timers(self) -> TimerQueues:
        """Raises StateIncompatible if timers were restored that a compiled operator does not have."""
        return TimerQueues(self._event_timers(), self._no_timers)

    @property
    def slot_timers(self) -> SlotTimers:
        """The event-time timers, with room for all slots. Raises what `timers` raises."""
        timers = self._event_timers().timers
        timers.reserve(len(self.slot_keys))
        return timers

    def read_ahead(self, keys: Sequence[Any]) -> None:
        """All is in memory."""

    def snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        if self.runs is not None:
            self.runs.start_over()
        return self._frozen(None)

    def track_changes(self, owner: str) -> None:
        self.runs = RunLedger(owner)

    def increment(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        ledger, count = self.runs, len(self.slot_keys)
        assert ledger is not None, "changes are tracked"
        if self._restored:  # what no state has taken is only in whole snapshots
            ledger.start_over()
        plan = ledger.plan(checkpoint_id, count)
        frozen = None if plan.new is None else self._frozen(plan.new.slots)
        planned = [PlannedRuns(plan, ledger.owner, frozen)]
        return lambda target: write_runs(planned, self.key_groups, target)

    def checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        if self.runs is not None:
            self.runs.complete(checkpoint_id)

    def restore(self, handles: Sequence[KeyedStateHandle], read: ReadState) -> None:
        assert not self._states, "a backend is restored before its states are bound"
        for handle in handles:
            layers = read_layers(handle, read, self.key_groups, self.max_parallelism, self._key_node)
            for name, several in layers.items():
                self._restored.setdefault(name, []).extend(several)

    def keys(self, state_name: str, namespace: Hashable = NO_NAMESPACE) -> Collection[Any]:
        state = self._states.get(state_name)
        if state is None or namespace != NO_NAMESPACE:
            return []
        return self.slot_keys.known.listed(state.present_slots())

    def each_key(self) -> Iterator[Any]:
        """In the order in which they came, or were restored."""
        slots = self._holding()
        for key, slot in zip(self.slot_keys.known.listed(slots), slots.tolist(), strict=True):
            self.slot_keys.remember(key, slot)
            self.current_key = key
            yield key

    def entry_count(self) -> int:
        return sum(state.entry_count() for state in self._states.values())

    stored_entries = entry_count

    def close(self) -> None:
        for state in self._states.values():
            state.drop()
        self._states.clear()
        self._restored.clear()
        self._timers = None
        self.slot_keys, self._orders = SlotKeys(), KeyOrders(self.max_parallelism)

    def make_room(self) -> None:
        for state in self._states.values():
            state.reserve(len(self.slot_keys))

    def _forget_empty(self) -> None:
        """Give all other keys new slots, if most hold nothing and have no timers. The next look is when there are twice
        as many.
        """
        count, kept, timers = len(self.slot_keys), self._holding(), self._event_timers().timers
        kept = np.union1d(kept, timers.slots())
        if 2 * len(kept) < count:
            slots = self.slot_keys.keep(kept)
            for state in self._states.values():
                state.move(kept, slots)
            timers.move(kept, slots)
            if self.runs is not None:
                self.runs.start_over()
        self._looks_at = max(_FEWEST_KEYS, 2 * len(self.slot_keys))

    def _frozen(self, some: Slots | None) -> SnapshotWriter:
        """What all slots hold, or some; then as a run that says everything of them."""
        keys = self.slot_keys.known
        count = len(keys)
        chosen = None if some is None else SomeKeys(keys, count, some, self._orders)
        views: list[FrozenState] = [] if chosen is None else [chosen]
        views += [SlotView(state, keys, count, self._orders, chosen) for state in self._states.values()]
        views += [self._timers.freeze(some)] if self._timers is not None else ()
        carried = [stored for several in self._restored.values() for stored in separate(several)]
        snapshot = SnapshotWriter(
            self.key_groups, self.max_parallelism, self._key_node, views, carried, self.operator_name
        )
        snapshot.release = lambda: None
        return snapshot

    def _holding(self) -> Slots:
        """The slots that hold something in some state."""
        count = len(self.slot_keys)
        holding = np.zeros(count, np.bool_)
        for state in self._states.values():
            holding |= state.columns.present[:count]
        return np.flatnonzero(holding)

    def _event_timers(self) -> SlotTimerQueue:
        if self._timers is None:
            for stored in self._restored.pop(PROCESSING_TIMERS, ()):
                self._no_timers.load(stored)
            self._timers = SlotTimerQueue(self, self._orders)
            for stored in self._restored.pop(EVENT_TIMERS, ()):
                self._timers.load(stored)
        return self._timers

    def _state(self, declaration: KeyedStateDeclaration) -> SlotState:
        known = self._states.get(declaration.name)
        if known is None:
            ValueKinds.of(declaration)
            known = SLOT_ACCESSORS[declaration.kind](declaration, self)
            for name in (declaration.name, *declaration.former_names):
                for stored in self._restored.pop(name, ()):
                    load_into(known, stored, self.slot_keys)
            self._states[declaration.name] = known
            self.make_room()
        return known
