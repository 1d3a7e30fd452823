"""RowColumn: one column of rows that are kept: rows are added at the end, and read by number in any order.

What was written never changes: memory that grows is copied into larger memory, and a view goes on reading the old. So a
view of the first rows is a snapshot that costs nothing, and may be read on another thread while rows are added.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ..columns.column_values import plain_type
from ..keys.text_index import is_text

RowNumbers: TypeAlias = npt.NDArray[np.int64]
"""Numbers of rows, 0, 1, 2, ... as they were added; -1 reads as null."""

_FEWEST = 1024


class RowColumn(Protocol):
    """One column."""

    def append(self, column: pa.Array) -> None:
        """Add the values of rows, which are of the column's type."""

    def view(self) -> ColumnView:
        """The rows that there are now."""

    @property
    def size_bytes(self) -> int: ...


class ColumnView(Protocol):
    """The values of a column's first rows."""

    def take(self, rows: RowNumbers) -> pa.Array:
        """The values of these rows; null for -1."""


def row_column(kind: pa.DataType) -> RowColumn:
    """An empty column of this type; that of a dictionary holds its values."""
    plain = plain_type(kind)
    if is_text(plain):
        return TextColumn(plain)
    if pt.is_boolean(plain) or pt.is_primitive(plain) or pt.is_decimal128(plain):
        return FixedColumn(plain)
    return OtherColumn(plain)


def view_of(column: pa.Array) -> ColumnView:
    """A view of a column of a batch."""
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    return _View(column, None, column.type)


class Growing:
    """A NumPy array that grows at its end."""

    __slots__ = ("count", "memory")

    def __init__(self, dtype: Any) -> None:
        self.count = 0
        self.memory = np.empty(_FEWEST, dtype)

    @property
    def filled(self) -> npt.NDArray[Any]:
        """The values, as a view."""
        return self.memory[: self.count]

    def append(self, values: npt.NDArray[Any]) -> None:
        self.extend(len(values))[:] = values

    def extend(self, number: int) -> npt.NDArray[Any]:
        """Room for this number of more values, to be filled."""
        end = self.count + number
        if end > len(self.memory):
            larger = np.empty(max(end, 2 * len(self.memory)), self.memory.dtype)
            larger[: self.count] = self.filled
            self.memory = larger
        room = self.memory[self.count : end]
        self.count = end
        return room


class _Validity:
    """Which rows are not null; nothing as long as all are."""

    def __init__(self) -> None:
        self._present: Growing | None = None

    def append(self, column: pa.Array, before: int) -> None:
        """`before`: how many rows there were."""
        if self._present is None:
            if not column.null_count:
                return
            self._present = Growing(np.bool_)
            self._present.extend(before)[:] = True
        self._present.append(column.is_valid().to_numpy(zero_copy_only=False))

    def filled(self) -> npt.NDArray[np.bool_] | None:
        return None if self._present is None else self._present.filled


class _View:
    """A view over Arrow's memory. The values of null rows are anything."""

    def __init__(self, values: pa.Array, present: npt.NDArray[np.bool_] | None, kind: pa.DataType) -> None:
        self._values, self._present, self._kind = values, present, kind

    def take(self, rows: RowNumbers) -> pa.Array:
        absent = rows < 0
        if not len(self._values):
            return pa.nulls(len(rows), self._kind)
        if self._present is not None:
            absent |= ~self._present[rows]
        indices = pa.array(rows, mask=absent if absent.any() else None)
        found = pc.take(self._values, indices, boundscheck=False)
        return found if found.type == self._kind else found.cast(self._kind)


class FixedColumn:
    """Values of one width: numbers, booleans, dates and times, decimals."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._stored = pa.uint8() if pt.is_boolean(kind) else kind
        width = self._stored.bit_width // 8
        self._values = Growing(f"u{width}" if width <= 8 else f"V{width}")
        self._validity = _Validity()

    @property
    def size_bytes(self) -> int:
        return int(self._values.memory.nbytes)

    def append(self, column: pa.Array) -> None:
        self._validity.append(column, self._values.count)
        if pt.is_boolean(self._kind):
            column = column.cast(pa.uint8())
        data = column.buffers()[1]
        room = self._values.extend(len(column))
        if data is not None:
            room[:] = np.frombuffer(data, room.dtype, len(column), column.offset * room.dtype.itemsize)

    def view(self) -> ColumnView:
        values = self._values.filled
        array = pa.Array.from_buffers(self._stored, len(values), [None, pa.py_buffer(values)])
        return _View(array, self._validity.filled(), self._kind)


class TextColumn:
    """Texts and bytes, one behind the other."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        is_bytes = pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind)
        self._stored = pa.large_binary() if is_bytes else pa.large_string()
        self._ends = Growing(np.int64)
        self._ends.append(np.zeros(1, np.int64))
        self._data = Growing(np.uint8)
        self._validity = _Validity()

    @property
    def size_bytes(self) -> int:
        return int(self._ends.memory.nbytes + self._data.memory.nbytes)

    def append(self, column: pa.Array) -> None:
        self._validity.append(column, self._ends.count - 1)
        column = column.cast(self._stored)
        _, offsets, data = column.buffers()
        if not len(column):
            return
        ends = np.frombuffer(offsets, np.int64, len(column) + 1, column.offset * 8)
        first, last = int(ends[0]), int(ends[-1])
        self._ends.append(ends[1:] + (self._data.count - first))
        if last > first:
            self._data.append(np.frombuffer(data, np.uint8)[first:last])

    def view(self) -> ColumnView:
        ends, data = self._ends.filled, self._data.filled
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
        array = pa.Array.from_buffers(self._stored, len(ends) - 1, buffers)
        return _View(array, self._validity.filled(), self._kind)


class OtherColumn:
    """Values of any other type, as lists and structs, in chunks of Arrow's.

    A chunk is joined with the one before it if that is not twice as large: so there are few, and each row is copied a
    few times.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._chunks: tuple[pa.Array, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(chunk.nbytes for chunk in self._chunks)

    def append(self, column: pa.Array) -> None:
        if pt.is_dictionary(column.type):
            column = column.dictionary_decode()
        chunks = [*self._chunks, column]
        while len(chunks) > 1 and len(chunks[-2]) < 2 * len(chunks[-1]):
            chunks[-2:] = [pa.concat_arrays(chunks[-2:])]
        self._chunks = tuple(chunks)

    def view(self) -> ColumnView:
        return _ChunkedView(self._chunks, self._kind)


class _ChunkedView:
    def __init__(self, chunks: tuple[pa.Array, ...], kind: pa.DataType) -> None:
        self._chunks, self._kind = chunks, kind

    def take(self, rows: RowNumbers) -> pa.Array:
        # The rows of each chunk in turn, and then all of them put into the order that was asked for.
        starts = np.cumsum([0, *(len(chunk) for chunk in self._chunks)])
        owners = np.searchsorted(starts, rows, "right") - 1
        parts, places = [pa.nulls(int((rows < 0).sum()), self._kind)], [np.flatnonzero(rows < 0)]
        for number, chunk in enumerate(self._chunks):
            place = np.flatnonzero((owners == number) & (rows >= 0))
            places.append(place)
            parts.append(chunk.take(pa.array(rows[place] - starts[number])))
        order = np.empty(len(rows), np.int64)
        order[np.concatenate(places)] = np.arange(len(rows))
        return pa.concat_arrays(parts).take(pa.array(order))
