"""TemporalJoin: each row of the left stream with the version of the right table that was valid at the row's time.

The right stream is a table with versions: a row is valid from its time until that of the next row of its key. A left
row waits until the watermark has reached its time, so that all versions from before are there. Then it is emitted, with
its own time, and forgotten. Of each key the newest version at or before the watermark is kept, and those after it. Of
two versions of one time the one that came last counts. A version that comes late is valid for the rows that still
wait; a late row of the left stream goes to the side output. Flink: TemporalRowTimeJoinOperator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.columnar.row_columns import RowNumbers
from ...state.columnar.row_store import RowStore
from ..flow.elements import END_OF_TIME, NO_WATERMARK
from ..operators.collector import Collector
from .late_records import LATE, CountsLateColumns, of_columns
from .rows_operator import ColumnarJoin

_FEWEST_ROWS = 1 << 16


class TemporalJoin(ColumnarJoin, CountsLateColumns):
    """Over columns. See the module."""

    def __init__(
        self, left_keys: Sequence[str], right_keys: Sequence[str], how: Literal["inner", "left"], suffix: str
    ) -> None:
        super().__init__(left_keys, right_keys, how, suffix)

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        self.late_tag = of_columns(LATE[0], inputs[0])
        return super().output_schema(*inputs)

    def open(self) -> None:
        self._look_at = _FEWEST_ROWS
        self._next_due = NO_WATERMARK
        """No row waits for less. After a restore that is not known."""

    def _take(self, side: int, batch: pa.RecordBatch, out: Collector) -> None:
        times = self._event_times("temporal_join", side)
        if side == 0:
            batch, times = self._in_time(batch, times, LATE[0], out)
            if not len(batch):
                return
            self._next_due = min(self._next_due, int(times.min()))
        state = self.keyed_state
        state.tidy()
        state.stores[side].append(batch, state.slots_of(side, batch), times)

    def on_watermark(self, watermark_ms: int, out: Collector) -> None:
        waiting, versions = self.keyed_state.stores
        if watermark_ms >= self._next_due:
            rows = waiting.live_rows()
            is_due = waiting.times[rows] <= watermark_ms
            left = rows[~is_due]
            self._next_due = int(waiting.times[left].min()) if len(left) else END_OF_TIME
            due = rows[is_due]
            self._emit_valid(due[np.argsort(waiting.times[due], kind="stable")], out)
            waiting.drop(due)
        if versions.live_count >= self._look_at:
            self._remove_old(watermark_ms)

    def _emit_valid(self, rows: RowNumbers, out: Collector) -> None:
        if not len(rows):
            return
        waiting, versions = self.keyed_state.stores
        valid = _valid_versions(waiting, rows, versions)
        if not self._outer[0]:
            rows, valid = rows[valid >= 0], valid[valid >= 0]
        batch = self._columns.batch(waiting.reader(), rows, versions.reader(), valid)
        out.emit(batch, waiting.times[rows])

    def _remove_old(self, watermark_ms: int) -> None:
        """Versions that were followed by another one at or before the watermark."""
        versions = self.keyed_state.stores[1]
        rows = versions.live_rows()
        rows = rows[versions.times[rows] <= watermark_ms]
        rows = rows[np.lexsort((rows, versions.times[rows], versions.slots[rows]))]
        versions.drop(rows[~_are_last(versions.slots[rows])])
        self._look_at = max(_FEWEST_ROWS, 2 * versions.live_count)


def _valid_versions(waiting: RowStore, rows: RowNumbers, versions: RowStore) -> RowNumbers:
    """For each waiting row the newest version of its key that is not newer than it; -1 where there is none. Each
    version is looked at once: all are put in the order of their times, and the last one before a row is its own.
    """
    valid = np.full(len(rows), -1)
    slots = waiting.slots[rows]
    found = versions.all_pairs(np.unique(slots))[1]
    if not len(found):
        return valid
    keys = np.concatenate((versions.slots[found], slots))
    times = np.concatenate((versions.times[found], waiting.times[rows]))
    waits = np.arange(len(keys)) >= len(found)
    order = np.lexsort((np.concatenate((found, rows)), waits, times, keys))
    last = np.maximum.accumulate(np.where(waits[order], -1, np.arange(len(order))))
    at = np.flatnonzero(waits[order])
    at = at[last[at] >= 0]
    row, version = order[at], order[last[at]]
    has_one = keys[row] == keys[version]
    valid[row[has_one] - len(found)] = found[version[has_one]]
    return valid


def _are_last(grouped: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether each is the last of its run of equal numbers."""
    last = np.ones(len(grouped), np.bool_)
    np.not_equal(grouped[1:], grouped[:-1], out=last[:-1])
    return last
