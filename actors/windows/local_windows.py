"""LocalWindows: the first phase of aligned windows, before the shuffle: many rows become one partial per key and pane.

Partials are held back, the more the better, until a watermark reaches the end of the first window that they belong to:
they go before it, so behind the shuffle they are on time whenever their rows were. Those of rows that come later than
that go at once. All go before a barrier, at the end, and when there are many; so there is no state to snapshot. Flink
SQL: LocalSlicingWindowAggOperator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ...messages import CheckpointId
from ...state.columnar.columnar_table import joined_batches
from ...state.columnar.pane_table import PaneTable
from ...state.columnar.pane_windows import PaneWindows
from ...state.columnar.window_rows import WindowRows
from ...state.kinds.aggregates import Aggregate
from ..errors import NoEventTime
from ..flow.elements import END_OF_TIME, Times
from ..operators.aggregation import Aggregation
from ..operators.collector import Collector
from ..operators.lateness import most_late_ms


class LocalWindows(Aggregation):
    """A ColumnarWindows of the same windows, keys and aggregates merges what comes out."""

    MOST_PARTIALS: ClassVar[int] = 1 << 20
    ENOUGH_ROWS: ClassVar[int] = 1 << 17
    """Smaller batches wait for each other: tables are out of the processor's cache by the time the next one comes."""
    MOST_ROWS: ClassVar[int] = 1 << 18
    """Of longer ones a part at a time: what is worked out for each row then lies in memory that was used before."""

    allows_lateness: ClassVar[bool] = True

    _table: PaneTable | None = None

    late_records: int = 0
    """How many records were late in this attempt, by their own split of the source."""

    def __init__(
        self,
        windows: PaneWindows,
        keys: Sequence[str],
        aggregates: Mapping[str, Aggregate],
        allowed_lateness_ms: int = 0,
    ) -> None:
        super().__init__(keys, aggregates)
        self._windows, self._lateness_ms = windows, allowed_lateness_ms
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_times: list[Times] = []
        self._waiting_rows = 0
        self._waiting_end_ms = END_OF_TIME
        """The end of the first window that a waiting row is in."""

    def process_batch(self, batch: pa.RecordBatch, out: Collector) -> None:
        if self.timestamps is None:
            raise NoEventTime(self.context.name, "the window of a record")
        if self._table is None:
            rows = WindowRows.of_input(self._keys, self._aggregates, self._schema or batch.schema)
            self._table = PaneTable(self._windows, rows, self._lateness_ms)
        times = self.timestamps
        if self.split_watermarks is not None:
            late = self._table.late_by_split(times, self.split_watermarks)
            self.late_records += len(late)
            self.most_late_ms = max(self.most_late_ms, most_late_ms(times[late], self.split_watermarks[late]))
            kept = np.delete(np.arange(len(times)), late)
            batch, times = batch.take(pa.array(kept)), times[kept]
            if not len(kept):
                return
        self._waiting.append(self._table.rows.readable(batch))
        self._waiting_times.append(times)
        self._waiting_rows += len(batch)
        first_ms = int(times.min())
        self._waiting_end_ms = min(self._waiting_end_ms, self._table.first_end_of(first_ms))
        if self._waiting_rows >= self.ENOUGH_ROWS:
            self._take_in(self._table)
        self._flush(self.watermark, out)

    def before_barrier(self, checkpoint_id: CheckpointId, out: Collector) -> None:
        self._flush(END_OF_TIME, out)

    def on_end(self, out: Collector) -> None:
        self._flush(END_OF_TIME, out)
        self._table = None

    def _advance(self, watermark_ms: int, out: Collector) -> bool:
        self._flush(watermark_ms, out)
        return False

    def _take_in(self, table: PaneTable) -> None:
        """Aggregate the batches that wait."""
        if self._waiting_rows:
            times = self._waiting_times[0] if len(self._waiting_times) == 1 else np.concatenate(self._waiting_times)
            at = 0
            for batch in joined_batches(self._waiting):
                for start in range(0, len(batch), self.MOST_ROWS):
                    part = batch.slice(start, self.MOST_ROWS)
                    table.update(part, times[at : at + len(part)])
                    at += len(part)
        self._waiting, self._waiting_times = [], []
        self._waiting_rows, self._waiting_end_ms = 0, END_OF_TIME

    def _flush(self, watermark_ms: int, out: Collector) -> None:
        """Emit the partials of windows that this watermark reaches the end of, or all when there are many."""
        table = self._table
        if table is None:
            return
        if self._waiting_end_ms <= watermark_ms + 1:
            self._take_in(table)
        if len(table) > self.MOST_PARTIALS:
            watermark_ms = END_OF_TIME
        if table.first_end() <= watermark_ms + 1:
            out.emit_each(table.take_partials(watermark_ms + 1))

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        (self._schema,) = inputs
        if self._schema is None:
            return None
        rows = WindowRows.of_input(self._keys, self._aggregates, self._schema)
        return PaneTable(self._windows, rows).partial_schema
