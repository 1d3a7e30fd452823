"""IntervalJoin: rows with equal keys whose times are close: left time + lower <= right time <= left time + upper.

A row is kept until no row can come that matches it: the watermark says so. A row that is late when it comes joins
nothing. A result has the later of both times. In an outer join a row without a match is a result, with nulls, once it
is certain that there is none; so results are only ever added. Its time is then the end of its interval, or its own if
that is later, for a result with an older time would be late behind the join. Flink: IntervalJoinOperator, and for outer
joins RowTimeIntervalJoin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...state.columnar.row_columns import RowNumbers
from ...state.columnar.row_store import RowStore, Times
from ..flow.elements import END_OF_TIME, NO_WATERMARK, TimedBatch
from ..operators.collector import Collector
from .joined_columns import How
from .late_records import LATE, CountsLateColumns, of_columns
from .rows_operator import ColumnarJoin

_FEWEST_ROWS = 1 << 16
_FURTHEST_MS = 2**60


@dataclass(frozen=True, slots=True)
class TimeInterval:
    """Right time minus left time, in ms, both bounds included. Raises ValueError."""

    lower_ms: int
    upper_ms: int

    def __post_init__(self) -> None:
        for name, bound in (("lower_ms", self.lower_ms), ("upper_ms", self.upper_ms)):
            if type(bound) is not int or abs(bound) > _FURTHEST_MS:
                raise ValueError(f"{name}: wanted a whole number of ms, found {bound!r}")
        if self.lower_ms > self.upper_ms:
            raise ValueError(
                f"wanted lower_ms at most upper_ms, found {self.lower_ms} and {self.upper_ms}: nothing is between them"
            )

    @property
    def rule(self) -> str:
        return f"from {self.lower_ms} to {self.upper_ms} ms"

    def kept_for(self, side: int) -> int:
        """A row of this side can have matches until the watermark has reached its time and this."""
        return -self.lower_ms if side else self.upper_ms


class IntervalJoin(ColumnarJoin, CountsLateColumns):
    """Over columns. See the module. The mark of a row: 1 if it has had a match."""

    def __init__(
        self, left_keys: Sequence[str], right_keys: Sequence[str], how: How, suffix: str, interval: TimeInterval
    ) -> None:
        super().__init__(left_keys, right_keys, how, suffix)
        self._interval = interval

    def _rules(self) -> dict[str, str]:
        return {"how": self._how, "interval": self._interval.rule}

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        self.late_tag, self.late_right_tag = map(of_columns, LATE, inputs)
        return super().output_schema(*inputs)

    def open(self) -> None:
        self._look_at = [_FEWEST_ROWS, _FEWEST_ROWS]
        self._next_due = [NO_WATERMARK, NO_WATERMARK]
        """Before this no row of the side without a match is due. After a restore that is not known."""

    def _take(self, side: int, batch: pa.RecordBatch, out: Collector) -> None:
        times = self._event_times("interval_join", side)
        batch, times = self._in_time(batch, times, LATE[side], out)
        if not len(batch):
            return
        state = self.keyed_state
        state.tidy()
        slots = state.slots_of(side, batch)
        first = state.stores[side].append(batch, slots, times)
        self._next_due[side] = min(self._next_due[side], int(times.min()) + self._interval.kept_for(side))
        out.emit_each(self._matches(side, first, slots))

    def on_watermark(self, watermark_ms: int, out: Collector) -> None:
        for side, store in enumerate(self.keyed_state.stores):
            is_due = self._outer[side] and watermark_ms >= self._next_due[side]
            if is_due or store.live_count >= self._look_at[side]:
                self._remove_passed(side, store, watermark_ms, out)

    def _matches(self, side: int, first: int, slots: RowNumbers) -> Iterator[TimedBatch]:
        own, other = self.keyed_state.stores[side], self.keyed_state.stores[1 - side]
        stores = (own, other)
        left, right = stores[side].reader(), stores[1 - side].reader()
        for positions, others in other.pairs(slots):
            rows = positions + first
            apart = (other.times[others] - own.times[rows]) * (1 - 2 * side)
            is_match = (apart >= self._interval.lower_ms) & (apart <= self._interval.upper_ms)
            rows, others = rows[is_match], others[is_match]
            if not len(rows):
                continue
            own.mark(rows, 1)
            other.mark(others, 1)
            pair = (rows, others)
            batch = self._columns.batch(left, pair[side], right, pair[1 - side])
            yield TimedBatch(batch, np.maximum(own.times[rows], other.times[others]))

    def _remove_passed(self, side: int, store: RowStore, watermark_ms: int, out: Collector) -> None:
        """Rows that nothing can match any more: those without a match become results in an outer join."""
        rows = store.live_rows()
        until = _later(store.times[rows], self._interval.kept_for(side))
        passed = until <= watermark_ms
        if self._outer[side]:
            alone = passed & (store.marks[rows] == 0)
            if alone.any():
                self._emit_alone(side, rows[alone], np.maximum(store.times[rows[alone]], until[alone]), out)
            waiting = until[~passed & (store.marks[rows] == 0)]
            self._next_due[side] = int(waiting.min()) if len(waiting) else END_OF_TIME
        store.drop(rows[passed])
        self._look_at[side] = max(_FEWEST_ROWS, 2 * store.live_count)

    def _emit_alone(self, side: int, rows: RowNumbers, times: Times, out: Collector) -> None:
        readers = [store.reader() for store in self.keyed_state.stores]
        none = np.full(len(rows), -1)
        left, right = (none, rows) if side else (rows, none)
        out.emit(self._columns.batch(readers[0], left, readers[1], right), times)


def _later(times: Times, by_ms: int) -> Times:
    """Without running over the end of time."""
    return np.clip(times, NO_WATERMARK + _FURTHEST_MS, END_OF_TIME - _FURTHEST_MS) + by_ms
