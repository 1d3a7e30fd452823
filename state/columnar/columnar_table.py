"""ColumnarTable: aggregates per key, kept in NumPy arrays and updated a whole batch at a time.

A KeyIndex turns key columns into slots, and every part of the aggregates has an array by slot. A *partial* is a row of
key and parts: what a snapshot stores, and what a first phase of aggregation sends to the second one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from ..columns.column_values import Numbers, narrowed
from ..columns.numbered_rows import NamedRows
from ..keys.key_index import KeyIndex
from ..keys.word_table import Slots
from ..kinds.aggregates import Aggregate, Part
from .aggregate_columns import AggregateColumns
from .known_rows import KnownRows, SlotRows
from .part_columns import (
    PartColumns,
    RowsOfSlots,
    Values,
    as_slice,
    result_columns,
    result_types,
    value_columns,
)

_PARTIALS_AT_A_TIME = 15 << 13
"""Half of them, and what chance adds, is no more than one batch of a channel."""


class ColumnarTable:
    """The aggregates of all keys seen. Made `for_input` or `for_partials`; types of columns are fixed from then on."""

    def __init__(self, columns: AggregateColumns) -> None:
        self._columns = columns
        self.origin = object()
        """Stands for this table where nothing of it is to be kept."""
        self._index = KeyIndex.of_columns(columns.keys)
        self._parts = PartColumns(columns.parts)
        self._spares: list[dict[Part, Numbers]] = []
        self._last_row: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._touched: npt.NDArray[np.bool_] = np.empty(0, np.bool_)

    @classmethod
    def for_input(cls, keys: Sequence[str], aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> ColumnarTable:
        """An empty table for batches with these columns. Raises ValueError for columns that do not fit."""
        return cls(AggregateColumns.of_input(keys, aggregates, schema))

    @classmethod
    def for_partials(cls, keys: Sequence[str], aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> ColumnarTable:
        """An empty table for partials with these columns. Raises ValueError for a missing column."""
        return cls(AggregateColumns.of_partials(keys, aggregates, schema))

    def __len__(self) -> int:
        """How many keys there are; their slots are 0 .. len - 1."""
        return len(self._index)

    @property
    def partial_schema(self) -> pa.Schema:
        parts = {self._columns.names[part]: kind for part, kind in self._parts.types.items()}
        return pa.schema(list((self._columns.keys | parts).items()))

    @property
    def result_schema(self) -> pa.Schema:
        results = result_types(self._parts.types, self._columns.aggregates)
        return pa.schema(list((self._columns.keys | results).items()))

    def update(self, batch: pa.RecordBatch) -> Slots:
        """Take in rows; returns each row's slot.

        Raises InvalidKey for a null key, and ValueError for a column that is missing or does not fit.
        """
        slots = self._slots_of(batch)
        self._parts.take_in(RowsOfSlots(batch, slots))
        return slots

    def merge(self, partials: pa.RecordBatch) -> Slots:
        """Take in partials; returns each one's slot."""
        slots = self._slots_of(partials)
        self._parts.merge(RowsOfSlots(partials, slots), self._columns.names)
        return slots

    def merge_known(self, rows: KnownRows) -> Slots:
        """Take in partials whose keys their channel knows by number; returns each one's slot."""
        known, found = rows.known, rows.rows
        if isinstance(found, NamedRows):
            slots = self.merge(found.records)
            known.take_in(found, slots, self._index)
            return slots
        if not known.has_types(self._parts.types):
            return self.merge(rows.expanded())
        slots = known.slots(found.numbers, self._index)
        merge = self._parts.merge_once if known.has_keys(self._columns.keys) else self._parts.merge_values
        merge(as_slice(slots), known.values_of(found))
        return slots

    def replace(self, partials: pa.RecordBatch) -> None:
        """Let the keys of these partials, each there once, hold them and nothing of what they held."""
        slots = self._slots_of(partials)
        self._parts.reset(slots)
        self._parts.merge(RowsOfSlots(partials, slots), self._columns.names)

    def distinct(self, slots: Slots) -> Slots:
        """Each of these slots once."""
        rows = np.arange(len(slots))
        self._last_row[slots] = rows
        found: Slots = slots[self._last_row[slots] == rows]
        return found

    def all_slots(self) -> slice:
        """For `results`: in the order in which keys came."""
        return slice(0, len(self))

    def results(self, slots: Slots | slice) -> pa.RecordBatch:
        """A row of keys and aggregates for each slot."""
        columns = result_columns(self._parts.types, self._columns.aggregates.values(), self._parts.at(slots))
        return pa.RecordBatch.from_arrays(self._index.keys(slots) + columns, schema=self.result_schema)

    def partials(self, slots: Slots) -> pa.RecordBatch:
        """A row of keys and parts for each slot."""
        return self.partials_of(slots, self._parts.at(slots))

    def frozen(self) -> FrozenTable:
        """All partials as of now. Slots keep their keys, so only values are copied, into memory that is kept for it."""
        memory, values = self._parts.frozen(len(self), self._spares.pop() if self._spares else {})
        return FrozenTable(self, len(self), memory, values)

    def frozen_rows(self, slots: Slots) -> FrozenRows:
        """The partials of these slots as of now."""
        return FrozenRows(self, slots, self._parts.at(slots))

    def readable(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that `update` reads. Raises InvalidKey for a null key, and ValueError for a missing column."""
        return self._columns.readable(batch)

    def accumulate(self, batches: Sequence[pa.RecordBatch]) -> None:
        """`update` with batches that `readable` returned, for a table that is emptied with `take_partials`."""
        for batch in joined_batches(batches):
            slots = self.update(batch)
            if self._parts.row_counts() is None:
                self._touched = _grown(self._touched, len(self))
                self._touched[slots] = True

    def take_partials(self) -> Iterator[pa.RecordBatch]:
        """The partials of all that was accumulated since the last call, each key once. Keys keep their slots.

        They come in batches that fit in the processor's cache, to be taken before more is accumulated.
        """
        return (rows.records() for rows in self.take_slot_rows())

    def take_slot_rows(self) -> Iterator[SlotRows]:
        """The same by slot, each to be used up, or `kept`, before the next one is made. Keys that come for the first
        time follow all that were there the last time.
        """
        counts = self._parts.row_counts()
        marks = (self._touched if counts is None else counts)[: len(self)]
        for slots in _pieces(marks):
            if isinstance(slots, slice):
                yield SlotRows(self, slots, self._parts.view(slots), is_view=True)
            else:
                yield SlotRows(self, slots, self._parts.at(slots))
            self._parts.reset(slots)
        self._touched[: len(self)] = False

    def partials_of(self, slots: Slots | slice, values: Values) -> pa.RecordBatch:
        """A row of keys and parts for each slot, whose values were these."""
        return self._partials(values, self._index.keys(slots))

    def _partials(self, values: Values, keys: Sequence[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [*keys, *value_columns(self._parts.types, values)], schema=self.partial_schema
        )

    def _slots_of(self, batch: pa.RecordBatch) -> Slots:
        slots = self._index.slots_of(self._columns.key_columns(batch))
        self._parts.reserve(len(self._index))
        if len(self._index) > len(self._last_row):
            self._last_row = np.empty(2 * len(self._index), np.int64)
        return slots


class FrozenTable:
    """The partials of a table at one moment, for any thread while the table goes on, until they are given back."""

    def __init__(self, table: ColumnarTable, count: int, memory: dict[Part, Numbers], values: Values) -> None:
        self._table, self._count, self._memory, self._values = table, count, memory, values
        self.schema = table.partial_schema

    def __len__(self) -> int:
        return self._count

    def keys(self, slots: Slots) -> list[pa.Array]:
        """The key columns of these slots."""
        return self._table._index.keys(slots)

    def columns(self) -> list[pa.Array]:
        """The columns of the parts, by slot, and as a snapshot stores them: narrowed. The same one for those that hold
        the same.
        """
        made: dict[tuple[int, pa.DataType], pa.Array] = {}
        types = self._table._parts.types
        values = {part: each[: self._count] for part, each in self._values.items()}
        found: list[pa.Array] = []
        for part, kind in types.items():
            at = id(self._values[part]), kind
            if not part.adds_up or at not in made:
                (column,) = value_columns({part: kind}, values)
                made[at] = narrowed(column)
            found.append(made[at])
        return found

    def give_back(self) -> None:
        """The table may use the memory again, which columns may be views of."""
        self._table._spares.append(self._memory)


class FrozenRows:
    """The partials of some slots at one moment, for use on any thread while the table goes on."""

    def __init__(self, table: ColumnarTable, slots: Slots, values: Values) -> None:
        self._table, self.slots, self._values = table, slots, values

    def keys(self, slots: Slots) -> list[pa.Array]:
        """The key columns of any slots that were there."""
        return self._table._index.keys(slots)

    def partials(self, order: Slots) -> pa.RecordBatch:
        """In this order of the rows."""
        by_array = {id(values): values.take(order) for values in self._values.values()}
        values = {part: by_array[id(values)] for part, values in self._values.items()}
        return self._table._partials(values, self.keys(self.slots[order]))


def _pieces(marks: npt.NDArray[Any]) -> Iterator[Slots | slice]:
    """Where these are not 0."""
    marks = marks > 0
    if marks.all():
        for start in range(0, len(marks), _PARTIALS_AT_A_TIME):
            yield slice(start, min(start + _PARTIALS_AT_A_TIME, len(marks)))
        return
    found = np.flatnonzero(marks)
    for start in range(0, len(found), _PARTIALS_AT_A_TIME):
        yield as_slice(found[start : start + _PARTIALS_AT_A_TIME])


def _grown(marks: npt.NDArray[np.bool_], slots: int) -> npt.NDArray[np.bool_]:
    if slots <= len(marks):
        return marks
    return np.concatenate((marks, np.zeros(max(slots, 2 * len(marks)) - len(marks), np.bool_)))


def joined_batches(batches: Sequence[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
    """The same rows in one batch, if their columns are of the same plain types."""
    schema = batches[0].schema
    if len(batches) == 1 or any(pt.is_dictionary(field.type) for field in schema):
        return batches
    if not all(batch.schema.equals(schema) for batch in batches):
        return batches
    return pa.Table.from_batches(batches).combine_chunks().to_batches()  # type: ignore[no-any-return]
