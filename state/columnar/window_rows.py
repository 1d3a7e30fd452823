"""What columnar windows of all kinds share: the columns of their input, partials and results.

A result has the keys, `window_start` and `window_end` in ms as int64, as event times are everywhere, and the
aggregates; its event time is the last one in the window, end - 1. A partial has the keys, where in time it belongs, and
the parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.column_values import Numbers
from ..columns.timed_batch import Times
from ..keys.column_hash import check_no_null
from ..keys.key_index import KeyIndex
from ..keys.word_table import Slots
from ..kinds.aggregates import Aggregate, Part
from .columnar_table import key_types
from .part_columns import (
    ROWS,
    Values,
    column_called,
    free_name,
    input_types,
    only_column,
    part_names,
    partial_types,
    parts_of,
    result_columns,
    result_types,
    value_columns,
)

WINDOW_START, WINDOW_END = "window_start", "window_end"
WINDOW_TIME: Final = pa.int64()
"""As all times here: milliseconds since the epoch."""
MOST_ROWS: Final = 1 << 16
"""Of a batch of results: that is made between two steps of a task, in which a barrier may pass."""


class Results(NamedTuple):
    """A batch of results and their event times."""

    batch: pa.RecordBatch
    times: Times


class Taken(NamedTuple):
    """What came of a batch."""

    late: npt.NDArray[np.int64] | None
    """The numbers of rows of which all windows had closed, if there are any. They changed nothing."""
    late_rows: int
    """How many rows these are, or stand for."""
    results: list[Results]
    """Of windows that had fired already."""


class Stored(NamedTuple):
    """Rows of state as they were at one moment, for use on any thread while the table goes on."""

    keys: KeyIndex
    slots: Slots
    """Of each row's key."""
    batch: pa.RecordBatch
    """The other columns."""


class WindowRows:
    """The columns of windowed aggregates of these keys."""

    def __init__(
        self, keys: Mapping[str, pa.DataType], aggregates: Mapping[str, Aggregate], parts: Mapping[Part, pa.DataType]
    ) -> None:
        self.keys, self.aggregates, self.parts = dict(keys), dict(aggregates), dict(parts)
        self.names = part_names(self.keys, parts)
        self.input_columns = list(dict.fromkeys([*keys, *(part.column for part in parts if part.column is not None)]))

    @classmethod
    def of_input(cls, keys: Sequence[str], aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> WindowRows:
        """For input with these columns. Raises ValueError for columns that do not fit."""
        parts = input_types(aggregates, _parts(aggregates), schema)
        return cls(key_types(keys, schema), aggregates, parts)

    @classmethod
    def of_partials(cls, keys: Sequence[str], aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> WindowRows:
        """For partials with these columns. Raises ValueError for a missing column."""
        parts = partial_types(keys, _parts(aggregates), schema)
        return cls(key_types(keys, schema), aggregates, parts)

    def free_name(self, wanted: str) -> str:
        """A name like this one for a column of partials."""
        return free_name(wanted, {*self.keys, *self.names.values()})

    @property
    def rows_name(self) -> str:
        """The column of partials that counts the rows in them."""
        return self.names[ROWS]

    def partial_schema(self, places: Sequence[str]) -> pa.Schema:
        """With these columns of int64 that say where in time a partial belongs."""
        columns = {name: pa.int64() for name in places} | {self.names[part]: kind for part, kind in self.parts.items()}
        return pa.schema(list((self.keys | columns).items()))

    def partials(self, keys: Sequence[pa.Array], places: Mapping[str, Numbers], values: Values) -> pa.RecordBatch:
        return self.with_keys(keys, self.without_keys(places, values))

    def without_keys(self, places: Mapping[str, Numbers], values: Values) -> pa.RecordBatch:
        """Partials but for their keys."""
        where = [pa.array(each, pa.int64()) for each in places.values()]
        names = [*places, *(self.names[part] for part in self.parts)]
        return pa.RecordBatch.from_arrays([*where, *value_columns(self.parts, values)], names=names)

    def with_keys(self, keys: Sequence[pa.Array], others: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([*keys, *others.columns], names=[*self.keys, *others.schema.names])

    @property
    def result_schema(self) -> pa.Schema:
        found = result_types(self.parts, self.aggregates)
        return pa.schema(list((self.keys | {WINDOW_START: WINDOW_TIME, WINDOW_END: WINDOW_TIME} | found).items()))

    def results(self, keys: Sequence[pa.Array], start: Numbers | int, end: Numbers | int, values: Values) -> Results:
        """`start` and `end`: those of each row, or of all."""
        count = len(keys[0])
        bounds = [_times(each, count) for each in (start, end)]
        arrays = [*keys, *bounds, *result_columns(self.parts, self.aggregates.values(), values)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.result_schema)
        return Results(batch, np.full(count, end - 1, np.int64) if isinstance(end, int) else end - 1)

    def readable(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that are read. Raises InvalidKey for a null key, and ValueError for a missing column."""
        columns = {name: only_column(batch, name) for name in self.input_columns}
        for name in self.keys:
            check_no_null(columns[name], repr(name))
        if not columns:
            return batch
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def key_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Raises InvalidKey for a null key, and ValueError for a missing column."""
        columns = []
        for name, kind in self.keys.items():
            column = column_called(batch, name, kind)
            check_no_null(column, repr(name))
            columns.append(column)
        return columns

    def numbers(self, batch: pa.RecordBatch, name: str) -> Numbers:
        """A column of partials that says where in time they belong."""
        found: Numbers = column_called(batch, name, pa.int64()).to_numpy()
        return found


def _parts(aggregates: Mapping[str, Aggregate]) -> list[Part]:
    """Of windows, rows are always counted: a window holds a key of which it has any."""
    return list(dict.fromkeys([ROWS, *parts_of(aggregates)]))


def _times(times: Numbers | int, count: int) -> pa.Array:
    if isinstance(times, int):
        return pa.repeat(pa.scalar(times, pa.int64()), count).view(WINDOW_TIME)
    return pa.array(times, pa.int64()).view(WINDOW_TIME)
