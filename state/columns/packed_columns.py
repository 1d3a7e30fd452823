"""Columns of values as a snapshot holds them: numbers as bytes, tuples of one length by position, all else one by one.

The writer of a snapshot shares the interpreter with the task, so a value should cost it no function call. `column_of`
makes a column of a list, `taken` sorts it, `packed` makes plain data of a part of it, and `unpacked` a list again.
"""

from __future__ import annotations

from operator import countOf
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...messages import MalformedMessage
from .marshalled_columns import MAX_NESTED, Columns, columns_of_alike

_COLUMNS = frozenset((int, float, tuple))

Column: TypeAlias = "npt.NDArray[Any] | tuple[Column, ...]"
"""Numbers or objects; or tuples, by position."""

INTEGERS = tuple(map(np.dtype, ("|i1", "<i2", "<i4", "<i8")))
"""The kinds of columns of integers, the narrowest first."""

_LIMITS = tuple((kind, np.iinfo(kind).min, np.iinfo(kind).max) for kind in INTEGERS)

_FLOATS = np.dtype("<f8")
_KINDS = frozenset(kind.str for kind in (*INTEGERS, _FLOATS, np.dtype(np.bool_)))
_PLAIN, _TUPLES, _SAME = "plain", "tuples", "same"
_FIXED = (type(None), bool, int, float, str, bytes)
"""Of these an item may stand for many: nobody can change it."""
_FEW_ITEMS = 64
"""Fewer than these are not worth working out of which shape they are."""


def column_of(items: list[Any], depth: int = 0) -> Column:
    """The items as a column."""
    if len(items) >= _FEW_ITEMS and (alike := columns_of_alike(items)) is not None:
        return _all_narrowed(alike)
    kind = type(items[0]) if items else None
    if kind in _COLUMNS and countOf(map(type, items), kind) == len(items):
        if kind is int:
            return _integers(items)
        if kind is float:
            return np.fromiter(items, _FLOATS, len(items))
        length = len(items[0])
        if length and depth < MAX_NESTED and countOf(map(len, items), length) == len(items):
            return _columns_of_tuples(items, length, depth)
    return np.fromiter(items, object, len(items))


def objects_alike(item: Any, count: int) -> npt.NDArray[Any]:
    """A column of one object."""
    column = np.empty(count, object)
    column.fill(item)
    return column


def _columns_of_tuples(items: list[tuple[Any, ...]], length: int, depth: int) -> Column:
    flat: list[Any] = []
    add = flat.extend
    for item in items:
        add(item)
    if countOf(map(type, flat), int) == len(flat):  # all at once, where all columns are alike
        column = _integers(flat)
        if column.dtype != object:
            return tuple(map(narrowed, column.reshape(-1, length).T))
    return tuple(column_of(flat[at::length], depth + 1) for at in range(length))


def _integers(items: list[int]) -> npt.NDArray[Any]:
    """In as few bytes each as will do; as objects, if 64 bits are too few."""
    try:
        return narrowed(np.fromiter(items, INTEGERS[-1], len(items)))
    except OverflowError:
        return np.fromiter(items, object, len(items))


def packed(column: Column, start: int, end: int) -> list[Any]:
    """A part of a column as plain data, if it holds plain data."""
    if isinstance(column, tuple):
        return [_TUPLES, *(packed(each, start, end) for each in column)]
    part = column[start:end]
    if part.dtype != object:
        return [part.dtype.str, part.tobytes()]
    items = part.tolist()
    return [_SAME, items[0], len(items)] if _are_one(items) else [_PLAIN, items]


def _are_one(items: list[Any]) -> bool:
    """Whether all are one object that cannot change, as the namespaces of most timers are."""
    if len(items) < 2 or items[0] is not items[-1]:
        return False
    kind = type(items[0])
    return (kind in _FIXED or (kind is tuple and not items[0])) and len(set(map(id, items))) == 1


def unpacked(content: Any) -> list[Any]:
    """The items. Raises MalformedMessage."""
    try:
        match content:
            case ["plain", list(items)]:
                return items
            case ["same", item, int(count)] if count > 0:
                return [item] * count
            case ["tuples", *columns] if columns:
                return list(zip(*map(unpacked, columns), strict=True))
            case [kind, bytes(data)] if kind in _KINDS:
                return np.frombuffer(data, kind).tolist()  # type: ignore[no-any-return]
    except ValueError as error:
        raise MalformedMessage(f"columns of keys or values that do not fit: {error}") from error
    raise MalformedMessage(f"wanted a column of keys or values, found {content!r:.60}")


def chosen(content: Any, places: list[int]) -> list[Any]:
    """The items of a packed column at these places, packed. It is one that `unpacked` takes."""
    match content:
        case ["tuples", *columns]:
            return [_TUPLES, *(chosen(each, places) for each in columns)]
        case ["plain", items]:
            return [_PLAIN, [items[place] for place in places]]
        case ["same", item, _]:
            return [_SAME, item, len(places)]
        case [kind, data]:
            return [kind, np.frombuffer(data, kind)[places].tobytes()]
    raise MalformedMessage(f"wanted a column of keys or values, found {content!r:.60}")


def taken(column: Column, order: npt.NDArray[Any]) -> Column:
    """The items at these positions, in this order."""
    return tuple(taken(each, order) for each in column) if isinstance(column, tuple) else column[order]


def _all_narrowed(columns: Columns) -> Column:
    if isinstance(columns, tuple):
        return tuple(map(_all_narrowed, columns))
    return columns if columns.dtype == _FLOATS else narrowed(columns)


def narrowed(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same in as few bytes each as will do."""
    least, greatest = numbers.min(), numbers.max()
    kind = next(kind for kind, low, high in _LIMITS if low <= least and greatest <= high)
    return numbers.astype(kind, copy=False)
