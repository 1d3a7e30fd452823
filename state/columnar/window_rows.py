"""What columnar windows of all kinds share: the columns of their input, partials and results.

A result has the keys, `window_start` and `window_end` in ms as int64, as event times are everywhere, and the
aggregates; its event time is the last one in the window, end - 1. A partial has the keys, where in time it belongs, and
the parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns.column_values import Numbers
from ..columns.timed_batch import Times
from ..keys.key_index import KeyIndex
from ..keys.word_table import Slots
from ..kinds.aggregates import Part
from .aggregate_columns import AggregateColumns
from .part_columns import (
    ROWS,
    Values,
    column_called,
    free_name,
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


class WindowRows(AggregateColumns):
    """The columns of windowed aggregates of these keys."""

    ALWAYS: ClassVar[tuple[Part, ...]] = (ROWS,)
    """A window holds a key of which it has any rows."""

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

    def numbers(self, batch: pa.RecordBatch, name: str) -> Numbers:
        """A column of partials that says where in time they belong."""
        found: Numbers = column_called(batch, name, pa.int64()).to_numpy()
        return found


def _times(times: Numbers | int, count: int) -> pa.Array:
    if isinstance(times, int):
        return pa.repeat(pa.scalar(times, pa.int64()), count).view(WINDOW_TIME)
    return pa.array(times, pa.int64()).view(WINDOW_TIME)
