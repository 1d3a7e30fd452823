"""column_hash: `java_hash` of every value of an Arrow column at once, as `to_pylist` would give the values.

Integers, floats, times and texts are computed with NumPy; any other type is hashed once per distinct value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from ..columns.column_values import distinct_values, stored_type
from .key_hash import NEEDS_A_KEY, InvalidKey, java_hash

Hashes: TypeAlias = npt.NDArray[np.int32]
_Bytes: TypeAlias = npt.NDArray[np.uint8]

FEW = 4
"""At most this many keys are hashed sooner one by one than as a column."""

_CHUNK = 32_768
"""Integers hashed at a time: few enough that intermediate arrays stay in the cache."""
_CHUNK_BYTES = 1 << 18
"""The same of the bytes of texts; a longer text is hashed by itself."""

_PER_MICROSECOND = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}


def key_hashes(columns: Sequence[pa.Array], names: Sequence[str] = ()) -> Hashes:
    """The hash of each row's key: the bare value of a single column, the tuple of several.

    Raises InvalidKey for a null, naming the column and the row.
    """
    for position, column in enumerate(columns):
        check_no_null(column, repr(names[position]) if names else str(position))
    return combined([column_hash(column) for column in columns])


def combined(parts: Sequence[Hashes]) -> Hashes:
    """The hash of each tuple, from those of its parts; of a single part, the part's own."""
    if len(parts) == 1:
        return parts[0]
    found = np.ones(len(parts[0]), np.int32)
    for part in parts:
        found = found * np.int32(31) + part
    return found


def column_hash(column: pa.Array) -> Hashes:
    """`java_hash` of each value, none of which is null."""
    kind = column.type
    if pt.is_dictionary(kind):
        if column.dictionary.null_count:
            return column_hash(column.dictionary_decode())
        return _taken(column_hash(column.dictionary), column.indices.to_numpy())
    if pt.is_integer(kind) or pt.is_boolean(kind):
        return _integers(column)
    if pt.is_floating(kind):
        return _floats(column.to_numpy(zero_copy_only=False).astype(np.float64))
    if pt.is_timestamp(kind) or pt.is_duration(kind) or pt.is_time(kind):
        return _fold(_microseconds(column))
    if pt.is_date32(kind):
        return _narrow(column.view(pa.int32()).to_numpy())
    if pt.is_date64(kind):
        return _narrow(column.view(pa.int64()).to_numpy() // 86_400_000)
    if pt.is_nested(stored_type(kind)):
        return _each(column.to_pylist())
    values, places = distinct_values(column)
    return _taken(_distinct(values), places)


def hashes_of(keys: Sequence[Any]) -> Hashes:
    """`java_hash` of each key in a list; as a column where all keys are texts, integers of 64 bits or floats."""
    if len(keys) <= FEW:
        return _each(keys)
    kinds = set(map(type, keys))
    as_column = _AS_COLUMN.get(kinds.pop()) if len(kinds) == 1 else None
    if as_column is not None:
        with suppress(OverflowError, UnicodeEncodeError):  # a longer integer, half a surrogate pair
            return column_hash(as_column(keys))
    return _each(keys)


_AS_COLUMN: dict[type, Callable[[Sequence[Any]], pa.Array]] = {
    str: lambda keys: pa.array(keys, pa.large_string()),
    int: lambda keys: pa.array(np.fromiter(keys, np.int64, len(keys))),
    float: lambda keys: pa.array(np.fromiter(keys, np.float64, len(keys))),
}


def check_no_null(column: pa.Array, name: str) -> None:
    if pt.is_dictionary(column.type) and column.dictionary.null_count:
        column = column.dictionary_decode()
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise InvalidKey(f"key column {name} is None at record {row} of the batch; {NEEDS_A_KEY}")


def _taken(hashes: Hashes, places: npt.NDArray[Any]) -> Hashes:
    found: Hashes = hashes[places]
    return found


def _narrow(values: npt.NDArray[Any]) -> Hashes:
    return values.astype(np.int32, copy=False)


def _fold(values: npt.NDArray[np.int64]) -> Hashes:
    """Java's Long.hashCode."""
    return _narrow(values ^ (values >> 32))


def _integers(column: pa.Array) -> Hashes:
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype == np.uint64 and len(values) and values.max() >= 2**63:
        return _each(column.to_pylist())
    if values.dtype.itemsize < 4 or values.dtype == np.int32:
        return _narrow(values)
    found = np.empty(len(values), np.int32)
    for start in range(0, len(values), _CHUNK):
        wide = values[start : start + _CHUNK].astype(np.int64, copy=False)
        narrow = _narrow(wide)
        found[start : start + _CHUNK] = np.where(narrow == wide, narrow, _fold(wide))
    return found


def _floats(values: npt.NDArray[np.float64]) -> Hashes:
    """Double.hashCode, but a float that is an integer of 64 bits hashes as that integer."""
    canonical = np.where(np.isnan(values), np.nan, values)
    whole = (values == np.trunc(values)) & (values >= -(2.0**63)) & (values < 2.0**63)
    integers = np.where(whole, values, 0.0).astype(np.int64)
    narrow = _narrow(integers)
    of_integers = np.where(narrow == integers, narrow, _fold(integers))
    return np.where(whole, of_integers, _fold(canonical.view(np.int64)))


def _microseconds(column: pa.Array) -> npt.NDArray[np.int64]:
    """Timestamps, durations and times of day. Nanoseconds are rounded down."""
    unit = column.type.unit
    storage = pa.int32() if column.type.bit_width == 32 else pa.int64()
    values: npt.NDArray[np.int64] = column.view(storage).to_numpy().astype(np.int64)
    return values // 1000 if unit == "ns" else values * _PER_MICROSECOND[unit]


def _each(keys: Sequence[Any]) -> Hashes:
    return np.fromiter(map(java_hash, keys), np.int32, len(keys))


def _distinct(column: pa.Array) -> Hashes:
    kind = column.type
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind):
        return _texts(column.cast(pa.large_string()))
    return _each(column.to_pylist())


def _texts(column: pa.Array) -> Hashes:
    """String.hashCode; some at a time, as the numbers on the way take thirty times as much memory as the texts."""
    offsets, _ = _buffers(column)
    found, first = np.empty(len(column), np.int32), 0
    while first < len(column):
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _CHUNK_BYTES, "right")) - 1)
        found[first:last] = _some_texts(column[first:last])
        first = last
    return found


def _some_texts(column: pa.Array) -> Hashes:
    """As a polynomial over the bytes; a text that is not ASCII is hashed by itself.

    The polynomial is summed up for all texts together: each byte counts 31 to the power of its distance from the end of
    its text, and a text's hash is the difference of two running sums. All of it is modulo 2**32.
    """
    ends, data = _buffers(column)
    starts, ends = ends[:-1], ends[1:]
    lengths = ends - starts
    if not len(data):
        return np.zeros(len(column), np.int32)
    powers = _powers(int(lengths.max()))
    distance = np.repeat(ends, lengths) - 1 - np.arange(len(data))
    sums = np.concatenate((np.zeros(1, np.uint32), np.cumsum(data * powers[distance], dtype=np.uint32)))
    found = (sums[ends] - sums[starts]).view(np.int32)
    high = np.concatenate((np.zeros(1, np.int64), np.cumsum(data >= 0x80)))
    for index in np.flatnonzero(high[ends] != high[starts]):
        found[index] = java_hash(column[int(index)].as_py())
    return found


def _buffers(column: pa.Array) -> tuple[npt.NDArray[np.int64], _Bytes]:
    """Where texts begin and end, counted from 0, and their bytes. The column has 64-bit offsets."""
    _, offset_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0], data


def _powers(count: int) -> npt.NDArray[np.uint32]:
    powers = np.full(count, 31, np.uint32)
    powers[0] = 1
    return np.multiply.accumulate(powers)
