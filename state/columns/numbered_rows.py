"""Rows on a channel whose two ends both know their keys by number: NamedRows give numbers out, NumberedRows use them.

The first key that a channel's producer names has number 0, the next one 1, and so on; with number 0 it begins again. A
row that is numbered has no key columns, only numbers of 64 bits; columns that hold the same are sent once.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...messages import MalformedMessage
from .arrow_batches import Payload
from .column_values import Words

_N = TypeVar("_N", bound=np.generic)

KeyNumbers: TypeAlias = npt.NDArray[np.int32]
"""They ascend, and each is there once."""

_COUNTS = struct.Struct("<QHHxxxx")
"""Rows, columns that are sent, columns that there are."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedRows:
    """Rows with their keys, each of which is new to the channel: the first gets the number `first`, and so on."""

    first: int
    records: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.records)

    @property
    def nbytes(self) -> int:
        return int(self.records.nbytes)

    def cut(self, start: int, end: int) -> NamedRows:
        """The rows from `start` to `end`."""
        return NamedRows(self.first + start, self.records.slice(start, end - start))


@dataclass(frozen=True, slots=True, eq=False)
class NumberedRows:
    """Rows of keys that the channel has named before, and of each key one at most."""

    numbers: slice | KeyNumbers
    """The key of each row; a slice if none is left out."""
    values: tuple[Words, ...]
    """Different columns, whatever their types as words."""
    places: tuple[int, ...]
    """For each column there is, which of the values are its own."""
    packed: Payload | None = None
    """What `encode_numbered` returns of them, if it has been made."""

    @classmethod
    def gathered(
        cls,
        numbers: slice | KeyNumbers,
        columns: Sequence[Words],
        rows: npt.NDArray[np.intp],
        places: tuple[int, ...],
    ) -> NumberedRows:
        """Of these rows of the columns, whose keys have these numbers: copied once, to where they are sent from."""
        front = _front(numbers, len(rows), len(columns), places)
        memory = np.empty(len(front) // 8 + len(rows) * len(columns), "<i8")
        memory[: len(front) // 8] = np.frombuffer(front, "<i8")
        values = memory[len(front) // 8 :].reshape(len(columns), len(rows))
        for column, own in zip(columns, values, strict=True):
            column.take(rows, out=own, mode="clip")  # checking bounds takes as long as gathering
        return cls(numbers, tuple(values), places, memory.view(np.uint8).data)

    def __len__(self) -> int:
        return len(self.values[0])

    @property
    def nbytes(self) -> int:
        listed = 0 if isinstance(self.numbers, slice) else self.numbers.nbytes
        return listed + sum(each.nbytes for each in self.values)

    def cut(self, start: int, end: int) -> NumberedRows:
        """The rows from `start` to `end`."""
        numbers = part_of(self.numbers, start, end)
        return NumberedRows(numbers, tuple(each[start:end] for each in self.values), self.places)


def part_of(numbers: slice | npt.NDArray[_N], start: int, end: int) -> slice | npt.NDArray[_N]:
    """Those from `start` to `end`."""
    if isinstance(numbers, slice):
        return slice(numbers.start + start, numbers.start + end)
    return numbers[start:end]


def encode_numbered(rows: NumberedRows) -> tuple[int, Payload]:
    """The number of the first row's key if none is left out, else -1; and counts, places, numbers and values as bytes,
    each from a multiple of eight on.
    """
    first = rows.numbers.start if isinstance(rows.numbers, slice) else -1
    if rows.packed is not None:
        return first, rows.packed
    values = [np.ascontiguousarray(each, "<i8").data for each in rows.values]
    return first, b"".join((_front(rows.numbers, len(rows), len(values), rows.places), *values))


def _front(numbers: slice | KeyNumbers, count: int, sent: int, places: tuple[int, ...]) -> bytes:
    """All but the values."""
    packed = np.array(places, "<u2").tobytes()
    listed = b"" if isinstance(numbers, slice) else numbers.astype("<i4", copy=False).tobytes()
    head = _COUNTS.pack(count, sent, len(places))
    return b"".join((head, packed, _padding(packed), listed, _padding(listed)))


def decode_numbered(first: int, payload: Payload) -> NumberedRows:
    """What `encode_numbered` encoded, as views of the payload. Raises MalformedMessage."""
    data = memoryview(payload).cast("B")
    try:
        count, sent, columns = _COUNTS.unpack_from(data)
    except struct.error:
        raise MalformedMessage(f"wanted rows by number, found {bytes(data[:16])!r}") from None
    numbers_at = _padded(_COUNTS.size + 2 * columns)
    values_at = numbers_at if first >= 0 else _padded(numbers_at + 4 * count)
    if not count or not sent or len(data) != values_at + 8 * count * sent:
        raise MalformedMessage(f"wanted {count} rows of {sent} columns by number, found {len(data)} bytes")
    places = tuple(np.frombuffer(data, "<u2", columns, _COUNTS.size).tolist())
    if set(places) != set(range(sent)):
        raise MalformedMessage(f"wanted a place for each of {sent} columns, found {places}")
    numbers: slice | KeyNumbers = slice(first, first + count)
    if first < 0:
        numbers = np.frombuffer(data, "<i4", count, numbers_at)
        if numbers[0] < 0 or not (numbers[1:] > numbers[:-1]).all():
            raise MalformedMessage("wanted numbers of keys that ascend")
    values = tuple(np.frombuffer(data, "<i8", count, values_at + 8 * count * index) for index in range(sent))
    return NumberedRows(numbers, values, places)


def _padded(size_bytes: int) -> int:
    return size_bytes + -size_bytes % 8


def _padding(part: bytes) -> bytes:
    return bytes(-len(part) % 8)
