"""Layout: what a compiled operator works on, and where the kernel finds it.

The kernel gets one table of 64-bit cells, the work table: addresses of the columns of a batch, of the state's arrays,
of the output's columns, the values of the operator's attributes, and a few numbers. This module says which cell is
which; it knows neither Numba nor a batch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

Method = Literal["process", "on_timer"]
Kind = Literal["int", "float", "bool", "opaque"]
"""A value's kind in the compiled function; an opaque one can only be passed on."""

POSITION, SLOTS, TIMES, WATERMARKS, FIRST_GROWING = range(5)
"""The first cells: the row at work; the addresses of the rows' slots, of their event times, and of their watermarks."""

OUTPUT, TIMER_LOG = FIRST_GROWING, FIRST_GROWING + 3
"""Where rows that grow are described: first those collected, then what happens to timers. For each: how many there are;
how many there is room for; the address of the function that makes more room.
"""

LOG_COLUMNS = range(TIMER_LOG + 3, TIMER_LOG + 6)
LOG_KINDS = ("i8", "i8", "u1")
"""The addresses of the log's columns: time, slot, and what becomes of the timer."""
DELETED, REGISTERED, DELETED_DUE = range(3)
"""In the log: the last one of a timer that is not after its record."""

LAST, TOUCHED, SLICE, FIRST_FREE = range(LOG_COLUMNS.stop, LOG_COLUMNS.stop + 4)
"""The addresses of `last` and `touched` of the SlotTimers; the number of the slice of timers that is at work."""

_KINDS: Mapping[int, tuple[Kind, str]] = {
    pa.bool_().id: ("bool", "u1"),
    pa.int8().id: ("int", "i1"),
    pa.int16().id: ("int", "i2"),
    pa.int32().id: ("int", "i4"),
    pa.int64().id: ("int", "i8"),
    pa.uint8().id: ("int", "u1"),
    pa.uint16().id: ("int", "u2"),
    pa.uint32().id: ("int", "u4"),
    pa.float32().id: ("float", "f4"),
    pa.float64().id: ("float", "f8"),
}
"""By the numbers of types: a user's own extension type has no hash."""
ARROW: Mapping[Kind, pa.DataType] = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
"""The types of output columns."""
STORED: Mapping[Kind, str] = {"int": "i8", "float": "f8", "bool": "u1", "opaque": "i8"}
"""How the kernel writes a value: an opaque one as the number of its row."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the input, or one part of the key. `stored`: NumPy's name of what lies in its buffer."""

    name: str
    type: pa.DataType
    cell: int
    """Where the address of its buffer is; that of its validity, a byte per row, or 0, is in the cell after it."""

    @property
    def kind(self) -> Kind:
        return _KINDS.get(self.type.id, ("opaque", ""))[0]

    @property
    def stored(self) -> str:
        return _KINDS.get(self.type.id, ("opaque", ""))[1]


@dataclass(frozen=True, slots=True)
class StateFields:
    """One declared state: the kinds of its value's fields, or of the one value."""

    attribute: str
    kinds: tuple[Kind, ...]
    is_tuple: bool
    named: type[Any] | None
    """The named tuple that a value is."""
    default: tuple[Any, ...] | None
    reduce: Any
    """The function of a ReducingState; None for a ValueState."""
    cell: int
    """Where the address of `present` is; those of the fields' arrays follow."""


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of what is collected. `source`: the column that is passed on, when it is opaque."""

    name: str
    kind: Kind
    source: Column | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """What one `collect` takes: a row of these columns, a bare value, or the record as it came."""

    columns: tuple[OutputColumn, ...]
    form: Literal["tuple", "value", "record"]

    def __str__(self) -> str:
        if self.form == "record":
            return "the record itself"
        items = [f"column {each.source.name!r}" if each.source else each.kind for each in self.columns]
        return f"({', '.join(items)})" if self.form == "tuple" else items[0]


@dataclass(slots=True)
class Layout:
    """Made before the kernel is compiled; what the compilation finds out is added by it."""

    columns: tuple[Column, ...]
    """Of the record."""
    keys: tuple[Column, ...]
    states: Mapping[str, StateFields]
    attributes: Mapping[str, tuple[Kind, int]]
    """The operator's own numbers that `process` may read, with their cells."""
    first_output_cell: int
    record_form: Literal["row", "dict", "dict row", "value"]
    """How the interpreted `process` would see a record: with attributes, with items by name, or as a bare value."""
    is_timed: bool = False
    """Whether rows have event times, and so what is collected has."""
    method: Method = "process"
    """What is compiled. The rows of `on_timer` are timers that are due: their keys, and their times."""
    output: Output | None = None
    """None: nothing is ever collected."""
    columns_read: set[int] = field(default_factory=set)
    """Indexes into `columns`."""
    keys_read: set[int] = field(default_factory=set)
    reads_watermark: bool = False
    uses_timers: bool = False
    """Whether it registers or deletes timers."""
    refusals: list[str] = field(default_factory=list)
    """Why the last thing that was tried cannot be compiled."""

    @property
    def cells(self) -> int:
        return self.first_output_cell + len(self.stored)

    @property
    def stored(self) -> list[str]:
        """How the kernel writes each column of what is collected; one more than there are if rows must be numbered."""
        if self.output is None:
            return []
        kinds = [STORED[column.kind] for column in self.output.columns]
        return [*kinds, STORED["opaque"]] if self.numbers_rows else kinds

    @property
    def numbers_rows(self) -> bool:
        """Whether the number of its row is written for each collected one, which has the row's event time; an opaque
        column is this number.
        """
        if not self.is_timed or self.output is None:
            return False
        return all(column.kind != "opaque" for column in self.output.columns)


def joined_kinds(
    one: Output, other: Output, is_same: Callable[[Column, Column], bool] = operator.eq
) -> list[Kind] | None:
    """The kinds of the columns that hold both: an int here and a float there is a float. None if they are not alike.

    `is_same`: of the columns that are passed on in one place.
    """
    if one.form != other.form or [each.name for each in one.columns] != [each.name for each in other.columns]:
        return None
    kinds: list[Kind] = []
    for first, second in zip(one.columns, other.columns, strict=True):
        is_float = {first.kind, second.kind} == {"int", "float"}
        if first.kind != second.kind and not is_float:
            return None
        if first.source is not None and second.source is not None and not is_same(first.source, second.source):
            return None
        kinds.append("float" if is_float else first.kind)
    return kinds


def kind_of(value: Any) -> Kind | None:
    """The kind of a Python number; None for anything else, and for an integer that has more than 64 bits."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -(1 << 63) <= value < 1 << 63 else None
    return "float" if isinstance(value, float) else None
