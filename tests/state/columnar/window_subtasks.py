"""Subtasks of a windowed aggregation over real backends, cut by snapshots and put together again, as a task does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    OperatorId,
    OperatorSubtaskState,
    StateHandle,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state import SnapshotTarget
from understudy.state.checkpoints.assignment import assign_state
from understudy.state.columnar.window_backend import WindowBackend
from understudy.state.columnar.window_rows import Results, WindowRows
from understudy.state.keys.key_groups import key_group_range, key_groups_of, operator_index_of
from understudy.state.kinds.aggregates import Aggregate, Count, Max, Sum
from understudy.state.storage import verified

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
    """`two_phases`: rows become partials in a table of their own first."""

    def __init__(
        self, make: Callable[[WindowRows], Any], windows: Mapping[str, Any], *, two_phases: bool = False
    ) -> None:
        self._make, self._windows, self._two_phases = make, windows, two_phases
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
            if is_done:
                return found
            if cuts:
                self.cut(cuts.pop(0))

    def cut(self, parallelism: int) -> None:
        """Snapshot all, and go on in so many subtasks."""
        taken = {}
        for index, backend in enumerate(self.backends):
            handle = backend.snapshot(CheckpointId(1))(TARGET)
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
        return WindowBackend(["key"], AGGREGATES, self._windows, self._make, groups, MAXIMUM)


def _read(handle: StateHandle) -> bytes:
    assert handle.data is not None
    return verified(handle.data, handle)
