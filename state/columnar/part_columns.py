"""PartColumns: the running values of the parts of aggregates, an array for each part, updated a batch at a time.

Who owns them says what a slot, an index into the arrays, stands for: a key, a key within one pane of time, a session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from ...messages import those_there_are
from ..columns.column_values import Numbers, column_of, numbers_of
from ..keys.word_table import Slots
from ..kinds.aggregates import Aggregate, Part, Running

T = TypeVar("T")
Values: TypeAlias = "dict[Part, Numbers]"
"""The values of every part, row by row. Of windows, the count of rows comes first."""

ROWS = Part("count")
"""It is more than 0 for each slot that any row has come for."""


class PartColumns:
    """The values of these parts, which are of these types, for slots 0, 1, 2, ... that have been reserved."""

    def __init__(self, parts: Mapping[Part, pa.DataType]) -> None:
        self.types = dict(parts)
        self._running = {part: Running(part, kind) for part, kind in parts.items()}
        self._following = {part for part in parts if part.operation == "count" and part != ROWS and ROWS in parts}
        """Counts of columns that have had no null yet. They are the count of rows, and keep no values of their own."""

    def reserve(self, slots: int) -> None:
        """Have room for this many slots; new ones hold neutral values."""
        for _, running in self.own():
            running.reserve(slots)

    def take_in(self, rows: RowsOfSlots) -> None:
        """Add rows of input. Raises ValueError for a column that is missing or does not fit."""
        for part in [part for part in self._following if rows.has_nulls(part.column)]:
            self._part_ways(part)
        for part, running in self.own():
            if part.operation == "count":
                rows.count(part.column, running)
            else:
                assert part.column is not None, "only rows are counted without a column"
                running.take_in(rows.slots(part.column), rows.numbers(part.column, running.kind))

    def merge(self, rows: RowsOfSlots, names: Mapping[Part, str]) -> None:
        """Add partials, whose columns have these names. Raises ValueError as `take_in` does."""
        for part in [part for part in self._following if not rows.are_equal(names[part], names[ROWS])]:
            self._part_ways(part)
        for part, running in self.own():
            running.take_in(rows.slots(names[part]), rows.numbers(names[part], running.kind))

    def merge_values(self, slots: Slots | slice, values: Mapping[Part, Numbers]) -> None:
        """Add what `at` returned, of these columns or of others of the same parts."""
        for part in [part for part in self._following if values[part] is not values[ROWS]]:
            self._part_ways(part)
        for part, running in self.own():
            running.take_in(slots, values[part])

    def merge_once(self, slots: Slots | slice, values: Mapping[Part, Numbers]) -> None:
        """`merge_values` for slots that are all different."""
        for part in [part for part in self._following if values[part] is not values[ROWS]]:
            self._part_ways(part)
        for part, running in self.own():
            running.take_in_once(slots, values[part])

    def put(self, slots: Slots | slice, values: Mapping[Part, Numbers]) -> None:
        """Let these slots hold these values, whatever they held."""
        for part in [part for part in self._following if values[part] is not values[ROWS]]:
            self._part_ways(part)
        for part, running in self.own():
            running.put(slots, values[part])

    def at(self, slots: Slots | slice) -> Values:
        """A copy of the values of these slots. A part whose values are the count of rows has the same array."""
        return self._with_followers({part: running.at(slots) for part, running in self.own()})

    def view(self, slots: slice) -> Values:
        """The values of these slots, which are not to be changed; later changes may show in them."""
        return self._with_followers({part: running.values[slots] for part, running in self.own()})

    def chosen(self, slots: Slots | slice) -> PartColumns:
        """The values of these slots alone, whose slots are their places."""
        made = copy(self)
        made._following = set(self._following)
        made._running = {part: copy(running) for part, running in self._running.items()}
        for _, running in made.own():
            running.values = running.at(slots)
        return made

    def reset(self, slots: Slots | slice) -> None:
        """Give these slots neutral values."""
        for _, running in self.own():
            running.reset(slots)

    def frozen(self, count: int, memory: dict[Part, Numbers]) -> tuple[dict[Part, Numbers], Values]:
        """The values of the first slots, copied into this memory if it fits: the memory used, and all parts' values."""
        kept = dict(self.own())
        if {part: len(values) for part, values in memory.items()} != {part: len(kept[part].values) for part in kept}:
            memory = {part: np.empty_like(running.values) for part, running in kept.items()}
        for part, running in kept.items():
            memory[part][:count] = running.values[:count]
        return memory, self._with_followers(memory)

    def own(self) -> list[tuple[Part, Running]]:
        """The parts that keep values."""
        return [item for item in self._running.items() if item[0] not in self._following]

    def row_counts(self) -> Numbers | None:
        """How many rows each slot has had, if they are counted."""
        return self._running[ROWS].values if ROWS in self._running else None

    def _with_followers(self, by_part: Mapping[Part, T]) -> dict[Part, T]:
        """With that of the count of rows, the same object, for each part that follows it."""
        return {part: by_part[ROWS if part in self._following else part] for part in self._running}

    def _part_ways(self, part: Part) -> None:
        """From now on this count keeps its own values: up to now they are those of the count of rows."""
        self._following.remove(part)
        self._running[part].values = self._running[ROWS].values.copy()


class RowsOfSlots:
    """The columns of one batch, without their nulls, each worked out once, and the slot of each row."""

    def __init__(self, batch: pa.RecordBatch, slots: Slots) -> None:
        self._batch, self._all_slots = batch, slots
        self._slots: dict[str, Slots] = {}
        self._counts: dict[str | None, Numbers] = {}
        self._numbers: dict[tuple[str, pa.DataType], Numbers] = {}

    def has_nulls(self, name: str | None) -> bool:
        return name is not None and column_called(self._batch, name).null_count > 0

    def are_equal(self, name: str, other: str) -> bool:
        """Whether two columns hold the same."""
        return bool(column_called(self._batch, name).equals(column_called(self._batch, other)))

    def slots(self, name: str) -> Slots:
        """The slots of the rows in which this column is not null."""
        if name not in self._slots:
            column = column_called(self._batch, name)
            present = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else slice(None)
            self._slots[name] = self._all_slots[present]
        return self._slots[name]

    def count(self, name: str | None, running: Running) -> None:
        """Count these rows; without a name, all. Columns without nulls are counted once for all of them."""
        if not self.has_nulls(name):
            name = None
        slots = self._all_slots if name is None else self.slots(name)
        if len(running.values) > 2 * len(slots):
            running.take_in(slots, 1)
            return
        if name not in self._counts:
            self._counts[name] = np.bincount(slots)
        counts = self._counts[name]
        running.values[: len(counts)] += counts

    def numbers(self, name: str, kind: pa.DataType) -> Numbers:
        """The values of those rows."""
        if (name, kind) not in self._numbers:
            column = column_called(self._batch, name, kind)
            self._numbers[name, kind] = numbers_of(column.drop_null() if column.null_count else column)
        return self._numbers[name, kind]


def joined_values(several: Sequence[Values]) -> Values:
    """The rows of all, one after the other."""
    if len(several) == 1:
        return several[0]
    values: Values = {}
    for part in several[0]:
        if part != ROWS and all(each[part] is each[ROWS] for each in several):
            values[part] = values[ROWS]
        else:
            values[part] = np.concatenate([each[part] for each in several])
    return values


def values_at(values: Values, rows: slice) -> Values:
    """Some rows: of parts with the same array the same part of it."""
    taken = {id(each): each[rows] for each in values.values()}
    return {part: taken[id(each)] for part, each in values.items()}


def as_slice(slots: Slots) -> Slots | slice:
    """Slots as a slice if they ascend and none is left out, which is much quicker to copy."""
    if not len(slots):
        return slots
    first, last = int(slots[0]), int(slots[-1])
    if last - first + 1 != len(slots) or not bool((slots[1:] > slots[:-1]).all()):
        return slots
    return slice(first, last + 1)


def value_columns(types: Mapping[Part, pa.DataType], values: Mapping[Part, Numbers]) -> list[pa.Array]:
    """The values of parts of these types as columns, in their order."""
    return [column_of(values[part], kind, _present(part, values)) for part, kind in types.items()]


def result_columns(
    types: Mapping[Part, pa.DataType], aggregates: Iterable[Aggregate], values: Mapping[Part, Numbers]
) -> list[pa.Array]:
    """A column for each aggregate."""
    return [
        aggregate.result([values[part] for part in parts], [types[part] for part in parts])
        for aggregate in aggregates
        for parts in (aggregate.parts,)
    ]


def result_types(types: Mapping[Part, pa.DataType], aggregates: Mapping[str, Aggregate]) -> dict[str, pa.DataType]:
    return {
        name: aggregate.result_type([types[part] for part in aggregate.parts]) for name, aggregate in aggregates.items()
    }


def part_names(taken: Collection[str], parts: Iterable[Part]) -> dict[Part, str]:
    """The names of the columns of partials, each there once: a key, or a column `*`, may be called as a part is."""
    names: dict[Part, str] = {}
    for part in parts:
        names[part] = free_name(part.name, {*taken, *names.values()})
    return names


def input_types(
    aggregates: Mapping[str, Aggregate], parts: Iterable[Part], schema: pa.Schema
) -> dict[Part, pa.DataType]:
    """The types of parts over input with these columns. Raises ValueError for columns that do not fit."""
    for aggregate in aggregates.values():
        aggregate.check(schema)
    return {part: part.type_of(schema) for part in parts}


def partial_types(keys: Collection[str], parts: Iterable[Part], schema: pa.Schema) -> dict[Part, pa.DataType]:
    """The types of parts as partials with these columns have them. Raises ValueError for a missing column."""
    names = part_names(keys, parts)
    for name in names.values():
        if name not in schema.names:
            raise ValueError(f"no partial {name!r}; there are {', '.join(schema.names)}")
    return {part: schema.field(name).type for part, name in names.items()}


def free_name(wanted: str, taken: Collection[str]) -> str:
    """This name, or one like it that is not taken."""
    while wanted in taken:
        wanted += "'"
    return wanted


def parts_of(aggregates: Mapping[str, Aggregate]) -> list[Part]:
    """The parts of all aggregates, each once."""
    return list(dict.fromkeys(part for aggregate in aggregates.values() for part in aggregate.parts))


def column_called(batch: pa.RecordBatch, name: str, kind: pa.DataType | None = None) -> pa.Array:
    """A column, as type `kind` if it is given; a dictionary is decoded. Raises ValueError, naming the column."""
    column = only_column(batch, name)
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind is None or column.type == kind:
        return column
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"column {name!r}: found {column.type}, which does not become {kind}: {error}") from error


def only_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """The column of this name, as it is. Raises ValueError if there is none, or more than one."""
    if batch.schema.get_field_index(name) < 0:
        known = those_there_are(name, batch.schema.names)
        raise ValueError(f"there is no column {name!r}, or more than one; the batch has {known}")
    return batch.column(name)


def _present(part: Part, values: Mapping[Part, Any]) -> npt.NDArray[np.bool_] | None:
    """Where a part is a number: sums and counts of nothing are 0, but there is no least value of nothing."""
    if part.adds_up:
        return None
    present: npt.NDArray[np.bool_] = values[Part("count", part.column)] > 0
    return present
