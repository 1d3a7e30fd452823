"""KeyedRows: rows by key as keyed state: one RowStore for each side of a join, over the same keys.

Incremental checkpoints write, side by side, the rows that have come, got another mark or gone since the last one: a
RunLedger for each side counts rows where those of other backends count keys. How all that is stored: rows_format.py.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ...messages import CheckpointId, KeyedStateHandle
from ..backends.backend import NO_KEY, KeyedSnapshot, ReadState, StateClock
from ..backends.run_ledger import PlannedRuns, RunLedger, write_runs
from ..backends.timer_queue import TimerQueues
from ..errors import InvalidState
from ..keys.key_groups import KeyGroupRange
from ..keys.word_table import Slots
from ..kinds.state_declaration import KeyedStateDeclaration
from .row_store import RowStore
from .rows_format import KeptRows, RowsFormat
from .slot_keys import SlotKeys

S = TypeVar("S", bound=KeyedStateDeclaration)

_FEWEST_ROWS = 8192
"""Fewer dropped rows are not worth making room for others."""


class KeyedRows:
    """The keyed state of one subtask of an operator that keeps rows. Owned by its task; snapshots are written
    elsewhere.
    """

    def __init__(self, sides: Sequence[KeptRows], key_groups: KeyGroupRange, max_parallelism: int) -> None:
        self.current_key: Any = NO_KEY
        self.operator_name = ""
        self.clock: StateClock | None = None
        self._sides = tuple(sides)
        self._key_groups = key_groups
        self._format = RowsFormat(sides, key_groups, max_parallelism)
        self._clear()

    def _clear(self) -> None:
        self.stores = tuple(RowStore(side.schema) for side in self._sides)
        self._keys = SlotKeys()

    def slots_of(self, side: int, batch: pa.RecordBatch) -> Slots:
        """The slot of each row's key; new keys are added. Raises InvalidKey for a null."""
        return self._keys.slots_of([batch.column(name) for name in self._sides[side].keys])

    def tidy(self) -> None:
        """Give the memory of dropped rows and of keys without rows back, once they are more than the others. Slots and
        numbers of rows are others afterwards.
        """
        wasted = [store for store in self.stores if store.dropped >= max(_FEWEST_ROWS, len(store) // 2)]
        if not wasted:
            return
        for store in wasted:
            store.compact()
        is_used = np.zeros(len(self._keys), np.bool_)
        for store in self.stores:
            is_used[store.slots[store.live_rows()]] = True
        used = np.flatnonzero(is_used)
        if 2 * len(used) >= len(self._keys):
            return
        for store in self.stores:
            if store.dropped:
                store.compact()
        slots = np.full(len(self._keys), -1, np.int64)
        slots[used] = self._keys.keep(used)
        for store in self.stores:
            store.relabel(slots)

    def state(self, declaration: S) -> S:
        raise InvalidState(f"state {declaration.name!r}: this operator keeps rows and has no other keyed state")

    def timers(self) -> TimerQueues:
        raise InvalidState("an operator that keeps rows has no timers")

    def read_ahead(self, keys: Sequence[Any]) -> None:
        """All is in memory."""

    def snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        for store in self.stores:
            if store.changes is not None:
                store.changes.start_over()
        if not self.entry_count():
            return lambda target: None
        frozen = {side: store.frozen() for side, store in enumerate(self.stores)}
        keys, count = self._keys.known, len(self._keys)
        return lambda target: self._format.write(frozen, keys, count)

    def track_changes(self, owner: str) -> None:
        for side, store in enumerate(self.stores):
            store.changes = RunLedger(f"{owner}-{side}")

    def increment(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        planned = [self._planned(side, store, checkpoint_id) for side, store in enumerate(self.stores) if len(store)]
        if not planned:
            return lambda target: None
        return lambda target: write_runs(planned, self._key_groups.groups, target)

    def _planned(self, side: int, store: RowStore, checkpoint_id: CheckpointId) -> PlannedRuns:
        ledger = store.changes
        assert ledger is not None, "changes are tracked"
        plan = ledger.plan(checkpoint_id, len(store))
        if plan.new is None:
            return PlannedRuns(plan, ledger.owner, None)
        frozen, keys, count = {side: store.frozen(plan.new.slots)}, self._keys.known, len(self._keys)
        return PlannedRuns(plan, ledger.owner, lambda target: self._format.write(frozen, keys, count, is_run=True))

    def checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        for store in self.stores:
            if store.changes is not None:
                store.changes.complete(checkpoint_id)

    def restore(self, handles: Sequence[KeyedStateHandle], read: ReadState) -> None:
        assert not len(self._keys), "a backend is restored before it is used"
        for handle in handles:
            for side, stored in self._format.read(handle, read):
                *columns, times, marks = stored.columns
                store = self.stores[side]
                rows = pa.RecordBatch.from_arrays(columns, schema=store.schema)
                store.append(rows, self.slots_of(side, rows), times.to_numpy(), marks.to_numpy())

    def read_only(self) -> AbstractContextManager[None]:
        """Questions see nothing that could be changed."""
        return nullcontext()

    def keys(self, state_name: str = "", namespace: Hashable = ()) -> Collection[Any]:
        slots = [store.slots[store.live_rows()] for store in self.stores]
        return self._keys.known.listed(np.unique(np.concatenate(slots)))

    def each_key(self) -> Iterator[Any]:
        for key in self.keys():
            self.current_key = key
            yield key

    def entry_count(self) -> int:
        return sum(store.live_count for store in self.stores)

    stored_entries = entry_count

    def close(self) -> None:
        self._clear()
