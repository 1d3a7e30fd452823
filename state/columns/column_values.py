"""Arrow columns as NumPy arrays of 64 bits, and back: what a columnar table counts and compares with.

- `numbers_of`: values for arithmetic and order, as int64, uint64 or float64; times and dates count their own unit.
- `words_of`: values for equality alone, as int64; equal values have equal words, and a NaN equals every other.

Neither takes nulls. `column_of` and `column_of_words` are the way back.

A snapshot stores integers in as few bytes each as hold all values of a column (`narrowed`): counts are small, and half
of a snapshot of counts and sums would be zeros. The schema that they are read back into says what they are (`widened`).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

Numbers: TypeAlias = npt.NDArray[Any]
Words: TypeAlias = npt.NDArray[np.int64]

_NARROW = tuple((np.iinfo(kind).min, np.iinfo(kind).max, kind) for kind in (np.int8, np.int16, np.int32))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values: a dictionary's values, else the type itself."""
    return kind.value_type if pt.is_dictionary(kind) else kind


def stored_type(kind: pa.DataType) -> pa.DataType:
    """As which type Arrow keeps values: that below an extension type, else the type itself."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def distinct_values(column: pa.Array) -> tuple[pa.Array, npt.NDArray[Any]]:
    """The stored values of a column, each once, and which of them each row has. Values of an extension type that are
    stored differently may be equal in Python.
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        values, places = distinct_values(column.storage)
        return pa.ExtensionArray.from_storage(kind, values), places
    if pt.is_decimal(kind) and kind.bit_width < 128:  # of these Arrow makes no dictionary
        values, places = distinct_values(column.cast(pa.decimal128(kind.precision, kind.scale)))
        return values.cast(kind), places
    encoded = column.dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy()


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
    found: Numbers = column.to_numpy(zero_copy_only=False).astype(number_dtype(kind), copy=False)
    return found


def column_of(numbers: Numbers, kind: pa.DataType, present: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """The column of type `kind` whose `numbers_of` these are; null where not `present`."""
    absent = None if present is None else ~present
    if absent is not None and not absent.any():
        absent = None
    if absent is not None:
        numbers = np.where(absent, numbers.dtype.type(0), numbers)
    column = pa.array(numbers, mask=absent)
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


def narrowed(column: pa.Array) -> pa.Array:
    """The same numbers in fewer bytes; another column, or one with nulls, as it is."""
    if column.type != pa.int64() or column.null_count or not len(column):
        return column
    values = column.to_numpy()
    least, greatest = values.min(), values.max()
    for low, high, kind in _NARROW:
        if low <= least and greatest <= high:
            return pa.array(values.astype(kind))
    return column


def widened(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """What was narrowed, as it was. Raises ValueError for columns that are not those of the schema."""
    return batch if batch.schema.equals(schema) else batch.cast(schema)


def _storage(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()
