"""Rows that a kernel adds to arrays, one array per column: it calls back into Python where they are full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from .machine_code import INT64, load_cell, raise_error, store_cell, store_number


def added_row(
    context: Any, builder: Any, work: Any, rows: int, cells: Sequence[int], kinds: Sequence[str], values: Sequence[Any]
) -> None:
    """Add a row of these values. `rows`: the cells of their number, capacity and growth; `cells`: of the columns'
    addresses, which are of these NumPy types.
    """
    count_cell, capacity_cell, grow_cell = range(rows, rows + 3)
    count = load_cell(builder, work, count_cell, changes=True)
    full = builder.icmp_signed(">=", count, load_cell(builder, work, capacity_cell, changes=True))
    with cgutils.if_unlikely(builder, full):
        function = ir.FunctionType(ir.VoidType(), []).as_pointer()
        builder.call(builder.inttoptr(load_cell(builder, work, grow_cell), function), [])
        still_full = builder.icmp_signed(">=", count, load_cell(builder, work, capacity_cell, changes=True))
        with cgutils.if_unlikely(builder, still_full):
            raise_error(context, builder, MemoryError, "no memory for what was collected")
    for cell, kind, value in zip(cells, kinds, values, strict=True):
        store_number(builder, load_cell(builder, work, cell, changes=True), kind, count, value)
    store_cell(builder, work, count_cell, builder.add(count, INT64(1)))
