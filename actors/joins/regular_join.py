"""RegularJoin: every row of one stream with every row of the other that has the same key, whenever they come.

An inner join only adds results. A left join gives a row that has no match yet at once, with nulls, as "+I"; when its
first match comes that is taken back with "-D", and the match is "+I". So there is a column `kind`, and the results are
the rows that are left when all changes have been made. Rows are kept until their TTL is over; a row that had no match
by then stays a result. Flink: StreamingJoinOperator, without retractions on its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.columnar.row_columns import RowNumbers
from ...state.columnar.row_store import RowReader, RowStore, Times
from ..flow.changelog import DELETE, INSERT, KINDS, Changelog
from ..flow.elements import TimedBatch
from ..operators.collector import Collector
from .joined_columns import How
from .rows_operator import ColumnarJoin
from .time_to_live import TimeToLive

_MATCHED = 1
"""In a mark: the row has had a match. The rest of the mark is when it came, if processing time counts."""

_FEWEST_ROWS = 1 << 16

Result: TypeAlias = "pa.RecordBatch | TimedBatch"


class RegularJoin(ColumnarJoin):
    """Over columns. See the module."""

    def __init__(
        self, left_keys: Sequence[str], right_keys: Sequence[str], how: How, suffix: str, ttl: TimeToLive
    ) -> None:
        super().__init__(left_keys, right_keys, how, suffix)
        self.lifetime = ttl

    def _rules(self) -> dict[str, str]:
        return {"how": self._how, "rows live": self.lifetime.rule}

    _ended: frozenset[int] = frozenset()
    """In rounds of a loop: sides of which nothing comes any more, so rows of the other one wait for nothing."""

    @property
    def _changelog(self) -> Changelog | None:
        """A row that has a match in the end was a result by itself before, as often as it came: not more often than
        there are results of it in the end.
        """
        return Changelog(at_once=1) if any(self._outer) else None

    def open(self) -> None:
        self._now_ms = 0
        self._look_at = [_FEWEST_ROWS, _FEWEST_ROWS]

    def _take(self, side: int, batch: pa.RecordBatch, out: Collector) -> None:
        state = self.keyed_state
        if 1 - side in self._ended:
            self._forget(side)
        state.tidy()
        times = self._event_times("a TTL by event time", side) if self.lifetime.goes_by_event_time else self.timestamps
        is_timed = times is not None
        if times is None:
            times = np.zeros(len(batch), np.int64)
        if self.lifetime.ttl_ms is not None:
            self._now_ms = self.watermark if self.lifetime.domain == "event" else self.context.clock.wall_ms()
            self._remove_expired()
        slots = state.slots_of(side, batch)
        first = state.stores[side].append(batch, slots, times, max(self._now_ms, 0) << 1)
        out.emit_each(self._results(side, first, slots, is_timed))

    def _input_ended(self, input_index: int) -> None:
        self._ended |= {input_index}
        self._forget(1 - input_index)

    def _forget(self, side: int) -> None:
        self.keyed_state.stores[side].clear()

    def _results(self, side: int, first: int, slots: RowNumbers, is_timed: bool) -> Iterator[Result]:
        own, other = self.keyed_state.stores[side], self.keyed_state.stores[1 - side]
        readers = (own.reader(), other.reader())
        for positions, rows in other.pairs(slots):
            if self.lifetime.ttl_ms is not None:
                alive = ~self._is_over(other, rows)
                if self.lifetime.domain == "event":
                    alive &= self.lifetime.are_near(own.times[positions + first], other.times[rows])
                positions, rows = positions[alive], rows[alive]
            yield from self._matches(side, readers, positions + first, rows, is_timed)
        if self._outer[side]:
            new = np.arange(first, first + len(slots))
            alone = new[own.marks[new] & _MATCHED == 0]
            if len(alone):
                yield self._result(side, readers, alone, np.full(len(alone), -1), INSERT, own.times[alone], is_timed)

    def _matches(
        self, side: int, readers: tuple[RowReader, RowReader], rows: RowNumbers, others: RowNumbers, is_timed: bool
    ) -> Iterator[Result]:
        """Pairs, and before them the rows of the other side that are not without a match any more."""
        if not len(rows):
            return
        own, other = self.keyed_state.stores[side], self.keyed_state.stores[1 - side]
        times = np.maximum(own.times[rows], other.times[others])
        if self._outer[1 - side]:
            unmatched = np.flatnonzero(other.marks[others] & _MATCHED == 0)
            alone, places = np.unique(others[unmatched], return_index=True)
            if len(alone):
                at = times[unmatched[places]]
                yield self._result(side, readers, np.full(len(alone), -1), alone, DELETE, at, is_timed)
        if any(self._outer):
            own.mark(rows, own.marks[rows] | _MATCHED)
            other.mark(others, other.marks[others] | _MATCHED)
        yield self._result(side, readers, rows, others, INSERT, times, is_timed)

    def _result(
        self,
        side: int,
        readers: tuple[RowReader, RowReader],
        rows: RowNumbers,
        others: RowNumbers,
        kind: str,
        times: Times,
        is_timed: bool,
    ) -> Result:
        left, right = (rows, others) if side == 0 else (others, rows)
        kinds = np.full(len(rows), KINDS.index(kind), np.int8) if any(self._outer) else None
        batch = self._columns.batch(readers[side], left, readers[1 - side], right, kinds)
        return TimedBatch(batch, times) if is_timed else batch

    def _is_over(self, store: RowStore, rows: RowNumbers) -> npt.NDArray[np.bool_]:
        since_ms = store.times[rows] if self.lifetime.domain == "event" else store.marks[rows] >> 1
        return self.lifetime.is_over(since_ms, self._now_ms)

    def _remove_expired(self) -> None:
        """Look for rows whose life is over, whenever a side has twice the rows that were alive the last time."""
        for side, store in enumerate(self.keyed_state.stores):
            if store.live_count >= self._look_at[side]:
                rows = store.live_rows()
                store.drop(rows[self._is_over(store, rows)])
                self._look_at[side] = max(_FEWEST_ROWS, 2 * store.live_count)
