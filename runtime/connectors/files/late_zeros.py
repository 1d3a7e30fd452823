"""LateZeros: the bytes of a CSV file on their way to the parser, searched for values that lose their leading zeros.

A column whose values in the first megabyte are numbers is read as one, and a value such as 01234 behind that megabyte
would become 1234. A look at bytes finds where a zero and a digit begin a field, at a gigabyte a second; only such lines
are parsed, as text, to see in which column the field is.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

LEADING_ZERO = r"^\s*[-+]?0[0-9]"
_BETWEEN = np.zeros(256, np.bool_)
_BETWEEN[list(b" +-")] = True
_ZERO, _NINE = b"09"
_QUOTE = ord('"')

_Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
_Bits = np.ndarray[tuple[int], np.dtype[np.bool_]]


class LateZeros:
    """A file that can be read from its beginning, once. `numbers`: the columns that are read as numbers."""

    def __init__(
        self,
        file: BinaryIO,
        numbers: Collection[str],
        checked_bytes: int,
        delimiter: str = ",",
        encoding: str = "utf8",
    ) -> None:
        """`checked_bytes`: of the beginning, whose values are known. `encoding`: one that has ASCII as it is."""
        self._delimiter, self._encoding = delimiter, encoding
        self._before = np.zeros(256, np.bool_)
        """The bytes behind which a field may begin."""
        self._before[list(f'{delimiter}\n"'.encode())] = True
        self._file = file
        self._numbers = numbers
        self._checked = checked_bytes
        self._names: list[str] | None = None
        self._begun = b""
        """Of the row that is not complete yet."""
        self._is_quoted = False
        self.found: tuple[str, str] | None = None
        """A column and its value, once there is one."""

    @property
    def closed(self) -> bool:
        return self._file.closed

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        begun = b"\n" + self._begun + block
        if self._names is None:
            self._names = _header(block, self._delimiter, self._encoding)
            begun = b"\n" + block[block.find(b"\n") + 1 :]
        is_checked = self._checked >= len(block)
        self._checked -= len(block) if is_checked else 0
        data = np.frombuffer(begun, np.uint8)
        is_outside = _outside_of_quotes(data) if b'"' in block or self._is_quoted else None
        if not is_checked and self.found is None and (places := _field_begins(data, is_outside, self._before)):
            first, last = places
            begin = _row_end(begun, is_outside, 0, first) + 1
            self._look_at(begun[begin : _row_end_behind(begun, is_outside, last)])
        self._begun = begun[_row_end(begun, is_outside, 0, len(begun)) + 1 :]
        self._is_quoted = b'"' in self._begun
        return block

    def check(self) -> None:
        """Raises ValueError for a value that was found."""
        if self.found is not None:
            name, value = self.found
            raise ValueError(
                f"column {name!r} was taken for numbers, and later it has {value!r}, whose zeros a "
                "number would lose: say with schema= whether it is pa.string() or a number"
            )

    def _look_at(self, lines: bytes) -> None:
        names = self._names or []
        wanted = [name for name in names if name in self._numbers and names.count(name) == 1]
        if not wanted:
            return
        rows = pa.csv.read_csv(
            io.BytesIO(lines),
            read_options=pa.csv.ReadOptions(column_names=names, use_threads=False, block_size=len(lines) + 1),
            parse_options=pa.csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=lambda _row: "skip"
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types={name: pa.string() for name in wanted}, include_columns=wanted, check_utf8=False
            ),
        )
        for name in wanted:
            values = rows[name]
            zeros = values.filter(pc.match_substring_regex(values, LEADING_ZERO))
            if len(zeros):
                self.found = name, zeros[0].as_py()
                return


def _field_begins(data: _Bytes, is_outside: _Bits | None, begins: _Bits) -> tuple[int, int] | None:
    """The first and last place where a zero with a digit behind it may begin a field; a blank or a sign may stand
    before it. None: there is none."""
    zeros = np.flatnonzero(data[1:-1] == _ZERO) + 1
    zeros = zeros[data[zeros + 1] - np.uint8(_ZERO) <= _NINE - _ZERO]
    before = data[zeros - 1]
    may_begin = begins[before] | (_BETWEEN[before] & begins[data[zeros - 2]])
    if is_outside is not None:
        may_begin &= is_outside[zeros] | (before == _QUOTE)
    found = zeros[may_begin]
    return (int(found[0]), int(found[-1])) if found.size else None


def _outside_of_quotes(data: _Bytes) -> _Bits:
    """By byte: whether it is outside of quotes, as the first one is."""
    outside: _Bits = np.cumsum(data == _QUOTE, dtype=np.uint8) & 1 == 0
    return outside


def _row_end(text: bytes, is_outside: _Bits | None, begin: int, end: int) -> int:
    """The last end of a row in this part, or of a line if there is none; -1 if there is none of that either."""
    last = place = text.rfind(b"\n", begin, end)
    while is_outside is not None and place >= 0 and not is_outside[place]:
        place = text.rfind(b"\n", begin, place)
    return place if place >= 0 else last


def _row_end_behind(text: bytes, is_outside: _Bits | None, begin: int) -> int:
    """Behind the end of the row of this place."""
    place = text.find(b"\n", begin)
    while is_outside is not None and place >= 0 and not is_outside[place]:
        place = text.find(b"\n", place + 1)
    return len(text) if place < 0 else place + 1


def _header(block: bytes, delimiter: str, encoding: str) -> list[str]:
    """The names of the columns; none if they are not in this encoding."""
    try:
        line = block.split(b"\n", 1)[0].decode(encoding).removeprefix("\ufeff").rstrip("\r")
        return next(csv.reader(io.StringIO(line), delimiter=delimiter), [])
    except (UnicodeDecodeError, csv.Error):
        return []
