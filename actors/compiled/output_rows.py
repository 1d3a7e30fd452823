"""OutputRows: where a kernel writes what is collected, and what becomes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..flow.elements import Batch
from .errors import CannotCompile
from .growing_rows import GrowingRows
from .input_columns import WorkTable
from .layout import ARROW, OUTPUT, STORED, Kind, Layout, Output, OutputColumn, joined_kinds

Rows = npt.NDArray[np.int64]


class OutputRows:
    """Belongs to one work table. `begin` before the kernel runs, `take` after it."""

    def __init__(self, layout: Layout, work: WorkTable) -> None:
        self._layout = layout
        self._rows = GrowingRows(work, OUTPUT, range(layout.first_output_cell, layout.cells), layout.stored)

    def begin(self, rows: int) -> None:
        """Have room for this number of rows; it grows when needed."""
        self._rows.begin(rows)

    def take(
        self, batch: Batch, columns: pa.RecordBatch | None, keys: list[pa.Array], kinds: list[Kind]
    ) -> tuple[Batch, Rows | None] | None:
        """What was collected from this batch, which had these columns and keys, and with event times the number of the
        row that each is from; None for nothing. Bare values become a list of Python values, as the interpreted
        `process` emits them, and tuples an Arrow batch.

        `kinds`: of its columns. The columns of timers are None: they are all keys.
        """
        layout, output = self._layout, self._layout.output
        arrays = self._rows.filled
        self._rows.let_go()
        if output is None or not len(arrays[0]):
            return None
        rows = None
        if layout.is_timed:
            opaque = (array for array, each in zip(arrays, output.columns, strict=False) if each.kind == "opaque")
            rows = arrays.pop() if layout.numbers_rows else next(opaque)
        if output.form == "record":
            return _chosen(batch, arrays[0]), rows
        made = [
            _column(layout, column, array, columns, keys, kind)
            for column, array, kind in zip(output.columns, arrays, kinds, strict=True)
        ]
        if output.form == "value":
            return made[0].to_pylist(), rows
        return pa.RecordBatch.from_arrays(made, names=[column.name for column in output.columns]), rows


def times_of_rows(times: Rows, rows: Rows) -> Rows:
    """The event times of these rows."""
    return times if _is_all(rows, len(times)) else times[rows]


def kinds_of(layout: Layout, other: Output | None, operator: str) -> list[Kind]:
    """The kinds of the columns that are collected, where another method of the operator collects `other`: a number is
    a float if it is one there. Raises CannotCompile if the two are not alike.
    """
    own = layout.output
    if own is None or other is None:
        return [column.kind for column in own.columns] if own else []
    kinds = joined_kinds(own, other, lambda one, another: one.type == another.type)
    if kinds is None:
        first, second = (own, other) if layout.method == "process" else (other, own)
        raise CannotCompile(
            f"{operator}.on_timer cannot be compiled: all records that are collected must be alike, and process "
            f"collects {first}, on_timer {second}"
        )
    return kinds


def output_schema(layout: Layout, record: pa.Schema, kinds: list[Kind]) -> pa.Schema | None:
    """Of what is emitted; None when nothing is, or bare values are. `record`: of the input; `kinds`: see `kinds_of`."""
    output: Output | None = layout.output
    if output is None or output.form == "value":
        return None
    if output.form == "record":
        return record
    types = [each.source.type if each.source else ARROW[kind] for each, kind in zip(output.columns, kinds, strict=True)]
    return pa.schema(list(zip((each.name for each in output.columns), types, strict=True)))


def _chosen(batch: Batch, rows: npt.NDArray[np.int64]) -> Batch:
    """The records with these numbers, in this order."""
    if not isinstance(batch, pa.RecordBatch):
        return [batch[row] for row in rows.tolist()]
    return batch if _is_all(rows, len(batch)) else batch.take(pa.array(rows))


def _column(
    layout: Layout,
    column: OutputColumn,
    array: npt.NDArray[Any],
    columns: pa.RecordBatch | None,
    keys: list[pa.Array],
    kind: Kind,
) -> pa.Array:
    if column.source is None:
        return pa.array(array.view(np.bool_) if kind == "bool" else array.astype(STORED[kind], copy=False))
    if column.source in layout.keys:
        source = keys[layout.keys.index(column.source)]
    else:
        assert columns is not None, "on_timer has no record"
        source = columns.column(layout.columns.index(column.source))
    return source if _is_all(array, len(source)) else source.take(pa.array(array))


def _is_all(rows: npt.NDArray[np.int64], of: int) -> bool:
    """Whether these are all rows in order: then nothing need be copied."""
    return len(rows) == of and bool(np.array_equal(rows, np.arange(of)))
