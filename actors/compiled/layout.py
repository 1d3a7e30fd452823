"""Layout: what a compiled operator works on, and where the kernel finds it.

The kernel gets one table of 64-bit cells, the work table: addresses of the columns of a batch, of the state's arrays,
of the output's columns, the values of the operator's attributes, and a few numbers. This module says which cell is
which; it knows neither Numba nor a batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

Kind = Literal["int", "float", "bool", "opaque"]
"""A value's kind in the compiled function; an opaque one can only be passed on."""

POSITION, COUNT, CAPACITY, GROW, SLOTS, FIRST_FREE = range(6)
"""The first cells: the row at work; rows collected; rows that there is room for; the address of the function that makes
more room; the address of the rows' slots.
"""

_KINDS: Mapping[pa.DataType, tuple[Kind, str]] = {
    pa.bool_(): ("bool", "u1"),
    pa.int8(): ("int", "i1"),
    pa.int16(): ("int", "i2"),
    pa.int32(): ("int", "i4"),
    pa.int64(): ("int", "i8"),
    pa.uint8(): ("int", "u1"),
    pa.uint16(): ("int", "u2"),
    pa.uint32(): ("int", "u4"),
    pa.float32(): ("float", "f4"),
    pa.float64(): ("float", "f8"),
}
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
        return _KINDS.get(self.type, ("opaque", ""))[0]

    @property
    def stored(self) -> str:
        return _KINDS.get(self.type, ("opaque", ""))[1]


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
    output: Output | None = None
    """None: nothing is ever collected."""
    columns_read: set[int] = field(default_factory=set)
    """Indexes into `columns`."""
    keys_read: set[int] = field(default_factory=set)
    refusals: list[str] = field(default_factory=list)
    """Why the last thing that was tried cannot be compiled."""

    @property
    def cells(self) -> int:
        return self.first_output_cell + (len(self.output.columns) if self.output else 0)


def kind_of(value: Any) -> Kind | None:
    """The kind of a Python number; None for anything else, and for an integer that has more than 64 bits."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -(1 << 63) <= value < 1 << 63 else None
    return "float" if isinstance(value, float) else None
