"""Kernel: `process` compiled together with the loop over a batch's rows, or `on_timer` with that over due timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.extending import intrinsic

from ...state.columnar.slot_timers import NO_TIME
from . import out_access, state_access, timer_access  # noqa: F401  (they tell Numba of our types)
from .errors import CannotCompile
from .function import compiled
from .layout import LAST, POSITION, SLICE, SLOTS, TIMES, TOUCHED, Layout
from .machine_code import INT64, load_cell, load_item, made_view, store_cell, store_number, view
from .operator_access import self_type
from .record_access import load_columns
from .refusal import refusal_of
from .types import OutType, RecordType, column_type

Kernel = Callable[[int, int], int]
"""Called with the number of rows and the address of the work table; returns how many rows it has done. Raises what the
compiled method raises.
"""


def compile_kernel(operator: type, layout: Layout) -> Kernel:
    """Compile the operator's `process` or `on_timer`. The layout then knows the collected types, and which columns are
    read. Raises CannotCompile.
    """
    method = getattr(operator, layout.method)
    loop = _over_records if layout.method == "process" else _over_timers
    try:
        made: Kernel = numba.njit("int64(int64, int64)", error_model="python", no_cfunc_wrapper=True)(
            loop(compiled(method, operator), layout)
        )
    except CannotCompile:
        raise
    except Exception as error:  # whatever Numba raises, the refusal says where and why
        raise refusal_of(error, method, layout) from error
    return made


def _over_records(run: Any, layout: Layout) -> Kernel:
    self_of, record_of, out_of = _operator_view(layout), _record_view(layout), _out_view(layout)

    def kernel(rows: int, work: int) -> int:
        for row in range(rows):
            run(self_of(work, row), record_of(work, row), out_of(work))
        return rows

    return kernel


def _over_timers(run: Any, layout: Layout) -> Kernel:
    self_of, timer_of, out_of = _operator_view(layout), _timer_view(layout), _out_view(layout)
    is_changed = _changed(layout)

    def kernel(rows: int, work: int) -> int:
        for row in range(rows):
            if is_changed(work, row):
                return row
            own = self_of(work, row)
            run(own, timer_of(own), out_of(work))
        return rows

    return kernel


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


def _timer_view(layout: Layout) -> Any:
    @intrinsic
    def timer_of(typingctx: Any, operator: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            seen = view(context, builder, operator, args[0])
            return load_item(builder, load_cell(builder, seen.work, TIMES), "i8", seen.row)

        return operator.timers.timer(operator), codegen

    return timer_of


def _changed(layout: Layout) -> Any:
    """Whether the timers of a row's slot have changed since the loop began. If not, the row's fires, so it is not the
    pending one in `last` any more.
    """

    @intrinsic
    def is_changed(typingctx: Any, work: Any, row: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            table = _table(context, builder, args[0])
            slot, time = (load_item(builder, load_cell(builder, table, cell), "i8", args[1]) for cell in (SLOTS, TIMES))
            last, touched = (load_cell(builder, table, cell) for cell in (LAST, TOUCHED))
            with builder.if_then(builder.icmp_signed("==", load_item(builder, last, "i8", slot), time)):
                store_number(builder, last, "i8", slot, INT64(NO_TIME))
            return builder.icmp_signed("==", load_item(builder, touched, "i8", slot), load_cell(builder, table, SLICE))

        return types.boolean(types.int64, types.int64), codegen

    return is_changed


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
