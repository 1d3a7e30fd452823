"""Deduplicate: of the records of a key only the first goes on.

With `within`, a record is a duplicate of one that went on if both have the same key and their times are less than that
apart; so after a while the next one goes on, and keys need not be remembered forever. By event time it is the records'
times that count, in whatever order they come, and a record that comes late goes to the side output: what it could be a
duplicate of may be forgotten. By processing time it is when they come. Flink: ProcTimeDeduplicateKeepFirstRowFunction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.columnar.row_store import RowStore, Times
from ...state.columnar.rows_format import KeptRows
from ...state.keys.word_table import Slots
from ..flow.records import conform
from ..operators.collector import Collector
from .joined_columns import key_type
from .late_records import LATE, CountsLateColumns, of_columns
from .rows_operator import RowsOperator, known
from .time_to_live import TimeToLive

_FEWEST_ROWS = 1 << 16

_Places: TypeAlias = npt.NDArray[np.int64]


class Deduplicate(RowsOperator, CountsLateColumns):
    """Over columns. Keeps the keys and times of the records that went on."""

    _schema: pa.Schema

    def __init__(self, keys: Sequence[str], within: TimeToLive) -> None:
        self._keys = tuple(keys)
        self.lifetime = within

    def _rules(self) -> dict[str, str]:
        return {"records count": self.lifetime.rule}

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        self._schema = known(inputs[0])
        self.late_tag = of_columns(LATE[0], self._schema)
        columns = pa.schema([pa.field(name, key_type(self._schema, name)) for name in self._keys])
        self._kept = (KeptRows(self._keys, columns),)
        return self._schema

    def open(self) -> None:
        self._look_at = _FEWEST_ROWS

    def process_batch(self, batch: pa.RecordBatch, out: Collector) -> None:
        batch, times = conform(batch, self._schema), self.timestamps
        if self.lifetime.goes_by_event_time:
            times = self._event_times("deduplicate within a time by event time")
            batch, times = self._in_time(batch, times, LATE[0], out)
        if not len(batch):
            return
        state = self.keyed_state
        (store,) = state.stores
        self._forget(store)
        state.tidy()
        keys = batch.select(list(self._keys))
        slots = state.slots_of(0, keys)
        since_ms = self._since(times, len(batch))
        going_on = self._first(store, slots, since_ms)
        kept = keys.take(pa.array(going_on))
        store.append(kept, slots[going_on], since_ms[going_on])
        out.emit(batch.take(pa.array(going_on)), None if times is None else times[going_on])

    def on_watermark(self, watermark_ms: int, out: Collector) -> None:
        if self.lifetime.goes_by_event_time:
            self._forget(self.keyed_state.stores[0])

    def _since(self, times: Times | None, rows: int) -> Times:
        """The times that say which records are duplicates."""
        if self.lifetime.ttl_ms is None:
            return np.zeros(rows, np.int64)
        if self.lifetime.domain == "event":
            assert times is not None, "asked for before"
            return times
        return np.full(rows, self.context.clock.wall_ms(), np.int64)

    def _first(self, store: RowStore, slots: Slots, times: Times) -> _Places:
        """The places of the records that are no duplicates, in order."""
        positions, rows = store.all_pairs(slots)
        left = np.ones(len(slots), np.bool_)
        left[positions[self._are_near(times[positions], store.times[rows])]] = False
        places = np.flatnonzero(left)
        found = [np.empty(0, np.int64)]
        while len(places):
            # The first of each key goes on, and what is a duplicate of it does not; then the first of those left.
            _, begins, inverse = np.unique(slots[places], return_index=True, return_inverse=True)
            firsts = places[begins]
            found.append(firsts)
            places = places[~self._are_near(times[places], times[firsts[inverse]])]
        return np.sort(np.concatenate(found))

    def _are_near(self, times: Times, others: Times) -> npt.NDArray[np.bool_]:
        if self.lifetime.ttl_ms is None:
            return np.ones(len(times), np.bool_)
        near: npt.NDArray[np.bool_] = np.abs(times - others) < self.lifetime.ttl_ms
        return near

    def _forget(self, store: RowStore) -> None:
        """Records that nothing which may still come is a duplicate of, once there are twice as many as there were."""
        if self.lifetime.ttl_ms is None or store.live_count < self._look_at:
            return
        now_ms = self.watermark if self.lifetime.domain == "event" else self.context.clock.wall_ms()
        rows = store.live_rows()
        store.drop(rows[self.lifetime.is_over(store.times[rows], now_ms)])
        self._look_at = max(_FEWEST_ROWS, 2 * store.live_count)
