"""The `out` of a compiled `process`: `collect` writes a row into arrays that grow when they are full.

All collects of an operator take one kind of row. Which, is known when the types of a whole function are: `settle` is
called between typing and machine code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate, bound_function, signature
from numba.extending import infer_getattr, lower_builtin

from .layout import CAPACITY, COUNT, GROW, STORED, Kind, Layout, Output, OutputColumn
from .machine_code import load_cell, raise_error, store_cell, store_number, view
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
    if one.form != other.form or [each.name for each in one.columns] != [each.name for each in other.columns]:
        refuse(layout, f"all records that are collected must be alike, found {_told(one)} and {_told(other)}")
    columns = []
    for first, second in zip(one.columns, other.columns, strict=True):
        kinds: set[Kind] = {first.kind, second.kind}
        if (len(kinds) > 1 and kinds != {"int", "float"}) or first.source != second.source:
            refuse(layout, f"all records that are collected must be alike, found {_told(one)} and {_told(other)}")
        columns.append(first if len(kinds) == 1 else OutputColumn(first.name, "float"))
    return Output(tuple(columns), one.form)


def _told(output: Output) -> str:
    if output.form == "record":
        return "the record itself"
    items = [f"column {each.source.name!r}" if each.source else each.kind for each in output.columns]
    return f"({', '.join(items)})" if output.form == "tuple" else items[0]


@lower_builtin(COLLECT, OutType, types.Any)
def _collect(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    out, given = sig.args
    layout, work = out.layout, view(context, builder, out, args[0]).work
    count = load_cell(builder, work, COUNT, changes=True)
    _make_room(context, builder, work, count)
    for place, (column, kind, value) in enumerate(_items(context, builder, layout, given, args[1])):
        address = load_cell(builder, work, layout.first_output_cell + place, changes=True)
        stored = value if column.kind == "opaque" else context.cast(builder, value, kind, NUMBERS[column.kind])
        store_number(builder, address, STORED[column.kind], count, stored)
    store_cell(builder, work, COUNT, builder.add(count, count.type(1)))
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


def _make_room(context: Any, builder: Any, work: Any, count: Any) -> None:
    """Call back into Python where the arrays are full; it puts larger ones in their place."""
    full = builder.icmp_signed(">=", count, load_cell(builder, work, CAPACITY, changes=True))
    with cgutils.if_unlikely(builder, full):
        function = ir.FunctionType(ir.VoidType(), []).as_pointer()
        builder.call(builder.inttoptr(load_cell(builder, work, GROW), function), [])
        still_full = builder.icmp_signed(">=", count, load_cell(builder, work, CAPACITY, changes=True))
        with cgutils.if_unlikely(builder, still_full):
            raise_error(context, builder, MemoryError, "no memory for what was collected")
