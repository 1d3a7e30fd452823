"""Arrow columns as NumPy arrays of 64 bits, and back: what a columnar table counts and compares with.

- `numbers_of`: values for arithmetic and order, as int64, uint64 or float64; times and dates count their own unit.
- `words_of`: values for equality alone, as int64; equal values have equal words, and a NaN equals every other.

Neither takes nulls. `column_of` and `column_of_words` are the way back.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

Numbers: TypeAlias = npt.NDArray[Any]
Words: TypeAlias = npt.NDArray[np.int64]

_DTYPES = {
    pa.from_numpy_dtype(name): np.dtype(name)
    for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}


def array_of(numbers: Numbers, absent: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers, not booleans, as an Arrow array of the same memory; null where `absent`.

    As `pa.array` does it, but that imports pandas with its first call, if that is installed: a third of a second.
    """
    values = np.ascontiguousarray(numbers)
    valid = None if absent is None else pa.py_buffer(np.packbits(~absent, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, pa.py_buffer(values)])


def numpy_of(column: pa.Array) -> Numbers:
    """Numbers without nulls as a NumPy array of the same memory, which is read-only; any other column as `to_numpy`
    has it, which imports pandas as `pa.array` does.
    """
    dtype = _DTYPES.get(column.type)
    if dtype is None or column.null_count:
        return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    data = column.buffers()[1]
    if data is None:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, len(column), column.offset * dtype.itemsize)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values: a dictionary's values, else the type itself."""
    return kind.value_type if pt.is_dictionary(kind) else kind


def is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind))


def is_ordered(kind: pa.DataType) -> bool:
    """Whether `numbers_of` takes this type."""
    return bool(is_number(kind) or pt.is_boolean(kind) or (pt.is_temporal(kind) and not pt.is_interval(kind)))


def number_dtype(kind: pa.DataType) -> np.dtype[Any]:
    """The type of `numbers_of`."""
    if pt.is_floating(kind):
        return np.dtype(np.float64)
    return np.dtype(np.uint64 if pt.is_unsigned_integer(kind) else np.int64)


def numbers_of(column: pa.Array) -> Numbers:
    kind = column.type
    if pt.is_temporal(kind):
        column = column.view(_storage(kind))
    return numpy_of(column).astype(number_dtype(kind), copy=False)


def column_of(numbers: Numbers, kind: pa.DataType, present: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """The column of type `kind` whose `numbers_of` these are; null where not `present`."""
    absent = None if present is None else ~present
    if absent is not None and not absent.any():
        absent = None
    if absent is not None:
        numbers = np.where(absent, numbers.dtype.type(0), numbers)
    column = array_of(numbers, absent)
    if pt.is_temporal(kind):
        return column.cast(_storage(kind)).view(kind)
    return column.cast(kind)


def words_of(column: pa.Array) -> Words:
    numbers = numbers_of(column)
    if numbers.dtype == np.float64:
        numbers = np.where(np.isnan(numbers), np.nan, numbers + 0.0)  # -0.0 + 0.0 is 0.0, and all NaNs become one
    return numbers.view(np.int64)


def column_of_words(words: Words, kind: pa.DataType) -> pa.Array:
    return column_of(words.view(number_dtype(kind)), kind)


def _storage(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()
