"""How the kernel's machine code reads and writes what the work table points to. LLVM values in, LLVM values out."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from .layout import Kind

INT8, INT64 = ir.IntType(8), ir.IntType(64)
_BITS = {"f4": ir.FloatType(), "f8": ir.DoubleType()}


def view(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The fields of a `self`, a record, a state or an `out`."""
    return cgutils.create_struct_proxy(kind)(context, builder, value=value)


def made_view(context: Any, builder: Any, kind: Any, work: Any, row: Any = None) -> Any:
    """A value of such a type. `row`: the row's number, or the slot of a state; an `out` has none."""
    made = cgutils.create_struct_proxy(kind)(context, builder)
    made.work = work
    if row is not None:
        made.row = row
    return made._getvalue()


def load_cell(builder: Any, work: Any, cell: int, *, changes: bool = False) -> Any:
    """`changes`: while the kernel runs; any other cell need be read only once."""
    loaded = builder.load(builder.gep(work, [INT64(cell)]))
    return loaded if changes else _for_good(builder, loaded)


def store_cell(builder: Any, work: Any, cell: int, value: Any) -> None:
    builder.store(value, builder.gep(work, [INT64(cell)]))


def load_item(builder: Any, address: Any, stored: str, row: Any) -> Any:
    """The item of a buffer of NumPy's type `stored`, as Numba holds numbers: 64 bits, or one for a bool's byte."""
    loaded = builder.load(_item(builder, address, stored, row))
    if stored[0] == "f":
        return loaded if stored == "f8" else builder.fpext(loaded, ir.DoubleType())
    if stored == "i8":
        return loaded
    return builder.zext(loaded, INT64) if stored[0] == "u" else builder.sext(loaded, INT64)


def load_number(builder: Any, address: Any, kind: Kind, stored: str, row: Any) -> Any:
    item = load_item(builder, address, stored, row)
    return builder.icmp_unsigned("!=", item, INT64(0)) if kind == "bool" else item


def store_number(builder: Any, address: Any, stored: str, row: Any, value: Any) -> None:
    """`value` as Numba holds it; a bool becomes a byte."""
    if stored == "u1":
        value = builder.zext(value, ir.IntType(8))
    builder.store(value, _item(builder, address, stored, row))


def raise_error(context: Any, builder: Any, error: type[Exception], *args: str) -> None:
    """End the function with this exception."""
    context.call_conv.return_user_exc(builder, error, args)


def as_tuple(context: Any, builder: Any, kind: Any, items: list[Any]) -> Any:
    """A value of the tuple type `kind`, or of a bare number's type, of these items."""
    if not isinstance(kind, types.BaseTuple):
        (item,) = items
        return item
    return context.make_tuple(builder, kind, items)


def _item(builder: Any, address: Any, stored: str, row: Any) -> Any:
    kind = _BITS.get(stored) or ir.IntType(8 * int(stored[1:]))
    return builder.gep(builder.inttoptr(address, kind.as_pointer()), [row])


def _for_good(builder: Any, loaded: Any) -> Any:
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded
