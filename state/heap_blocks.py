"""How a heap snapshot holds keys and values: as columns, wherever they are numbers, or tuples of one length.

The writer shares the interpreter with the task, so an entry should cost it no function call: the entries are taken in
chunks, turned into NumPy arrays, dealt out to their key groups there, and written as bytes. What is neither a number
nor a tuple is plain data, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..messages import MalformedMessage
from .key_groups import key_groups_of, key_groups_of_list
from .record_serializer import Convert

CHUNK_ENTRIES = 32_768
"""So many entries are handled by one call of NumPy, which lets no other thread run."""

Column: TypeAlias = "npt.NDArray[Any] | tuple[Column, ...]"
"""Numbers or objects; or tuples, by position."""

_INTEGERS = tuple(map(np.dtype, ("|i1", "<i2", "<i4", "<i8")))
_FLOATS = np.dtype("<f8")
_KINDS = frozenset(kind.str for kind in (*_INTEGERS, _FLOATS))
_PLAIN, _TUPLES = "plain", "tuples"
_MAX_NESTED = 4
"""Tuples within tuples that still become columns."""


class Piece(NamedTuple):
    """Entries of one key group. Keys and values are packed: `unpacked` makes lists of them again."""

    group: int
    first_key: Any
    keys: list[Any]
    values: list[Any]


def pieces(
    entries: Mapping[Any, Any], max_parallelism: int, encode_key: Convert = None, encode: Convert = None
) -> Iterator[Piece]:
    """All entries, cut by key group, in several pieces for each; within a piece in their order."""
    keys_left, values_left = iter(entries), iter(entries.values())
    while keys := list(islice(keys_left, CHUNK_ENTRIES)):
        key_column = column_of(_encoded(keys, encode_key))
        groups = _groups_of(keys, key_column if encode_key is None else None, max_parallelism)
        value_column = column_of(_encoded(list(islice(values_left, CHUNK_ENTRIES)), encode))
        order = np.argsort(groups.astype(np.uint16), kind="stable")  # 16 bits: NumPy sorts them by radix
        groups, key_column, value_column = groups[order], _taken(key_column, order), _taken(value_column, order)
        starts = np.flatnonzero(np.diff(groups, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(keys)], strict=True):
            packed_keys, packed_values = packed(key_column, start, end), packed(value_column, start, end)
            yield Piece(int(groups[start]), keys[order[start]], packed_keys, packed_values)


def column_of(items: list[Any], depth: int = 0) -> Column:
    """The items as a column."""
    kinds = set(map(type, items))
    if kinds == {int}:
        try:
            return _narrowed(np.fromiter(items, _INTEGERS[-1], len(items)))
        except OverflowError:
            pass  # more than 64 bits
    elif kinds == {float}:
        return np.fromiter(items, _FLOATS, len(items))
    elif kinds == {tuple} and depth < _MAX_NESTED:
        lengths = set(map(len, items))
        if len(lengths) == 1 and (length := lengths.pop()):
            flat = list(chain.from_iterable(items))
            return tuple(column_of(flat[at::length], depth + 1) for at in range(length))
    return np.fromiter(items, object, len(items))


def packed(column: Column, start: int, end: int) -> list[Any]:
    """A part of a column as plain data, if it holds plain data."""
    if isinstance(column, tuple):
        return [_TUPLES, *(packed(each, start, end) for each in column)]
    part = column[start:end]
    return [_PLAIN, part.tolist()] if part.dtype == object else [part.dtype.str, part.tobytes()]


def unpacked(content: Any) -> list[Any]:
    """The items. Raises MalformedMessage."""
    try:
        match content:
            case ["plain", list(items)]:
                return items
            case ["tuples", *columns] if columns:
                return list(zip(*map(unpacked, columns), strict=True))
            case [kind, bytes(data)] if kind in _KINDS:
                return np.frombuffer(data, kind).tolist()  # type: ignore[no-any-return]
    except ValueError as error:
        raise MalformedMessage(f"columns of keys or values that do not fit: {error}") from error
    raise MalformedMessage(f"wanted a column of keys or values, found {content!r:.60}")


def _narrowed(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same in as few bytes each as will do."""
    least, greatest = numbers.min(), numbers.max()
    kind = next(kind for kind in _INTEGERS if np.iinfo(kind).min <= least and greatest <= np.iinfo(kind).max)
    return numbers.astype(kind, copy=False)


def _taken(column: Column, order: npt.NDArray[Any]) -> Column:
    return tuple(_taken(each, order) for each in column) if isinstance(column, tuple) else column[order]


def _groups_of(keys: list[Any], column: Column | None, max_parallelism: int) -> npt.NDArray[np.int32]:
    if isinstance(column, np.ndarray) and column.dtype in _INTEGERS:
        return key_groups_of(column.astype(_INTEGERS[-1]), max_parallelism)
    return key_groups_of_list(keys, max_parallelism)


def _encoded(items: list[Any], encode: Convert) -> list[Any]:
    return items if encode is None else [encode(item) for item in items]
