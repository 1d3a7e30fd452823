"""The `record` of a compiled `process`: its columns by attribute, position or name, each loaded when it is used."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, signature
from numba.extending import infer, infer_getattr, lower_builtin, lower_getattr_generic

from ...messages.missing_column import those_there_are
from ...messages.row import row_type
from .errors import NullRead
from .layout import Column, Layout
from .machine_code import INT64, load_cell, load_number, raise_error, view
from .refusal import refuse
from .types import RecordType, column_type


def load_column(context: Any, builder: Any, column: Column, work: Any, row: Any) -> Any:
    """The column's value in this row. Ends the function with NullRead where it is null."""
    if column.kind == "opaque":
        return row
    validity = load_cell(builder, work, column.cell + 1)
    with cgutils.if_unlikely(builder, builder.icmp_unsigned("!=", validity, INT64(0))):
        valid = load_number(builder, validity, "bool", "u1", row)
        with cgutils.if_unlikely(builder, builder.not_(valid)):
            text = f"column {column.name!r} is null here: a compiled function has no None"
            raise_error(context, builder, NullRead, text)
    return load_number(builder, load_cell(builder, work, column.cell), column.kind, column.stored, row)


def load_columns(context: Any, builder: Any, record: Any, value: Any, indexes: Any) -> list[Any]:
    """The columns with these indexes, of a record of type `record`. The layout remembers that they are read."""
    seen = view(context, builder, record, value)
    record.layout.columns_read.update(indexes)
    return [load_column(context, builder, record.layout.columns[index], seen.work, seen.row) for index in indexes]


def _attributes(layout: Layout) -> tuple[str, ...]:
    """The columns' names as attributes of the interpreted record."""
    fields: tuple[str, ...] = row_type(tuple(column.name for column in layout.columns))._fields
    return fields


def _place(layout: Layout, item: Any) -> int:
    """The index of `record[item]`."""
    names = [column.name for column in layout.columns]
    if isinstance(item, str) and item in names:
        return names.index(item)
    if layout.record_form in ("dict", "dict row"):
        refuse(layout, f"record has no item {item!r}; it is a dict of {those_there_are(item, names)}")
    if isinstance(item, int) and -len(names) <= item < len(names):
        return item % len(names)
    refuse(layout, f"record has no item {item!r}; its columns are {those_there_are(item, names)}")


@infer_getattr
class _RecordAttribute(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, record: Any, name: str) -> Any:
        layout = record.layout
        if layout.record_form == "dict":
            refuse(layout, f"record is a dict: write record[{name!r}], not record.{name}")
        if layout.record_form == "dict row" and hasattr(dict, name):
            refuse(layout, f"record.{name} is a method of dict: write record[{name!r}] for the column")
        if name not in _attributes(layout):
            refuse(layout, f"record has no column {name!r}; it has {those_there_are(name, _attributes(layout))}")
        return column_type(layout.columns[_attributes(layout).index(name)])


@lower_getattr_generic(RecordType)
def _load_attribute(context: Any, builder: Any, record: Any, value: Any, name: str) -> Any:
    (loaded,) = load_columns(context, builder, record, value, [_attributes(record.layout).index(name)])
    return loaded


@infer
class _RecordItem(AbstractTemplate):
    key = "static_getitem"

    def generic(self, args: Any, kws: Any) -> Any:
        record, item = args
        if not isinstance(record, RecordType):
            return None
        return signature(column_type(record.layout.columns[_place(record.layout, item)]), *args)


@lower_builtin("static_getitem", RecordType, types.IntegerLiteral)
@lower_builtin("static_getitem", RecordType, types.StringLiteral)
def _load_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    record = sig.args[0]
    (loaded,) = load_columns(context, builder, record, args[0], [_place(record.layout, args[1])])
    return loaded
