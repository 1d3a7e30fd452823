"""The `out` of a compiled `process`: `collect` writes a row into arrays that grow when they are full.

All collects of an operator take one kind of row. Which, is known when the types of a whole function are: `settle` is
called between typing and machine code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate, bound_function, signature
from numba.extending import infer_getattr, lower_builtin

from .growing import added_row
from .layout import OUTPUT, POSITION, Layout, Output, OutputColumn, joined_kinds
from .machine_code import load_cell, view
from .refusal import refuse, shown_type
from .types import NUMBERS, Opaque, OutType, RecordType

COLLECT = "understudy.collect"


@infer_getattr
class _OutMethods(AttributeTemplate):
    key = OutType

    @bound_function(COLLECT)
    def resolve_collect(self, out: Any, args: Any, kws: Any) -> Any:
        if len(args) != 1 or kws:
            refuse(out.layout, f"out.collect takes one record, found {len(args) + len(kws)}")
        given = types.unliteral(args[0])
        output_of(out.layout, given)
        return signature(types.none, given)

    def generic_resolve(self, out: Any, name: str) -> Any:
        refuse(out.layout, f"out.{name}: a compiled function has only out.collect")


def output_of(layout: Layout, given: Any) -> Output:
    """What collecting a value of this type makes. Refuses what is no row of numbers and columns passed on."""
    if isinstance(given, RecordType):
        return Output((OutputColumn("record", "opaque"),), "record")
    if not isinstance(given, types.BaseTuple):
        return Output((_column(layout, "value", given),), "value")
    if not len(given):
        refuse(layout, "out.collect of an empty tuple")
    names = given.fields if isinstance(given, types.BaseNamedTuple) else [f"_{n}" for n in range(1, len(given) + 1)]
    columns = (_column(layout, name, item) for name, item in zip(names, given.types, strict=True))
    return Output(tuple(columns), "tuple")


def settle(layout: Layout, collected: Iterable[Any]) -> None:
    """Tell the layout what one `collect` takes. Raises TypingError if it does not fit to what others take."""
    for given in collected:
        found = output_of(layout, types.unliteral(given))
        layout.output = found if layout.output is None else _joined(layout, layout.output, found)


def _column(layout: Layout, name: str, item: Any) -> OutputColumn:
    item = types.unliteral(item)
    if isinstance(item, Opaque):
        return OutputColumn(name, "opaque", item.source)
    for kind, wanted in (("bool", types.Boolean), ("int", types.Integer), ("float", types.Float)):
        if isinstance(item, wanted):
            return OutputColumn(name, kind)  # type: ignore[arg-type]
    refuse(layout, f"out.collect takes numbers, bools and columns passed on; item {name} is {shown_type(item)}")


def _joined(layout: Layout, one: Output, other: Output) -> Output:
    kinds = joined_kinds(one, other)
    if kinds is None:
        refuse(layout, f"all records that are collected must be alike, found {one} and {other}")
    columns = (replace(column, kind=kind) for column, kind in zip(one.columns, kinds, strict=True))
    return Output(tuple(columns), one.form)


@lower_builtin(COLLECT, OutType, types.Any)
def _collect(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    out, given = sig.args
    layout, work = out.layout, view(context, builder, out, args[0]).work
    items = _items(context, builder, layout, given, args[1])
    values = [
        value if column.kind == "opaque" else context.cast(builder, value, kind, NUMBERS[column.kind])
        for column, kind, value in items
    ]
    if layout.numbers_rows:
        values.append(load_cell(builder, work, POSITION, changes=True))
    first = layout.first_output_cell
    added_row(context, builder, work, OUTPUT, range(first, first + len(values)), layout.stored, values)
    return context.get_dummy_value()


def _items(context: Any, builder: Any, layout: Layout, given: Any, value: Any) -> list[tuple[OutputColumn, Any, Any]]:
    """Each output column with the type and the machine value that it takes."""
    assert layout.output is not None
    if isinstance(given, RecordType):
        return [(layout.output.columns[0], given, view(context, builder, given, value).row)]
    if not isinstance(given, types.BaseTuple):
        return [(layout.output.columns[0], given, value)]
    items = cgutils.unpack_tuple(builder, value, len(given))
    return list(zip(layout.output.columns, map(types.unliteral, given.types), items, strict=True))
