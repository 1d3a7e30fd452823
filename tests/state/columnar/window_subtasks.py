"""Subtasks of a windowed aggregation over real backends, cut by snapshots and put together again, as a task does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    OperatorId,
    OperatorSubtaskState,
    StateHandle,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.runtime.savepoints.keyed_parts import KeyedParts
from understudy.runtime.savepoints.state_files import StateFiles
from understudy.state import SnapshotTarget
from understudy.state.checkpoints.assignment import assign_state
from understudy.state.columnar.window_backend import WindowBackend
from understudy.state.columnar.window_rows import Results, Stored, WindowRows
from understudy.state.handle_bytes import verified
from understudy.state.keys.key_groups import key_group_range, key_groups_of, operator_index_of
from understudy.state.kinds.aggregates import Aggregate, Count, Max, Sum
from understudy.state.kinds.aggregation_fit import STATE_NAME
from understudy.state.storage import CheckpointStorage

from .window_model import Result, Row

MAXIMUM = 16
SCHEMA = pa.schema({"key": pa.string(), "value": pa.int64()})
AGGREGATES: dict[str, Aggregate] = {"rows": Count(), "total": Sum("value"), "most": Max("value")}
TARGET = SnapshotTarget(
    None, JobId("job"), CheckpointId(1), VertexId("vertex"), SubtaskIndex(0), ExecutionAttemptId("attempt")
)


def batch_of(rows: Sequence[Row]) -> tuple[pa.RecordBatch, Any]:
    batch = pa.RecordBatch.from_pydict({"key": [row.key for row in rows], "value": [row.value for row in rows]}, SCHEMA)
    return batch, np.array([row.time for row in rows], np.int64)


def listed(results: Sequence[Results]) -> list[Result]:
    """As the model has them; the time of each is the last one in its window."""
    found: list[Result] = []
    for batch, times in results:
        start, end = (batch.column(name).to_pylist() for name in ("window_start", "window_end"))
        assert times.tolist() == [each - 1 for each in end]
        columns = (batch.column(name).to_pylist() for name in ("rows", "total", "most"))
        found += zip(batch.column("key").to_pylist(), start, end, *columns, strict=True)
    return found


class Subtasks:
    """`two_phases`: rows become partials in a table of their own first. `fates`: increments are taken on the way, of
    which some complete, and each cut is made of increments.
    """

    def __init__(
        self,
        make: Callable[[WindowRows], Any],
        windows: Mapping[str, Any],
        *,
        two_phases: bool = False,
        fates: Random | None = None,
    ) -> None:
        self._make, self._windows, self._two_phases, self._fates = make, windows, two_phases, fates
        self._number = 0
        self.lists_of_runs = 0
        """Snapshots of several runs that were restored."""
        self._watermark = -(2**63)
        self.backends = [self._backend(0, 1)]
        self.late: list[Row] = []
        self.late_rows = 0

    def take(self, rows: Sequence[Row]) -> list[Result]:
        found: list[Result] = []
        groups = key_groups_of(pa.array([row.key for row in rows]), MAXIMUM)
        for index, backend in enumerate(self.backends):
            own = [
                row
                for row, group in zip(rows, groups.tolist(), strict=True)
                if operator_index_of(group, MAXIMUM, len(self.backends)) == index
            ]
            if own:
                found += self._taken(backend, own)
        self._checkpoint()
        return found

    def advance(self, watermark: int, most_rows: int = 1 << 16, cuts: Sequence[int] = ()) -> list[Result]:
        """Fire everything; between the first slices, restore into so many subtasks each time."""
        self._watermark = watermark
        found: list[Result] = []
        cuts = list(cuts)
        while True:
            is_done = True
            for backend in self.backends:
                if backend.table is not None:
                    results, more = backend.table.fire(watermark, most_rows)
                    found += listed(results)
                    is_done &= not more
            self._checkpoint()
            if is_done:
                return found
            if cuts:
                self.cut(cuts.pop(0))

    def cut(self, parallelism: int) -> None:
        """Snapshot all, and go on in so many subtasks."""
        taken = {}
        for index, backend in enumerate(self.backends):
            handle = self._snapshot(backend)
            if handle is not None and len(handle.shared) > 1:
                self.lists_of_runs += 1
                _check_read(handle, backend)
            keyed = () if handle is None else (handle,)
            state = OperatorSubtaskState(keyed, ())
            taken[SubtaskIndex(index)] = SubtaskState({OperatorId("op"): state})
        new = [self._backend(index, parallelism) for index in range(parallelism)]
        for backend, share in zip(new, assign_state(taken, len(taken), parallelism, MAXIMUM), strict=True):
            if share is not None and share.operators:
                backend.restore(share.operators[OperatorId("op")].keyed, _read)
            if backend.table is not None:
                backend.table.resume(self._watermark)
        self.backends = new

    def _checkpoint(self) -> None:
        if self._fates is None or self._fates.random() < 0.4:
            return
        if self._fates.random() < 0.1:  # a savepoint
            for backend in self.backends:
                backend.snapshot(CheckpointId(self._number))(TARGET)
            return
        is_complete = self._fates.random() < 0.8
        for backend in self.backends:
            self._snapshot(backend)
        for backend in self.backends if is_complete else []:
            backend.checkpoint_complete(CheckpointId(self._number))

    def _snapshot(self, backend: WindowBackend[Any]) -> KeyedStateHandle | None:
        if self._fates is None:
            return backend.snapshot(CheckpointId(1))(TARGET)
        self._number += backend is self.backends[0]
        return backend.increment(CheckpointId(self._number))(replace(TARGET, inline_below_bytes=1))

    def __len__(self) -> int:
        return sum(backend.entry_count() for backend in self.backends)

    def _taken(self, backend: WindowBackend[Any], rows: Sequence[Row]) -> list[Result]:
        batch, times = batch_of(rows)
        if not self._two_phases:
            taken = self._table(backend, SCHEMA, partials=False).update(batch, times)
            if taken.late is not None:
                self.late += [rows[number] for number in taken.late.tolist()]
            self.late_rows += taken.late_rows
            return listed(taken.results)
        local = self._make(WindowRows.of_input(["key"], AGGREGATES, SCHEMA))
        local.update(batch, times)
        found = []
        for partials in local.take_partials():
            taken = self._table(backend, partials.schema, partials=True).merge(partials)
            self.late_rows += taken.late_rows
            found += listed(taken.results)
        return found

    def _table(self, backend: WindowBackend[Any], schema: pa.Schema, *, partials: bool) -> Any:
        if backend.table is None:
            backend.table_for(schema, partials=partials).resume(self._watermark)
        return backend.table

    def _backend(self, index: int, parallelism: int) -> WindowBackend[Any]:
        groups = key_group_range(MAXIMUM, parallelism, index)
        backend = WindowBackend(["key"], AGGREGATES, self._windows, self._make, groups, MAXIMUM)
        if self._fates is not None:
            backend.track_changes("op")
        return backend


def _check_read(handle: KeyedStateHandle, backend: WindowBackend[Any]) -> None:
    """As data, runs hold what the state does."""
    parts = KeyedParts("op", [handle], StateFiles(CheckpointStorage("memory://windows-as-data")))
    read = [row for group in parts.groups() for batch in parts.rows(STATE_NAME, group) for row in batch.to_pylist()]
    assert backend.table is not None
    stored = backend.table.stored()
    held = [] if stored is None else _rows_of(backend.table.rows, stored)
    assert Counter(map(str, read)) == Counter(map(str, held))
    whole = KeyedParts("op", [parts.whole_columns(handle)], parts.files)
    again = [row for group in whole.groups() for batch in whole.rows(STATE_NAME, group) for row in batch.to_pylist()]
    assert Counter(map(str, again)) == Counter(map(str, held))


def _rows_of(rows: WindowRows, stored: Stored) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.with_keys(stored.keys.keys(stored.slots), stored.batch).to_pylist()
    return found


def _read(handle: StateHandle) -> bytes:
    assert handle.data is not None
    return verified(handle.data, handle)
