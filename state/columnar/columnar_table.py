"""ColumnarTable: aggregates per key, kept in NumPy arrays and updated a whole batch at a time.

A KeyIndex turns key columns into slots, and every part of the aggregates has an array by slot. A *partial* is a row of
key and parts: what a snapshot stores, and what a first phase of aggregation sends to the second one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from ...messages import those_there_are
from ..columns.column_values import Numbers, column_of, numbers_of, plain_type
from ..keys.column_hash import check_no_null
from ..keys.key_index import KeyIndex
from ..keys.word_table import Slots
from ..kinds.aggregates import Aggregate, Part, Running

T = TypeVar("T")

_PARTIALS_AT_A_TIME = 1 << 17


class ColumnarTable:
    """The aggregates of all keys seen. Made `for_input` or `for_partials`; types of columns are fixed from then on."""

    def __init__(
        self,
        keys: Mapping[str, pa.DataType],
        aggregates: Mapping[str, Aggregate],
        parts: Mapping[Part, pa.DataType],
    ) -> None:
        self._keys = dict(keys)
        self._aggregates = dict(aggregates)
        self._index = KeyIndex(list(keys.values()))
        self._running = {part: Running(part, kind) for part, kind in parts.items()}
        self._following = {part for part in parts if part.operation == "count" and part != _ROWS and _ROWS in parts}
        """Counts of columns that have had no null yet. They are the count of rows, and keep no values of their own."""
        self._spares: list[dict[Part, Numbers]] = []
        self._names = _part_names(self._keys, self._running)
        self._input_columns = list(dict.fromkeys([*keys, *(part.column for part in parts if part.column is not None)]))
        self._last_row: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._touched: npt.NDArray[np.bool_] = np.empty(0, np.bool_)

    @classmethod
    def for_input(cls, keys: Sequence[str], aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> ColumnarTable:
        """An empty table for batches with these columns. Raises ValueError for columns that do not fit."""
        for aggregate in aggregates.values():
            aggregate.check(schema)
        parts = parts_of(aggregates)
        return cls(_key_types(keys, schema), aggregates, {part: part.type_of(schema) for part in parts})

    @classmethod
    def for_partials(cls, keys: Sequence[str], aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> ColumnarTable:
        """An empty table for partials with these columns. Raises ValueError for a missing column."""
        names = _part_names(keys, parts_of(aggregates))
        for name in names.values():
            if name not in schema.names:
                raise ValueError(f"no partial {name!r}; there are {', '.join(schema.names)}")
        parts = {part: schema.field(name).type for part, name in names.items()}
        return cls(_key_types(keys, schema), aggregates, parts)

    def __len__(self) -> int:
        """How many keys there are; their slots are 0 .. len - 1."""
        return len(self._index)

    @property
    def partial_schema(self) -> pa.Schema:
        parts = {self._names[part]: running.kind for part, running in self._running.items()}
        return pa.schema(list((self._keys | parts).items()))

    @property
    def result_schema(self) -> pa.Schema:
        results = {
            name: aggregate.result_type([self._running[part].kind for part in aggregate.parts])
            for name, aggregate in self._aggregates.items()
        }
        return pa.schema(list((self._keys | results).items()))

    def update(self, batch: pa.RecordBatch) -> Slots:
        """Take in rows; returns each row's slot.

        Raises InvalidKey for a null key, and ValueError for a column that is missing or does not fit.
        """
        slots = self._slots_of(batch)
        rows = _Rows(batch, slots)
        for part in [part for part in self._following if rows.has_nulls(part.column)]:
            self._part_ways(part)
        for part, running in self._own_running():
            if part.operation == "count":
                rows.count(part.column, running)
            else:
                assert part.column is not None, "only rows are counted without a column"
                running.take_in(rows.slots(part.column), rows.numbers(part.column, running.kind))
        return slots

    def merge(self, partials: pa.RecordBatch) -> Slots:
        """Take in partials; returns each one's slot."""
        slots = self._slots_of(partials)
        rows = _Rows(partials, slots)
        for part in [part for part in self._following if not rows.are_equal(self._names[part], self._names[_ROWS])]:
            self._part_ways(part)
        for part, running in self._own_running():
            name = self._names[part]
            running.take_in(rows.slots(name), rows.numbers(name, running.kind))
        return slots

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
        values = self._values_at(slots)
        columns = [
            aggregate.result([values[part] for part in parts], [self._running[part].kind for part in parts])
            for aggregate in self._aggregates.values()
            for parts in (aggregate.parts,)
        ]
        return pa.RecordBatch.from_arrays(self._index.keys(slots) + columns, schema=self.result_schema)

    def partials(self, slots: Slots) -> pa.RecordBatch:
        """A row of keys and parts for each slot."""
        return self._partials(self._values_at(slots), self._index.keys(slots))

    def frozen(self) -> FrozenTable:
        """All partials as of now. Slots keep their keys, so only values are copied, into memory that is kept for it."""
        kept, count = dict(self._own_running()), len(self)
        spare = self._spares.pop() if self._spares else {}
        if {part: len(values) for part, values in spare.items()} != {part: len(kept[part].values) for part in kept}:
            spare = {part: np.empty_like(running.values) for part, running in kept.items()}
        for part, running in kept.items():
            spare[part][:count] = running.values[:count]
        return FrozenTable(self, count, spare, self._with_followers(spare))

    def readable(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that `update` reads. Raises InvalidKey for a null key, and ValueError for a missing column."""
        columns = {name: _column_of(batch, name) for name in self._input_columns}
        for name in self._keys:
            check_no_null(columns[name], repr(name))
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def accumulate(self, batches: Sequence[pa.RecordBatch]) -> None:
        """`update` with batches that `readable` returned, for a table that is emptied with `take_partials`."""
        for batch in _joined(batches):
            slots = self.update(batch)
            if _ROWS not in self._running:
                self._touched = _grown(self._touched, len(self))
                self._touched[slots] = True

    def take_partials(self) -> Iterator[pa.RecordBatch]:
        """The partials of all that was accumulated since the last call, each key once. Keys keep their slots.

        They come in batches that fit in the processor's cache, to be taken before more is accumulated.
        """
        marks = self._running[_ROWS].values if _ROWS in self._running else self._touched
        touched = np.flatnonzero(marks[: len(self)])
        for start in range(0, len(touched), _PARTIALS_AT_A_TIME):
            slots = _as_slice(touched[start : start + _PARTIALS_AT_A_TIME])
            yield self._partials(self._values_at(slots), self._index.keys(slots))
            for _, running in self._own_running():
                running.reset(slots)
        self._touched[: len(self)] = False

    def _partials(self, values: Mapping[Part, Numbers], keys: Sequence[pa.Array]) -> pa.RecordBatch:
        columns = [column_of(values[part], each.kind, _present(part, values)) for part, each in self._running.items()]
        return pa.RecordBatch.from_arrays([*keys, *columns], schema=self.partial_schema)

    def _own_running(self) -> list[tuple[Part, Running]]:
        return [item for item in self._running.items() if item[0] not in self._following]

    def _values_at(self, slots: Slots | slice) -> dict[Part, Numbers]:
        """The values of all parts for these slots."""
        return self._with_followers({part: running.at(slots) for part, running in self._own_running()})

    def _with_followers(self, by_part: Mapping[Part, T]) -> dict[Part, T]:
        """With that of the count of rows, the same object, for each part that follows it."""
        return {part: by_part[_ROWS if part in self._following else part] for part in self._running}

    def _part_ways(self, part: Part) -> None:
        """From now on this count keeps its own values: up to now they are those of the count of rows."""
        self._following.remove(part)
        self._running[part].values = self._running[_ROWS].values.copy()

    def _slots_of(self, batch: pa.RecordBatch) -> Slots:
        columns = []
        for name, kind in self._keys.items():
            column = _column(batch, name, kind)
            check_no_null(column, repr(name))
            columns.append(column)
        slots = self._index.slots_of(columns)
        for _, running in self._own_running():
            running.reserve(len(self._index))
        if len(self._index) > len(self._last_row):
            self._last_row = np.empty(2 * len(self._index), np.int64)
        return slots


class FrozenTable:
    """The partials of a table at one moment, for use on any thread while the table goes on. Used once."""

    def __init__(
        self, table: ColumnarTable, count: int, memory: dict[Part, Numbers], values: dict[Part, Numbers]
    ) -> None:
        self._table, self._count, self._memory, self._values = table, count, memory, values

    def __len__(self) -> int:
        return self._count

    def keys(self, slots: Slots) -> list[pa.Array]:
        """The key columns of these slots."""
        return self._table._index.keys(slots)

    def take_partials(self, slots: Slots, keys: Sequence[pa.Array]) -> pa.RecordBatch:
        """The partials of these slots, whose keys are these. The memory goes back to the table."""
        by_array = {id(values): values.take(slots) for values in self._memory.values()}
        taken = self._table._partials({part: by_array[id(values)] for part, values in self._values.items()}, keys)
        self._table._spares.append(self._memory)
        return taken


_ROWS = Part("count")
"""It is more than 0 for each key of which any row has come."""


def _as_slice(slots: Slots) -> Slots | slice:
    """Ascending slots as a slice if none is left out, which is much quicker to copy."""
    first, last = int(slots[0]), int(slots[-1])
    return slice(first, last + 1) if last - first + 1 == len(slots) else slots


def _grown(marks: npt.NDArray[np.bool_], slots: int) -> npt.NDArray[np.bool_]:
    if slots <= len(marks):
        return marks
    return np.concatenate((marks, np.zeros(max(slots, 2 * len(marks)) - len(marks), np.bool_)))


def _part_names(keys: Collection[str], parts: Iterable[Part]) -> dict[Part, str]:
    """The names of the columns of partials, each there once: a key, or a column `*`, may be called as a part is."""
    names: dict[Part, str] = {}
    for part in parts:
        name = part.name
        while name in keys or name in names.values():
            name += "'"
        names[part] = name
    return names


def parts_of(aggregates: Mapping[str, Aggregate]) -> list[Part]:
    """The parts of all aggregates, each once."""
    return list(dict.fromkeys(part for aggregate in aggregates.values() for part in aggregate.parts))


class _Rows:
    """The columns of one batch, without their nulls; each is worked out once."""

    def __init__(self, batch: pa.RecordBatch, slots: Slots) -> None:
        self._batch, self._all_slots = batch, slots
        self._slots: dict[str, Slots] = {}
        self._counts: dict[str | None, Numbers] = {}
        self._numbers: dict[tuple[str, pa.DataType], Numbers] = {}

    def has_nulls(self, name: str | None) -> bool:
        return name is not None and _column(self._batch, name).null_count > 0

    def are_equal(self, name: str, other: str) -> bool:
        """Whether two columns hold the same."""
        return bool(_column(self._batch, name).equals(_column(self._batch, other)))

    def slots(self, name: str) -> Slots:
        """The slots of the rows in which this column is not null."""
        if name not in self._slots:
            column = _column(self._batch, name)
            present = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else slice(None)
            self._slots[name] = self._all_slots[present]
        return self._slots[name]

    def count(self, name: str | None, running: Running) -> None:
        """Count these rows; without a name, all. Columns without nulls are counted once for all of them."""
        if not self.has_nulls(name):
            name = None
        slots = self._all_slots if name is None else self.slots(name)
        if len(running.values) > len(slots):
            running.take_in(slots, 1)
            return
        if name not in self._counts:
            self._counts[name] = np.bincount(slots, minlength=len(running.values))
        running.values += self._counts[name]

    def numbers(self, name: str, kind: pa.DataType) -> Numbers:
        """The values of those rows."""
        if (name, kind) not in self._numbers:
            column = _column(self._batch, name, kind)
            self._numbers[name, kind] = numbers_of(column.drop_null() if column.null_count else column)
        return self._numbers[name, kind]


def _joined(batches: Sequence[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
    """The same rows in one batch, if their columns are of the same plain types."""
    schema = batches[0].schema
    if len(batches) == 1 or any(pt.is_dictionary(field.type) for field in schema):
        return batches
    if not all(batch.schema.equals(schema) for batch in batches):
        return batches
    return pa.Table.from_batches(batches).combine_chunks().to_batches()  # type: ignore[no-any-return]


def _column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    if batch.schema.get_field_index(name) < 0:
        known = those_there_are(name, batch.schema.names)
        raise ValueError(f"there is no column {name!r}, or not once; the batch has {known}")
    return batch.column(name)


def _column(batch: pa.RecordBatch, name: str, kind: pa.DataType | None = None) -> pa.Array:
    """A column, as type `kind` if it is given; a dictionary is decoded. Raises ValueError, naming the column."""
    column = _column_of(batch, name)
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind is None or column.type == kind:
        return column
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"column {name!r}: found {column.type}, which does not become {kind}: {error}") from error


def _key_types(keys: Sequence[str], schema: pa.Schema) -> dict[str, pa.DataType]:
    for name in keys:
        if schema.names.count(name) != 1:
            known = those_there_are(name, schema.names)
            raise ValueError(f"there is no key column {name!r}, or not once; there are {known}")
    return {name: plain_type(schema.field(name).type) for name in keys}


def _present(part: Part, values: Mapping[Part, Numbers]) -> npt.NDArray[np.bool_] | None:
    """Where a part is a number: sums and counts of nothing are 0, but there is no least value of nothing."""
    if part.operation in ("min", "max"):
        present: npt.NDArray[np.bool_] = values[Part("count", part.column)] > 0
        return present
    return None
