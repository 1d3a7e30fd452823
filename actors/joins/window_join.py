"""WindowJoin: rows with equal keys in the same tumbling window, over columns.

All rows of a window are kept until the watermark has reached its last time; then the window's results are emitted, with
the columns `window_start` and `window_end` (ms, the end is not in it) before all others, and that last time. In an
outer join a row without a match in its window is a result, with nulls. A row is late when its window is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...messages import StateDescription
from ...state.columnar.pane_windows import tumbling_panes
from ...state.columnar.row_columns import RowNumbers
from ...state.columnar.row_store import Times
from ...state.columnar.rows_format import describe_rows
from ..flow.elements import END_OF_TIME, NO_WATERMARK, TimedBatch
from ..operators.collector import Collector
from .joined_columns import How
from .late_records import LATE, CountsLateColumns, of_columns
from .rows_operator import ColumnarJoin

WINDOW_COLUMNS = ("window_start", "window_end")


@dataclass(frozen=True, slots=True)
class TumblingWindows:
    """Windows of this size, one of which starts at the offset."""

    size_ms: int
    offset_ms: int

    @property
    def described(self) -> dict[str, Any]:
        """As windows of aggregations are."""
        return tumbling_panes(self.size_ms, self.offset_ms).described

    def last_times(self, times: Times) -> Times:
        """Of the window of each time: the last time in it."""
        return times - (times - self.offset_ms) % self.size_ms + (self.size_ms - 1)


class WindowJoin(ColumnarJoin, CountsLateColumns):
    """See the module. The time of a kept row is the last one of its window; its mark is 1 if it has had a match."""

    def __init__(
        self, left_keys: Sequence[str], right_keys: Sequence[str], how: How, suffix: str, windows: TumblingWindows
    ) -> None:
        super().__init__(left_keys, right_keys, how, suffix)
        self._windows = windows

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        self.late_tag, self.late_right_tag = map(of_columns, LATE, inputs)
        joined = super().output_schema(*inputs)
        assert joined is not None, "both schemas are known"
        for name in WINDOW_COLUMNS:
            if name in joined.names:
                raise ValueError(f"the results have a column {name!r} of their own: rename the stream's")
        self._window_schema = pa.schema([*(pa.field(name, pa.int64()) for name in WINDOW_COLUMNS), *joined])
        return self._window_schema

    def _own_states(self) -> tuple[StateDescription, ...]:
        return (describe_rows(self._kept, self._windows.described),)

    def open(self) -> None:
        self._next_due = NO_WATERMARK
        """No window ends before. After a restore that is not known."""

    def _take(self, side: int, batch: pa.RecordBatch, out: Collector) -> None:
        last = self._windows.last_times(self._event_times("window_join", side))
        batch, last = self._in_time(batch, last, LATE[side], out)
        if not len(batch):
            return
        self._next_due = min(self._next_due, int(last.min()))
        state = self.keyed_state
        state.tidy()
        state.stores[side].append(batch, state.slots_of(side, batch), last)

    def on_watermark(self, watermark_ms: int, out: Collector) -> None:
        if watermark_ms < self._next_due:
            return
        due: list[RowNumbers] = []
        self._next_due = END_OF_TIME
        for store in self.keyed_state.stores:
            rows = store.live_rows()
            is_due = store.times[rows] <= watermark_ms
            open_until = store.times[rows[~is_due]]
            if len(open_until):
                self._next_due = min(self._next_due, int(open_until.min()))
            due.append(rows[is_due])
        out.emit_each(self._results(*due))

    def _results(self, left: RowNumbers, right: RowNumbers) -> Iterator[TimedBatch]:
        """Of windows that are over, whose rows are forgotten then."""
        lefts, rights = self.keyed_state.stores
        left = left[np.argsort(lefts.times[left], kind="stable")]
        for positions, others in rights.pairs(lefts.slots[left]):
            rows = left[positions]
            together = lefts.times[rows] == rights.times[others]
            rows, others = rows[together], others[together]
            if len(rows):
                lefts.mark(rows, 1)
                rights.mark(others, 1)
                yield self._result(rows, others, lefts.times[rows])
        for side, (store, rows) in enumerate(((lefts, left), (rights, right))):
            alone = rows[store.marks[rows] == 0] if self._outer[side] else rows[:0]
            if len(alone):
                none = np.full(len(alone), -1)
                pair = (none, alone) if side else (alone, none)
                yield self._result(pair[0], pair[1], store.times[alone])
            store.drop(rows)

    def _result(self, left: RowNumbers, right: RowNumbers, last: Times) -> TimedBatch:
        lefts, rights = self.keyed_state.stores
        joined = self._columns.batch(lefts.reader(), left, rights.reader(), right)
        ends = last + 1
        columns = [pa.array(ends - self._windows.size_ms), pa.array(ends), *joined.columns]
        return TimedBatch(pa.RecordBatch.from_arrays(columns, schema=self._window_schema), last)
