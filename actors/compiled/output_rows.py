"""OutputRows: where a kernel writes what is collected, and what becomes of it.

One array per column; when they are full the kernel calls back, and larger ones take their place.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..flow.elements import Batch
from .input_columns import WorkTable, address_of
from .layout import ARROW, CAPACITY, COUNT, GROW, STORED, Layout, Output, OutputColumn

_Callback = ctypes.CFUNCTYPE(None)
LEAST_ROWS = 64


class OutputRows:
    """Belongs to one work table. `begin` before the kernel runs, `take` after it."""

    def __init__(self, layout: Layout, work: WorkTable) -> None:
        self._layout, self._work = layout, work
        self._columns = layout.output.columns if layout.output else ()
        self._arrays: list[npt.NDArray[Any]] = []
        self._grow = _Callback(self._make_room)  # the kernel calls it by address, so it must live as long
        work[GROW] = ctypes.cast(self._grow, ctypes.c_void_p).value or 0

    def begin(self, rows: int) -> None:
        """Have room for this number of rows; it grows when needed."""
        self._put([np.empty(rows, STORED[column.kind]) for column in self._columns])
        self._work[COUNT], self._work[CAPACITY] = 0, rows

    def take(self, batch: Batch, columns: pa.RecordBatch, keys: list[pa.Array]) -> Batch | None:
        """What was collected from this batch, which had these columns and keys; None for nothing. Bare values become a
        list of Python values, as the interpreted `process` emits them, and tuples an Arrow batch.
        """
        count, output, arrays = int(self._work[COUNT]), self._layout.output, self._arrays
        self._arrays = []
        if not count or output is None:
            return None
        arrays = [array[:count] for array in arrays]
        if output.form == "record":
            return _chosen(batch, arrays[0])
        made = [
            _column(self._layout, column, array, columns, keys)
            for column, array in zip(output.columns, arrays, strict=True)
        ]
        if output.form == "value":
            return made[0].to_pylist()
        return pa.RecordBatch.from_arrays(made, names=[column.name for column in output.columns])

    def _make_room(self) -> None:
        """Called by the kernel. If it fails the kernel raises, as there is no more room than before."""
        before = int(self._work[CAPACITY])
        rows = max(2 * before, LEAST_ROWS)
        try:
            larger = [np.empty(rows, array.dtype) for array in self._arrays]
        except MemoryError:
            return
        for new, old in zip(larger, self._arrays, strict=True):
            new[:before] = old
        self._put(larger)
        self._work[CAPACITY] = rows

    def _put(self, arrays: list[npt.NDArray[Any]]) -> None:
        self._arrays = arrays
        first = self._layout.first_output_cell
        self._work[first : first + len(arrays)] = [address_of(array) for array in arrays]


def output_schema(layout: Layout, record: pa.Schema) -> pa.Schema | None:
    """Of what is emitted; None when nothing is, or bare values are. `record`: of the input."""
    output: Output | None = layout.output
    if output is None or output.form == "value":
        return None
    if output.form == "record":
        return record
    return pa.schema([(each.name, each.source.type if each.source else ARROW[each.kind]) for each in output.columns])


def _chosen(batch: Batch, rows: npt.NDArray[np.int64]) -> Batch:
    """The records with these numbers, in this order."""
    if not isinstance(batch, pa.RecordBatch):
        return [batch[row] for row in rows.tolist()]
    return batch if _is_all(rows, len(batch)) else batch.take(pa.array(rows))


def _column(
    layout: Layout, column: OutputColumn, array: npt.NDArray[Any], columns: pa.RecordBatch, keys: list[pa.Array]
) -> pa.Array:
    if column.source is None:
        return pa.array(array.view(np.bool_) if column.kind == "bool" else array)
    if column.source in layout.keys:
        source = keys[layout.keys.index(column.source)]
    else:
        source = columns.column(layout.columns.index(column.source))
    return source if _is_all(array, len(source)) else source.take(pa.array(array))


def _is_all(rows: npt.NDArray[np.int64], of: int) -> bool:
    """Whether these are all rows in order: then nothing need be copied."""
    return len(rows) == of and bool(np.array_equal(rows, np.arange(of)))
