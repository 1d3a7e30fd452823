"""The `self` of a compiled method: the key, states, timers, event time, and its own numbers, which are read only."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr_generic

from ..errors import NoEventTime
from .layout import SLOTS, TIMES, WATERMARKS, Layout
from .machine_code import INT64, as_tuple, load_cell, load_item, made_view, raise_error, view
from .record_access import load_column
from .refusal import refuse
from .types import NUMBERS, OperatorType, column_type, row_type

_TIMES = ("timestamp", "watermark")


def self_type(layout: Layout) -> Any:
    return OperatorType(layout)


def key_type(operator: Any) -> Any:
    keys = operator.layout.keys
    return row_type([column_type(key) for key in keys], len(keys) > 1)


@infer_getattr
class _OperatorAttribute(AttributeTemplate):
    key = OperatorType

    def generic_resolve(self, operator: Any, name: str) -> Any:
        layout = operator.layout
        if name == "key":
            return key_type(operator)
        if name == "timers":
            return operator.timers
        if name in _TIMES:
            return types.int64
        if name in operator.states:
            return operator.states[name]
        if name in layout.attributes:
            return NUMBERS[layout.attributes[name][0]]
        known = ", ".join(["key", "timers", *_TIMES, *operator.states, *layout.attributes])
        refuse(layout, f"self.{name} cannot be used: a compiled function sees self's numbers and states: {known}")


@lower_getattr_generic(OperatorType)
def _load_attribute(context: Any, builder: Any, operator: Any, value: Any, name: str) -> Any:
    seen, layout = view(context, builder, operator, value), operator.layout
    if name == "key":
        layout.keys_read.update(range(len(layout.keys)))
        items = [load_column(context, builder, key, seen.work, seen.row) for key in layout.keys]
        return as_tuple(context, builder, key_type(operator), items)
    if name == "timers":
        return made_view(context, builder, operator.timers, seen.work, seen.row)
    if name == "watermark":
        layout.reads_watermark = True
        return load_item(builder, load_cell(builder, seen.work, WATERMARKS), "i8", seen.row)
    if name == "timestamp":
        return _timestamp(context, builder, layout, seen)
    if name in operator.states:
        slot = load_item(builder, load_cell(builder, seen.work, SLOTS), "i8", seen.row)
        return made_view(context, builder, operator.states[name], seen.work, slot)
    kind, cell = layout.attributes[name]
    loaded = load_cell(builder, seen.work, cell)
    if kind == "float":
        return builder.bitcast(loaded, ir.DoubleType())
    return builder.icmp_unsigned("!=", loaded, INT64(0)) if kind == "bool" else loaded


def _timestamp(context: Any, builder: Any, layout: Layout, seen: Any) -> Any:
    if not layout.is_timed:
        with cgutils.if_unlikely(builder, cgutils.true_bit):  # CompiledProcess puts the operator's name in
            raise_error(context, builder, NoEventTime, "", "self.timestamp")
        return INT64(0)
    return load_item(builder, load_cell(builder, seen.work, TIMES), "i8", seen.row)
