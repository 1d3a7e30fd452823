"""ColumnarWindows: aggregates per key and window over Arrow batches: `.window(tumbling(minutes=1)).aggregate(...)`.

Batches go into the columns of a PaneTable or a SessionTable (state/columnar). When a watermark has passed the ends of
windows, results come as Arrow batches of at most `MOST_ROWS` rows, between which a barrier may pass: key columns,
`window_start`, `window_end` and the aggregates. Their event times are the last ones in their windows, end - 1.

With allowed lateness, windows that a batch changes after they have fired give their results again, once for the batch.
Late records are counted, and go to the side output `late`. Flink SQL: window aggregation, WindowAggOperator; with
LocalWindows before the shuffle, LocalSlicingWindowAggOperator and SliceSharedWindowAggProcessor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from ...messages import StateDescription
from ...state.columnar.pane_table import PaneTable
from ...state.columnar.session_table import SessionTable
from ...state.columnar.window_backend import WindowBackend
from ...state.columnar.window_rows import MOST_ROWS, WINDOW_END, WINDOW_START, WindowRows
from ...state.keys.key_groups import KeyGroupRange, key_group_range
from ...state.kinds.aggregates import Aggregate
from ..errors import NoEventTime
from ..operators.aggregation import Aggregation
from ..operators.collector import Collector, OutputTag
from ..operators.lateness import most_late_ms
from .columnar_shape import ColumnarShape, SessionGap
from .local_windows import LocalWindows
from .window_settings import LATE

Table: TypeAlias = PaneTable | SessionTable


class ColumnarWindows(Aggregation):
    """`partials`: the input is what LocalWindows of the same windows, keys and aggregates emit."""

    late_tag: ClassVar[OutputTag] = LATE
    allows_lateness: ClassVar[bool] = True

    MOST_ROWS: ClassVar[int] = MOST_ROWS
    """Of results that are given out at a time."""

    late_records: int = 0
    """How many records were late in this attempt."""

    _state: WindowBackend[Any] | None = None

    def __init__(
        self,
        windows: ColumnarShape,
        keys: Sequence[str],
        aggregates: Mapping[str, Aggregate],
        allowed_lateness_ms: int = 0,
        *,
        partials: bool = False,
    ) -> None:
        super().__init__(keys, aggregates)
        names = [*keys, WINDOW_START, WINDOW_END, *aggregates]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two columns of the result are called {twice[0]!r}: choose another name")
        self._windows, self._lateness_ms = windows, allowed_lateness_ms
        self.takes_partials = partials

    @property
    def has_two_phases(self) -> bool:
        """Whether `in_two_phases` may be called: not of sessions, which may join behind the shuffle only, nor of
        windows with gaps between them, where it is the record's own time that says whether it is late.
        """
        return not isinstance(self._windows, SessionGap) and not self._windows.has_gaps and not self.takes_partials

    def in_two_phases(self) -> tuple[LocalWindows, ColumnarWindows]:
        """Two operators, one before and one after the shuffle, that together do what this one does, but for records in
        the side output `late`.
        """
        assert not isinstance(self._windows, SessionGap), "sessions have one phase"
        merging = ColumnarWindows(self._windows, self._keys, self._aggregates, self._lateness_ms, partials=True)
        return LocalWindows(self._windows, self._keys, self._aggregates, self._lateness_ms), merging

    def _own_states(self) -> tuple[StateDescription, ...]:
        return (self._backend(KeyGroupRange(0, 0), 1).description(self._schema, partials=self.takes_partials),)

    @property
    def keyed_state(self) -> WindowBackend[Any]:
        """What the task snapshots and restores; there once the operator has its context."""
        if self._state is None:
            where = self.context
            groups = key_group_range(where.max_parallelism, where.parallelism, where.subtask_index)
            self._state = self._backend(groups, where.max_parallelism)
        return self._state

    def open(self) -> None:
        if self._schema is not None:
            self.keyed_state.expect(self._schema, partials=self.takes_partials)

    def process_batch(self, batch: pa.RecordBatch, out: Collector) -> None:
        table = self._table(batch.schema)
        times = self.timestamps
        if self.takes_partials:
            taken = table.merge(batch)
        elif times is not None:
            marks = self.split_watermarks
            if marks is not None and isinstance(table, PaneTable):
                late = table.late_by_split(times, marks)
                self.late_records += len(late)
                self.most_late_ms = max(self.most_late_ms, most_late_ms(times[late], marks[late]))
                out.emit_to(LATE, batch.take(pa.array(late)), times[late])
                kept = np.delete(np.arange(len(times)), late)
                batch, times = batch.take(pa.array(kept)), times[kept]
            taken = table.update(batch, times, marks) if isinstance(table, SessionTable) else table.update(batch, times)
        else:
            raise NoEventTime(self.context.name, "the window of a record")
        self.late_records += taken.late_rows
        if taken.late is not None and times is not None:
            self.most_late_ms = max(self.most_late_ms, most_late_ms(times[taken.late], self.watermark))
            out.emit_to(LATE, batch.take(pa.array(taken.late)), times[taken.late])
        for result in taken.results:
            out.emit(result.batch, result.times)

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        (self._schema,) = inputs
        return None if self._schema is None else self._rows(self._schema).result_schema

    def _advance(self, watermark_ms: int, out: Collector) -> bool:
        table: Table | None = self.keyed_state.table
        if table is None:
            return False
        results, more = table.fire(watermark_ms, self.MOST_ROWS)
        for batch, times in results:
            out.emit(batch, times)
        return more

    def _table(self, schema: pa.Schema) -> Any:
        state = self.keyed_state
        if state.table is None:
            state.table_for(schema, partials=self.takes_partials).resume(self.watermark)
        return state.table

    def _rows(self, schema: pa.Schema) -> WindowRows:
        make = WindowRows.of_partials if self.takes_partials else WindowRows.of_input
        return make(self._keys, self._aggregates, schema)

    def _backend(self, groups: KeyGroupRange, max_parallelism: int) -> WindowBackend[Any]:
        described = {**self._windows.described}
        return WindowBackend(self._keys, self._aggregates, described, self._make_table, groups, max_parallelism)

    def _make_table(self, rows: WindowRows) -> Table:
        if isinstance(self._windows, SessionGap):
            return SessionTable(self._windows.gap_ms, rows, self._lateness_ms)
        return PaneTable(self._windows, rows, self._lateness_ms)
