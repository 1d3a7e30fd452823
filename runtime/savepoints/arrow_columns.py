"""Stored keys and values as Arrow columns, and columns of several types as one.

Numbers that a snapshot packs are taken over as they lie. Where a schema says the type of what is inside a list, a map
or a record, the column has that type; elsewhere the values say it. A tuple becomes a struct with the fields `_1`, `_2`,
..., and values of which Arrow has no type, or which have several, become text: their `repr`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from ...messages import Row
from ...state.columns.packed_columns import unpacked
from .stored_types import ListType, MapType, OptionalType, PlainType, RecordType, StoredType

_NUMBERS = {
    "|i1": pa.int64(),
    "<i2": pa.int64(),
    "<i4": pa.int64(),
    "<i8": pa.int64(),
    "<f8": pa.float64(),
    "|b1": pa.bool_(),
}
_PLAIN = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "str": pa.string(), "bytes": pa.binary()}
_TAKEN = frozenset({int, float, bool, str, bytes, type(None), date, datetime, time, timedelta, Decimal})
"""What Arrow has types for."""

_MOST_FIELDS = 100
"""A dict of texts with more keys than these, over all values, is a map and no struct."""

_NOT_CONVERTED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError)


def packed_column(content: Any, kind: StoredType) -> pa.Array:
    """The column of packed keys or values. Raises MalformedMessage."""
    match content:
        case [str(number), bytes(data)] if number in _NUMBERS and isinstance(kind, PlainType):
            found = pa.array(np.frombuffer(data, number)).cast(_NUMBERS[number])
            wanted = _PLAIN.get(kind.name, found.type)
            return found if found.type == wanted else _cast(found, wanted)
        case ["tuples", *columns] if columns and isinstance(kind, PlainType):
            plain = PlainType("", None)
            return pa.StructArray.from_arrays(
                [packed_column(each, plain) for each in columns], names=[f"_{at}" for at in range(1, len(columns) + 1)]
            )
    return column_of(unpacked(content), kind)


def column_of(values: Sequence[Any], kind: StoredType) -> pa.Array:
    """The column of values as a snapshot holds them, unpacked; None is null."""
    match kind:
        case OptionalType():
            return column_of(values, kind.inner)
        case ListType():
            lists = [() if each is None else each for each in values]
            inner = column_of([item for each in lists for item in each], kind.item)
            return pa.ListArray.from_arrays(_offsets(lists), inner, mask=_nulls(values))
        case MapType():
            maps = [{} if each is None else each for each in values]
            keys = column_of([key for each in maps for key in each], kind.key)
            items = column_of([item for each in maps for item in each.values()], kind.value)
            return pa.MapArray.from_arrays(_offsets(maps), keys, items, mask=_nulls(values))
        case RecordType():
            absent = [None] * len(kind.fields)
            rows = [absent if each is None else each for each in values]
            columns = [column_of([row[at] for row in rows], each) for at, each in enumerate(kind.fields.values())]
            if not columns:
                return pa.array([None if each is None else {} for each in values], pa.struct([]))
            return pa.StructArray.from_arrays(columns, names=list(kind.fields), mask=_nulls(values))
        case PlainType() if kind.name in _PLAIN:
            try:
                return pa.array(values, _PLAIN[kind.name])
            except _NOT_CONVERTED:  # an integer beyond 64 bits, half a surrogate pair
                return _texts(values)
    return inferred(values)


def inferred(values: Sequence[Any]) -> pa.Array:
    """The column of any values; what they are says its type."""
    kinds = set(map(type, values))
    if not kinds <= _TAKEN:
        return _of_shaped(values, kinds)
    try:
        if len(kinds - {type(None)}) <= 1 or kinds <= {int, float, type(None)}:
            return pa.array(values)
    except _NOT_CONVERTED:
        pass
    return _texts(values)


def unified(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type of a column that has chunks of these types."""
    found = pa.null()
    for each in types:  # no set: a user's own extension type has no hash
        found = _both(found, each)
    return found


def as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else _cast(column, kind)


def _both(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or pt.is_null(other):
        return one
    if pt.is_null(one):
        return other
    if (one, other) in ((pa.int64(), pa.float64()), (pa.float64(), pa.int64())):
        return pa.float64()
    if pt.is_struct(one) and pt.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = _both(fields.get(field.name, pa.null()), field.type)
        return pa.struct(list(fields.items()))
    if pt.is_map(one) and pt.is_map(other):
        return pa.map_(_both(one.key_type, other.key_type), _both(one.item_type, other.item_type))
    if pt.is_list(one) and pt.is_list(other):
        return pa.list_(_both(one.value_type, other.value_type))
    return pa.string()


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values keep what they are, or become text."""
    if pt.is_null(column.type):
        return pa.nulls(len(column), kind)
    if pt.is_string(kind):
        return column.cast(kind) if pt.is_large_string(column.type) else _texts(_values_of(column))
    if pt.is_struct(kind):
        parts = {field.name: column.field(field.name) for field in column.type}
        nulls = {field.name: pa.nulls(len(column), field.type) for field in kind}
        arrays = [
            as_type(parts[field.name], field.type) if field.name in parts else nulls[field.name] for field in kind
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=column.is_null())
    if pt.is_list(kind):
        inner = as_type(column.flatten(), kind.value_type)
        return pa.ListArray.from_arrays(_lengths_to_offsets(column.value_lengths()), inner, mask=column.is_null())
    if pt.is_map(kind):
        keys, items = as_type(column.keys, kind.key_type), as_type(column.items, kind.item_type)
        return pa.MapArray.from_arrays(column.offsets, keys, items, mask=column.is_null())
    return column.cast(kind, safe=False)  # of integers to floats: as Python compares them


def _values_of(column: pa.Array) -> list[Any]:
    """Python's values; tuples again where `_of_shaped` has made columns of their parts."""
    values: list[Any] = column.to_pylist()
    if pt.is_struct(column.type) and [field.name for field in column.type] == _names(column.type.num_fields):
        return [None if each is None else tuple(each.values()) for each in values]
    return values


def _names(parts: int) -> list[str]:
    """Of the parts of a tuple."""
    return [f"_{at}" for at in range(1, parts + 1)]


def _of_shaped(values: Sequence[Any], kinds: set[type]) -> pa.Array:
    """Of values some of which are tuples, lists, dicts, records, ..."""
    shaped = kinds - {type(None)}
    some = [each for each in values if each is not None]
    if all(issubclass(each, dict | Row) for each in shaped):
        return _of_dicts([None if each is None else _as_dict(each) for each in values])
    if shaped == {tuple} and len({len(each) for each in some}) == 1 and len(some[0]):
        names = _names(len(some[0]))
        return _of_dicts([None if each is None else dict(zip(names, each, strict=True)) for each in values])
    if shaped <= {list, tuple, set, frozenset, np.ndarray}:
        lists = [() if each is None else _as_list(each) for each in values]
        inner = inferred([item for each in lists for item in each])
        return pa.ListArray.from_arrays(_offsets(lists), inner, mask=_nulls(values))
    return _texts(values)


def _of_dicts(values: Sequence[dict[Any, Any] | None]) -> pa.Array:
    maps = [{} if each is None else each for each in values]
    names = dict.fromkeys(key for each in maps for key in each)
    if names and len(names) <= _MOST_FIELDS and all(type(name) is str for name in names):
        columns = [inferred([each.get(name) for each in maps]) for name in names]
        return pa.StructArray.from_arrays(columns, names=list(names), mask=_nulls(values))
    keys, items = (
        inferred([key for each in maps for key in each]),
        inferred([v for each in maps for v in each.values()]),
    )
    return pa.MapArray.from_arrays(_offsets(maps), keys, items, mask=_nulls(values))


def _as_dict(value: Any) -> dict[Any, Any]:
    return dict(zip(value._columns, value, strict=True)) if isinstance(value, Row) else value


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        listed: list[Any] = value.tolist()
        return listed if isinstance(listed, list) else [listed]
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else list(value)


def _texts(values: Sequence[Any]) -> pa.Array:
    texts = [None if each is None else each if type(each) is str else repr(each) for each in values]
    return pa.array(
        [each if each is None else each.encode(errors="backslashreplace").decode() for each in texts], pa.string()
    )


def _offsets(sized: Sequence[Any]) -> pa.Array:
    return pa.array(list(accumulate(map(len, sized), initial=0)), pa.int32())


def _lengths_to_offsets(lengths: pa.Array) -> pa.Array:
    return pa.array(list(accumulate((each or 0 for each in lengths.to_pylist()), initial=0)), pa.int32())


def _nulls(values: Sequence[Any]) -> pa.Array | None:
    absent = [each is None for each in values]
    return pa.array(absent) if any(absent) else None
