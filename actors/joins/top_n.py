"""TopN: the first n rows of each key by an order, as a changelog that is right after every batch.

A row of the result has a column `kind` before its own, and its rank, 1 to n, behind them, if that is wanted. A row that
gets among the first is "+I"; one that moves is "-U" with its rank before and "+U" with the new one; one that falls out
is "-D". What a batch takes back comes before what it adds, and what would come and go within a batch does not show. Of
equal rows the one that came first has the better rank, or with `newest_first` the one that came last. Flink:
AppendOnlyTopNFunction; with n = 1, newest first and without a rank, RowTimeDeduplicateFunction that keeps the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.columnar.row_columns import RowNumbers
from ...state.columnar.row_store import RowStore, Times, plain_schema
from ...state.columnar.rows_format import KeptRows
from ...state.keys.word_table import Slots
from ..flow.changelog import AFTER, BEFORE, DELETE, INSERT, KIND, KINDS, Changelog
from ..flow.elements import NO_WATERMARK
from ..flow.records import conform
from ..operators.collector import Collector
from .joined_columns import key_type, kinds_column
from .rows_operator import RowsOperator, known
from .sort_order import SortKeys, SortOrder, are_before, concatenated, order_rule, taken

_Ranks: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TopRows:
    """Which rows: the first `n` by these columns. `rank`: the column that says which of them it is, if there is one."""

    n: int
    by: tuple[str, ...]
    descending: tuple[bool, ...]
    rank: str | None = "rank"
    newest_first: bool = False

    @property
    def rules(self) -> dict[str, str]:
        return {
            "n": str(self.n),
            "order": "newest first" if self.newest_first else order_rule(self.by, self.descending),
        }


class TopN(RowsOperator):
    """Over columns. Keeps the first n rows of each key; the mark of a row is its rank."""

    _schema: pa.Schema
    _result: pa.Schema
    _order: SortOrder

    def __init__(self, keys: Sequence[str], top: TopRows) -> None:
        self._keys = tuple(keys)
        self._top = top

    def _rules(self) -> dict[str, str]:
        return self._top.rules

    @property
    def _changelog(self) -> Changelog:
        return Changelog(at_once=1 if self._top.rank else self._top.n)

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        self._schema = known(inputs[0])
        for name in self._keys:
            key_type(self._schema, name)
        self._kept = (KeptRows(self._keys, self._schema),)
        self._order = SortOrder(self._top.by, self._top.descending, self._schema)
        added = [KIND, *([self._top.rank] if self._top.rank else [])]
        for name in added:
            if name in self._schema.names or len(set(added)) < len(added):
                raise ValueError(f"the results have a column {name!r} of their own: rename the stream's")
        rank = [pa.field(self._top.rank, pa.int64())] if self._top.rank else []
        self._result = pa.schema([pa.field(KIND, pa.string()), *plain_schema(self._schema), *rank])
        return self._result

    def open(self) -> None:
        self._find_places()

    def process_batch(self, batch: pa.RecordBatch, out: Collector) -> None:
        batch = conform(batch, self._schema)
        is_timed = self.timestamps is not None
        times = self.timestamps if self.timestamps is not None else np.zeros(len(batch), np.int64)
        state = self.keyed_state
        (store,) = state.stores
        count = len(store)
        state.tidy()
        if len(store) != count:
            self._find_places()
        slots = state.slots_of(0, batch)
        self._make_room(int(slots.max()) + 1)
        keys = self._sort_keys(batch, times)
        places = self._candidates(store, slots, keys)
        if len(places):
            rows = batch.take(pa.array(places))
            self._rank(store, rows, slots[places], taken(keys, places), times[places], is_timed, out)

    def _sort_keys(self, batch: pa.RecordBatch, times: Times) -> SortKeys:
        keys = self._order.keys([batch.column(place) for place in self._order.places])
        return keys if self._top.by else [~times]

    def _stored_keys(self, store: RowStore, rows: RowNumbers) -> SortKeys:
        keys = self._order.keys(store.reader().columns(rows, self._order.places))
        return keys if self._top.by else [~store.times[rows]]

    def _candidates(self, store: RowStore, slots: Slots, keys: SortKeys) -> _Ranks:
        """The places of rows that are not surely behind the n-th of their key."""
        last = self._places[slots, -1]
        is_full = np.flatnonzero(last >= 0)
        if not len(is_full):
            return np.arange(len(slots))
        better = are_before(
            taken(keys, is_full), self._stored_keys(store, last[is_full]), or_equal=self._top.newest_first
        )
        left = np.ones(len(slots), np.bool_)
        left[is_full[~better]] = False
        return np.flatnonzero(left)

    def _rank(
        self,
        store: RowStore,
        rows: pa.RecordBatch,
        slots: Slots,
        keys: SortKeys,
        times: Times,
        is_timed: bool,
        out: Collector,
    ) -> None:
        """Rank these rows and those that are kept of their keys."""
        held = self._places[np.unique(slots)].ravel()
        held = held[held >= 0]
        number = len(held)
        all_slots = np.concatenate((store.slots[held], slots))
        all_keys = concatenated(self._stored_keys(store, held), keys)
        came = np.arange(len(all_slots))
        order = np.lexsort((-came if self._top.newest_first else came, *reversed(all_keys), all_slots))
        grouped = all_slots[order]
        starts = np.flatnonzero(np.concatenate(([True], grouped[1:] != grouped[:-1])))
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order)))) + 1
        is_in = ranks <= self._top.n
        old, before = store.marks[held].copy(), ranks[:number]
        stays = is_in[:number]
        moved = stays & (old != before) if self._top.rank else np.zeros(number, np.bool_)
        new = np.flatnonzero(is_in[number:])
        first = store.append(rows.take(pa.array(new)), slots[new], times[new])
        added = np.arange(first, first + len(new))
        self._places[np.unique(slots)] = -1
        kept = np.concatenate((held[stays], added))
        kept_ranks = np.concatenate((before[stays], ranks[number:][new]))
        store.mark(kept, kept_ranks)
        self._places[store.slots[kept], kept_ranks - 1] = kept
        kinds = [(DELETE, held[~stays], old[~stays]), (BEFORE, held[moved], old[moved])]
        kinds += [(AFTER, held[moved], before[moved]), (INSERT, added, ranks[number:][new])]
        self._emit(store, kinds, _Latest(slots, times) if is_timed else None, out)
        store.drop(held[~stays])

    def _emit(
        self, store: RowStore, changes: list[tuple[str, RowNumbers, _Ranks]], latest: _Latest | None, out: Collector
    ) -> None:
        rows = np.concatenate([each for _, each, _ in changes])
        if not len(rows):
            return
        codes = np.concatenate([np.full(len(each), KINDS.index(kind), np.int8) for kind, each, _ in changes])
        columns = [kinds_column(codes), *store.reader().take(rows).columns]
        if self._top.rank:
            columns.append(pa.array(np.concatenate([ranks for _, _, ranks in changes])))
        batch = pa.RecordBatch.from_arrays(columns, schema=self._result)
        # A row that goes or moves does so with the one that makes it: its own time may be long past.
        out.emit(batch, None if latest is None else latest.times_of(store.slots[rows]))

    def _find_places(self) -> None:
        """The rows of each key by rank: they are found by that, and not by their chains, which have dropped rows."""
        (store,) = self.keyed_state.stores
        rows = store.live_rows()
        slots = store.slots[rows]
        self._places = np.full((int(slots.max()) + 1 if len(rows) else 0, self._top.n), -1)
        self._places[slots, store.marks[rows] - 1] = rows

    def _make_room(self, slots: int) -> None:
        if slots > len(self._places):
            more = max(slots, 2 * len(self._places)) - len(self._places)
            self._places = np.concatenate((self._places, np.full((more, self._top.n), -1)))


class _Latest:
    """The latest time of new rows by key."""

    def __init__(self, slots: Slots, times: Times) -> None:
        self._slots, inverse = np.unique(slots, return_inverse=True)
        self._times = np.full(len(self._slots), NO_WATERMARK)
        np.maximum.at(self._times, inverse, times)

    def times_of(self, slots: Slots) -> Times:
        return self._times[np.searchsorted(self._slots, slots)]
