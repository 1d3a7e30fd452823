"""ChangedKeys: which keys of state in dicts an increment has to write, in terms of the RunLedger's slots.

A key counts as changed from when it may be written: the keys of a batch as it is announced, all at once, and the key of
a timer that fires. So a value that is changed in place is never missed, and no write pays for it. For the ledger a key
that has changed gets a number, which holds until all is written again. Bytes and entries are not at home here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from ...messages import CheckpointId, pack_plain
from ..columns.packed_columns import column_of, packed, taken
from ..kinds.record_serializer import Convert
from ..kinds.schema_fit import Schema
from .backend import NO_NAMESPACE
from .heap_blocks import groups_of
from .keyed_snapshot import RUN_KEYS
from .run_ledger import RunLedger, RunPlan
from .timer_queue import TimerEntry, TimerQueue

_FEWEST_KEYS: Final = 1024


class ChangedKeys:
    """Of one backend; the task's thread owns it. `owner`: as a RunLedger's."""

    def __init__(self, owner: str) -> None:
        self.ledger = RunLedger(owner)
        self._touched: set[Any] = set()
        """Since the last snapshot."""
        self._most = 0
        """With more than this, the next snapshot is whole anyway, and nothing is noted."""
        self._is_noting = False
        self._numbers: dict[Any, int] = {}
        self._keys: list[Any] = []
        """By number."""

    def add(self, keys: Iterable[Any]) -> None:
        """These may hold something else from now on, or nothing."""
        if not self._is_noting:
            return
        try:
            self._touched.update(keys)
        except TypeError:  # one that has no hash, which whoever uses it refuses
            self._is_noting = False
        if len(self._touched) > self._most:
            self._is_noting = False
        if not self._is_noting:
            self._touched.clear()

    def start_over(self) -> None:
        """The next snapshot is whole."""
        self._is_noting = False
        self._touched.clear()

    def plan(self, checkpoint_id: CheckpointId, count: int) -> tuple[RunPlan, list[Any] | None]:
        """The runs of the snapshot that is taken now, and the keys of the new one; None: all. `count`: of entries."""
        ledger, numbers, touched = self.ledger, self._numbers, list(self._touched)
        if not self._is_noting:
            ledger.start_over()
        if touched:
            new = self._touched.difference(numbers)
            numbers.update(zip(new, itertools.count(len(self._keys))))
            self._keys += new
            slots = np.fromiter(map(numbers.__getitem__, touched), np.int64, len(touched))
            ledger.changed(slots, len(slots), max(count, len(numbers)))
        plan = ledger.plan(checkpoint_id, count)
        self._is_noting, self._most = True, max(count // 2, _FEWEST_KEYS)
        self._touched.clear()
        if plan.new is None:
            return plan, []
        if plan.new.slots is not None:  # the touched ones at least
            chosen = plan.new.slots
            return plan, touched if len(chosen) == len(touched) else [self._keys[slot] for slot in chosen.tolist()]
        ledger.forget_changes()
        numbers.clear()
        self._keys.clear()
        return plan, None


class RunKeys:
    """The keys of a run, for a SnapshotWriter: it says everything of them, in all states."""

    name: Final = "run-keys"
    kind: Final = RUN_KEYS
    schema: Final[Schema] = None
    is_empty: Final = False

    def __init__(self, keys: list[Any]) -> None:
        self._keys = keys

    def payloads(self, max_parallelism: int, encode_key: Convert) -> Iterator[tuple[int, bytes]]:
        """One for each key group, with keys and no values."""
        keys = self._keys
        stored = column_of(keys if encode_key is None else [encode_key(key) for key in keys])
        groups = groups_of(keys, stored if encode_key is None else None, max_parallelism)
        order = np.argsort(groups, kind="stable")
        groups, column = groups[order], taken(stored, order)
        starts = np.flatnonzero(np.diff(groups, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(groups)], strict=True):
            yield int(groups[start]), pack_plain([NO_NAMESPACE, packed(column, start, end), ["plain", []]])


class NotingTimerQueue(TimerQueue):
    """One that notes whose timers fire. Timers are added and removed by the current key, which is noted anyway."""

    def __init__(self, name: str, changes: ChangedKeys) -> None:
        super().__init__(name)
        self._changes = changes

    def due(self, until_ms: int) -> Iterator[TimerEntry]:
        for timer in super().due(until_ms):
            self._changes.add((timer[1],))
            yield timer
