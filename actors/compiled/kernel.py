"""Kernel: `process` compiled together with the loop over a batch's rows, for one layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.extending import intrinsic

from . import out_access, state_access  # noqa: F401  (they tell Numba of our types)
from .errors import CannotCompile
from .function import compiled
from .layout import POSITION, Layout
from .machine_code import INT64, made_view, store_cell
from .operator_access import self_type
from .record_access import load_columns
from .refusal import refusal_of
from .types import OutType, RecordType, column_type

Kernel = Callable[[int, int], None]
"""Called with the number of rows and the address of the work table. Raises what `process` raises."""


def compile_kernel(operator: type, process: Any, layout: Layout) -> Kernel:
    """Compile `operator.process`. The layout then knows the collected types and the columns that are read.

    Raises CannotCompile.
    """
    run = compiled(process, operator)
    self_of, record_of, out_of = _operator_view(layout), _record_view(layout), _out_view(layout)

    def kernel(rows: int, work: int) -> None:
        for row in range(rows):
            run(self_of(work, row), record_of(work, row), out_of(work))

    try:
        made: Kernel = numba.njit("void(int64, int64)", error_model="python", no_cfunc_wrapper=True)(kernel)
    except CannotCompile:
        raise
    except Exception as error:  # whatever Numba raises, the refusal says where and why
        raise refusal_of(error, process, layout) from error
    return made


def _operator_view(layout: Layout) -> Any:
    kind = self_type(layout)

    @intrinsic
    def self_of(typingctx: Any, work: Any, row: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            table = _table(context, builder, args[0])
            store_cell(builder, table, POSITION, args[1])
            return made_view(context, builder, kind, table, args[1])

        return kind(types.int64, types.int64), codegen

    return self_of


def _record_view(layout: Layout) -> Any:
    record = RecordType(layout)
    kind = column_type(layout.columns[0]) if layout.record_form == "value" else record

    @intrinsic
    def record_of(typingctx: Any, work: Any, row: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            made = made_view(context, builder, record, _table(context, builder, args[0]), args[1])
            if kind is record:
                return made
            (value,) = load_columns(context, builder, record, made, [0])
            return value

        return kind(types.int64, types.int64), codegen

    return record_of


def _out_view(layout: Layout) -> Any:
    kind = OutType(layout)

    @intrinsic
    def out_of(typingctx: Any, work: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return made_view(context, builder, kind, _table(context, builder, args[0]))

        return kind(types.int64), codegen

    return out_of


def _table(context: Any, builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, INT64.as_pointer())
