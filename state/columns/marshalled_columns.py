"""Columns out of many tuples of one shape, at one pass of Python's `marshal` over them.

It writes a number and its type's tag in few nanoseconds, where anything else that goes through the items asks each for
its type first. Tuples whose numbers have the same types, in the same places, become records of the same size, which
NumPy takes apart. The bytes never leave this module, so they need not be understood by another release of Python; and
each tag is compared with the wanted one, so a value of another shape is never mistaken.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"
Columns: TypeAlias = "Array | tuple[Columns, ...]"
"""int32, int64 or float64; or tuples, by position."""

Read: TypeAlias = Callable[[Array], Columns]
"""From records to the columns of one item."""

_SAMPLE = 64
"""The number of items looked at first, before the effort is made for all of them."""

MAX_NESTED = 4
"""Tuples within tuples that still become columns."""

_VERSION = 2
"""The last one that does not look for objects it has written before."""

_LIST_HEADER_BYTES = 5
_INT, _LONG, _FLOAT, _TUPLE = b"ilg("
_DIGIT_BITS, _MAX_DIGITS = 15, 5
_HIGHEST_DIGITS = 1 << (63 - _DIGIT_BITS * (_MAX_DIGITS - 1))
"""The last of five digits is below this, or 64 bits are too few."""


def columns_of_alike(items: list[Any]) -> Columns | None:
    """The columns of numbers, or of tuples of numbers, that are like the first; None if they are not, or not such.

    Like it: of the same lengths and types, and each integer of as many digits of 15 bits as the first's, where that is
    beyond 32 bits, and of the same sign.
    """
    layout = _Layout()
    read = layout.reader_of(items[0])
    if read is None or layout.records_of(items[:: len(items) // _SAMPLE + 1]) is None:
        return None
    records = layout.records_of(items)
    return None if records is None else read(records)


class _Layout:
    """The fields of one record, in order, and what must stand in some of them."""

    def __init__(self) -> None:
        self.fields: list[tuple[str, str]] = []
        self._wanted: list[tuple[str, int]] = []
        self._limits: list[tuple[str, int]] = []

    def reader_of(self, item: Any, depth: int = 0) -> Read | None:
        """Adds the fields of an item like this one; None if there are none for it."""
        kind = type(item)
        if kind is int:
            return self._integer(item)
        if kind is float:
            self._field("u1", _FLOAT)
            return _field_reader(self._field("<f8"))
        if kind is tuple and item and depth < MAX_NESTED:
            self._field("u1", _TUPLE)
            self._field("<i4", len(item))
            readers = [reader for each in item if (reader := self.reader_of(each, depth + 1))]
            return _tuple_reader(readers) if len(readers) == len(item) else None
        return None

    def records_of(self, items: list[Any]) -> Array | None:
        """The fields of all items; None if not all of them are of this layout."""
        kind = np.dtype(self.fields)
        try:
            data = marshal.dumps(items, _VERSION)
        except ValueError:  # something that is no plain data
            return None
        if len(data) != _LIST_HEADER_BYTES + kind.itemsize * len(items):
            return None
        records = np.frombuffer(data, kind, offset=_LIST_HEADER_BYTES)
        return records if self._fits(records) else None

    def _fits(self, records: Array) -> bool:
        return all((records[name] == wanted).all() for name, wanted in self._wanted) and all(
            (records[name] < limit).all() for name, limit in self._limits
        )

    def _integer(self, number: int) -> Read | None:
        if -(1 << 31) <= number < 1 << 31:
            self._field("u1", _INT)
            return _field_reader(self._field("<i4"))
        digits = -(number.bit_length() // -_DIGIT_BITS)
        if digits > _MAX_DIGITS:
            return None
        sign = 1 if number > 0 else -1
        self._field("u1", _LONG)
        self._field("<i4", sign * digits)
        names = [self._field("<u2") for _ in range(digits)]
        if digits == _MAX_DIGITS:
            self._limits.append((names[-1], _HIGHEST_DIGITS))
        return _digits_reader(names, sign)

    def _field(self, kind: str, wanted: int | None = None) -> str:
        name = str(len(self.fields))
        self.fields.append((name, kind))
        if wanted is not None:
            self._wanted.append((name, wanted))
        return name


def _field_reader(name: str) -> Read:
    return lambda records: np.ascontiguousarray(records[name])


def _tuple_reader(readers: list[Read]) -> Read:
    return lambda records: tuple(read(records) for read in readers)


def _digits_reader(names: list[str], sign: int) -> Read:
    """Of a number that stands in digits, the lowest first, without its sign."""

    def read(records: Array) -> Array:
        numbers = np.zeros(len(records), np.int64)
        for name in reversed(names):
            numbers <<= _DIGIT_BITS
            numbers |= records[name]
        return numbers * sign

    return read
