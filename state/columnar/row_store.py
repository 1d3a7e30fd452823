"""RowStore: rows of Arrow batches that are kept by key, and found again by key, many at a time.

A row has a number, 0, 1, 2, ... as rows come; the slot of its key; a time; and a mark, a number that its owner may
change. The rows of a key are a chain from the newest to the oldest. A row that is dropped stays where it is, unseen,
until `compact` gives all others new numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..backends.run_ledger import RunLedger
from ..columns.column_values import plain_type
from ..keys.word_table import Slots
from .row_columns import ColumnView, Growing, RowNumbers, row_column, view_of

Times: TypeAlias = npt.NDArray[np.int64]
Positions: TypeAlias = npt.NDArray[np.int64]
Marks: TypeAlias = "npt.NDArray[np.int64] | int"
"""One for each row, or the same for all."""

_SORTED_AS_WORDS = 1 << 20
"""Up to this number of rows a slot and a position fit into one word, and words are sorted several times as quickly."""

_FOLLOWED = 64
"""Chains are followed so far, all keys of a batch at a time; the rest of longer ones is looked for in all rows."""

PAIRS_AT_A_TIME = 1 << 17


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """As rows of such batches are kept: without dictionaries."""
    return pa.schema([field.with_type(plain_type(field.type)) for field in schema])


class RowStore:
    """The rows of one side of a join. Owned by its task's thread; a FrozenRows may be read on another."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = plain_schema(schema)
        """Of the rows."""
        self.changes: RunLedger | None = None
        """Notes which rows change, by number, where increments are wanted."""
        self.clear()

    def clear(self) -> None:
        """Forget all rows. Whoever reads them on another thread has those that there were."""
        if self.changes is not None:
            self.changes.start_over()
        self._columns = [row_column(field.type) for field in self.schema]
        self._slots, self._before = Growing(np.int64), Growing(np.int64)
        self._times, self._marks, self._live = Growing(np.int64), Growing(np.int64), Growing(np.bool_)
        self._newest = np.empty(0, np.int64)
        """By slot: the number of its newest row, or -1."""
        self._per_slot = np.empty(0, np.int64)
        """By slot: how many rows its chain has."""
        self.dropped = 0
        self._sorted: tuple[RowNumbers, RowNumbers] | None = None
        """The rows by slot, and where those of each slot begin; None: not known, or some have come since."""
        self._scanned = 0
        """How many rows there were when long chains were last looked for in all of them."""

    def __len__(self) -> int:
        """How many rows there are, with those dropped."""
        return self._slots.count

    @property
    def live_count(self) -> int:
        return len(self) - self.dropped

    @property
    def slots(self) -> Slots:
        """By row."""
        return self._slots.filled

    @property
    def times(self) -> Times:
        """By row."""
        return self._times.filled

    @property
    def marks(self) -> npt.NDArray[np.int64]:
        """By row."""
        return self._marks.filled

    @property
    def size_bytes(self) -> int:
        return sum(column.size_bytes for column in self._columns)

    def append(self, batch: pa.RecordBatch, slots: Slots, times: Times, marks: Marks = 0) -> int:
        """Add rows, in order; returns the number of the first. The batch has the store's columns."""
        first, number = len(self), len(slots)
        self._sorted = None
        for column, values in zip(self._columns, batch.columns, strict=True):
            column.append(values)
        self._slots.append(slots)
        self._times.append(times)
        self._marks.extend(number)[:] = marks
        self._live.extend(number)[:] = True
        if number:
            self._link(slots, first)
            self._changed(slice(first, first + number), number)
        return first

    def mark(self, rows: RowNumbers, marks: Marks) -> None:
        """Give these rows other marks."""
        differs = self.marks[rows] != marks
        if differs.any():
            # Whoever looks at `_marks` on another thread has a copy.
            self.marks[rows] = marks
            changed = rows[differs]
            self._changed(changed, len(changed))

    def _changed(self, rows: RowNumbers | slice, number: int) -> None:
        if self.changes is not None:
            self.changes.changed(rows, number, len(self))

    def pairs(self, slots: Slots) -> Iterator[tuple[Positions, RowNumbers]]:
        """Each of these slots, by its position, with each of its rows. They come in parts of about PAIRS_AT_A_TIME, but
        all pairs of one position are in one part. In which order they stand in a part is not defined.
        """
        if not len(slots) or not self.live_count:
            return
        known = np.where(slots < len(self._newest), slots, -1)
        counts = np.where(known >= 0, self._per_slot[known], 0)
        start = 0
        while start < len(slots):
            ends = np.cumsum(counts[start:])
            end = start + max(1, int(np.searchsorted(ends, PAIRS_AT_A_TIME, "right")))
            positions, rows = self._chains(known[start:end])
            if len(rows):
                yield positions + start, rows
            start = end

    def all_pairs(self, slots: Slots) -> tuple[Positions, RowNumbers]:
        """All of them at once."""
        parts = list(self.pairs(slots))
        if len(parts) == 1:
            return parts[0]
        empty = np.empty(0, np.int64)
        return (
            np.concatenate([empty, *(positions for positions, _ in parts)]),
            np.concatenate([empty, *(rows for _, rows in parts)]),
        )

    def rows_of(self, slots: Slots) -> RowNumbers:
        """The rows of these slots, which are all different, from the oldest to the newest."""
        return np.sort(self.all_pairs(slots)[1])

    def live_rows(self) -> RowNumbers:
        return np.flatnonzero(self._live.filled)

    def drop(self, rows: RowNumbers) -> None:
        """These rows, all different and none dropped already, are not seen any more."""
        # Whoever looks at `_live` on another thread has a copy.
        self._live.filled[rows] = False
        self.dropped += len(rows)
        self._changed(rows, len(rows))

    def reader(self) -> RowReader:
        """The columns of the rows that there are now."""
        return RowReader(self.schema, [column.view() for column in self._columns])

    def frozen(self, some: RowNumbers | None = None) -> FrozenRows:
        """What a snapshot needs of the rows as they are now: of all, or of some."""
        if some is None:
            rows, dropped = self.live_rows(), np.empty(0, np.int64)
        else:
            is_live = self._live.filled[some]
            rows, dropped = some[is_live], some[~is_live]
        return FrozenRows(self.reader(), rows, dropped, self.slots, self.times, self.marks[rows])

    def compact(self) -> None:
        """Forget dropped rows; all others get new numbers, in their order."""
        rows = self.live_rows()
        batch, slots = self.reader().take(rows), self.slots[rows]
        times, marks = self.times[rows], self.marks[rows]
        self.clear()
        self.append(batch, slots, times, marks)

    def relabel(self, slots: Slots) -> None:
        """Keys have other slots now: `slots` by old slot."""
        moved = Growing(np.int64)  # a snapshot may be reading the old ones
        moved.append(slots[self.slots])
        self._slots = moved
        self._newest, self._per_slot = np.empty(0, np.int64), np.empty(0, np.int64)
        self._sorted = None
        if len(self):
            self._link(self.slots, 0)

    def _link(self, slots: Slots, first: int) -> None:
        """Put rows at the head of their chains; the first has number `first`, and none is linked yet."""
        number = len(slots)
        self._make_room(int(slots.max()) + 1)
        if number < _SORTED_AS_WORDS:
            words = np.sort(slots << 20 | np.arange(number))
            order, grouped = words & (_SORTED_AS_WORDS - 1), words >> 20
        else:
            order = np.argsort(slots, kind="stable")
            grouped = slots[order]
        starts = np.empty(number, np.bool_)
        starts[0] = True
        np.not_equal(grouped[1:], grouped[:-1], out=starts[1:])
        distinct = grouped[starts]
        before = np.empty(number, np.int64)
        before[1:] = order[:-1] + first
        before[starts] = self._newest[distinct]
        room = self._before.extend(number) if len(self._before.filled) == first else self._before.filled
        room[order] = before
        begins = np.flatnonzero(starts)
        ends = np.append(begins[1:], number)
        self._newest[distinct] = order[ends - 1] + first
        self._per_slot[distinct] += ends - begins

    def _make_room(self, slots: int) -> None:
        if slots > len(self._newest):
            more = max(slots, 2 * len(self._newest)) - len(self._newest)
            self._newest = np.concatenate((self._newest, np.full(more, -1, np.int64)))
            self._per_slot = np.concatenate((self._per_slot, np.zeros(more, np.int64)))

    def _chains(self, slots: Slots) -> tuple[Positions, RowNumbers]:
        """Slots with their rows; -1 stands for a slot without rows."""
        positions = np.flatnonzero(slots >= 0)
        if self._sorted is not None:
            return self._seen(*self._from(*self._sorted, slots[positions], positions))
        rows = self._newest[slots[positions]]
        before = self._before.filled
        parts: list[tuple[Positions, RowNumbers]] = []
        while True:
            there = rows >= 0
            if not there.all():
                positions, rows = positions[there], rows[there]
            if not len(rows):
                break
            if len(parts) == _FOLLOWED:
                parts.append(self._rest(slots, positions))
                break
            parts.append((positions, rows))
            rows = before[rows]
        if not parts:
            return positions, rows
        if len(parts) > 1:
            positions = np.concatenate([each for each, _ in parts])
            rows = np.concatenate([each for _, each in parts])
        else:
            positions, rows = parts[0]
        return self._seen(positions, rows)

    def _seen(self, positions: Positions, rows: RowNumbers) -> tuple[Positions, RowNumbers]:
        """Without dropped rows."""
        if not self.dropped:
            return positions, rows
        live = self._live.filled[rows]
        return positions[live], rows[live]

    def _from(
        self, rows: RowNumbers, begins: RowNumbers, slots: Slots, positions: Positions
    ) -> tuple[Positions, RowNumbers]:
        """The same by rows in the order of slots."""
        counts = self._per_slot[slots]
        ends = np.cumsum(counts)
        places = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(begins[slots] - ends + counts, counts)
        return np.repeat(positions, counts), rows[places]

    def _rest(self, slots: Slots, positions: Positions) -> tuple[Positions, RowNumbers]:
        """The rows of chains of which `_FOLLOWED` were found. When no row has come since the last time, as to one side
        that does not change any more, all are sorted, and the next pairs follow no chains.
        """
        if self._scanned == len(self):
            self._sorted = np.argsort(self.slots, kind="stable"), np.cumsum(self._per_slot) - self._per_slot
        self._scanned = len(self)
        wanted = slots[positions]
        is_wanted = np.zeros(len(self._newest), np.bool_)
        is_wanted[wanted] = True
        found = np.flatnonzero(is_wanted[self.slots])
        owners = self.slots[found]
        order = np.argsort(owners, kind="stable")
        found, owners = found[order], owners[order]
        starts = np.searchsorted(owners, wanted, "left")
        # In a group the newest come last, and those were found.
        counts = np.searchsorted(owners, wanted, "right") - starts - _FOLLOWED
        ends = np.cumsum(counts)
        places = np.arange(int(ends[-1])) + np.repeat(starts - ends + counts, counts)
        return np.repeat(positions, counts), found[places]


class RowReader:
    """The rows that a store had at one moment; those added later are not seen."""

    def __init__(self, schema: pa.Schema, views: Sequence[ColumnView]) -> None:
        self.schema = schema
        self._views = views

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> RowReader:
        """Of the rows of a batch, by their place."""
        return cls(plain_schema(batch.schema), [view_of(column) for column in batch.columns])

    def columns(self, rows: RowNumbers, places: Sequence[int]) -> list[pa.Array]:
        """These columns of these rows; nulls for row -1."""
        return [self._views[place].take(rows) for place in places]

    def take(self, rows: RowNumbers) -> pa.RecordBatch:
        """All columns of these rows."""
        return pa.RecordBatch.from_arrays([view.take(rows) for view in self._views], schema=self.schema)


class FrozenRows:
    """Rows of a store at one moment, for a snapshot on any thread."""

    def __init__(
        self,
        reader: RowReader,
        rows: RowNumbers,
        dropped: RowNumbers,
        slots: Slots,
        times: Times,
        marks: npt.NDArray[np.int64],
    ) -> None:
        self.rows = rows
        """The numbers of those that are not dropped."""
        self.dropped = dropped
        """Those that are, and were asked for."""
        self._reader, self._slots, self._times, self._marks = reader, slots, times, marks

    @property
    def slots(self) -> Slots:
        """Of each of these rows."""
        return self._slots[self.rows]

    @property
    def dropped_slots(self) -> Slots:
        return self._slots[self.dropped]

    def take(self, places: Positions) -> tuple[list[pa.Array], Times, npt.NDArray[np.int64]]:
        """Columns, times and marks of the rows at these places in `rows`."""
        rows = self.rows[places]
        columns = self._reader.take(rows).columns
        return columns, self._times[rows], self._marks[places]
