"""How a heap snapshot holds keys and values: as columns, wherever they are numbers, or tuples of one length.

The writer shares the interpreter with the task, so an entry should cost it no function call: the entries are taken in
chunks, turned into NumPy arrays, dealt out to their key groups there, and written as bytes. Values that
are neither a number nor a tuple are plain data, one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import countOf
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ...messages import MalformedMessage
from ..columns.marshalled_columns import MAX_NESTED, Columns, columns_of_alike
from ..keys.key_groups import key_groups_of, key_groups_of_list
from ..kinds.record_serializer import Convert
from ..kinds.value_fit import Fit, Misfit, first_misfit

CHUNK_ENTRIES = 65_536
"""Entries handled by one call of NumPy, which lets no other thread run; at most 2**16, see `_KeyChunk`."""

_COLUMNS = frozenset((int, float, tuple))

Column: TypeAlias = "npt.NDArray[Any] | tuple[Column, ...]"
"""Numbers or objects; or tuples, by position."""

_INTEGERS = tuple(map(np.dtype, ("|i1", "<i2", "<i4", "<i8")))
_FLOATS = np.dtype("<f8")
_KINDS = frozenset(kind.str for kind in (*_INTEGERS, _FLOATS, np.dtype(np.bool_)))
_PLAIN, _TUPLES = "plain", "tuples"
_FEW_ITEMS = 64
"""Fewer than these are not worth working out of which shape they are."""


class WrongValue(Exception):
    """A value does not fit the type that its state is declared with."""

    def __init__(self, misfit: Misfit, key: Any) -> None:
        super().__init__(f"{misfit} for key {key!r:.60}")


class Piece(NamedTuple):
    """Entries of one key group. Keys and values are packed: `unpacked` makes lists of them again."""

    group: int
    keys: list[Any]
    values: list[Any]


class _Share(NamedTuple):
    """The keys of one key group in a chunk, at these places of its order."""

    group: int
    start: int
    end: int
    keys: list[Any]
    """Packed."""


class _KeyChunk(NamedTuple):
    """What is worked out for the keys of a chunk: the places of its entries, sorted by key group, and what is whose."""

    order: npt.NDArray[np.uint16]
    shares: Sequence[_Share]

    def key_at(self, position: int) -> Any:
        """The key of the entry at this position of the chunk, as it is stored."""
        place = int(np.flatnonzero(self.order == position)[0])
        share = next(share for share in self.shares if share.start <= place < share.end)
        return unpacked(share.keys)[place - share.start]


class KeyLayout:
    """The key chunks of one dict that earlier snapshots have made: they hold until a key is removed, since new keys
    come at a dict's end. Two writers at a time make the same.
    """

    def __init__(self) -> None:
        self.chunks: dict[int, _KeyChunk] = {}
        """The first full chunks, by number."""


@dataclass(slots=True)
class FrozenEntries:
    """The entries of one dict at one moment, in its order, by chunks. Used up by `pieces`."""

    layout: KeyLayout
    known: int
    """The number of chunks whose keys the layout has."""
    keys: list[list[Any]] = field(default_factory=list)
    """Of the chunks after these."""
    values: list[list[Any]] = field(default_factory=list)
    """Of all chunks."""


def is_worth_a_layout(entries: Mapping[Any, Any]) -> bool:
    return len(entries) >= CHUNK_ENTRIES


def freeze_entries(entries: dict[Any, Any], layout: KeyLayout) -> FrozenEntries:
    """What is held now; the dict may change as soon as this returns. Values are shared."""
    known = len(layout.chunks)
    new_keys = list(islice(reversed(entries), len(entries) - known * CHUNK_ENTRIES))
    new_keys.reverse()
    return FrozenEntries(layout, known, list(_chunks(new_keys)), list(_chunks(entries.values())))


def pieces(
    entries: FrozenEntries,
    max_parallelism: int,
    encode_key: Convert = None,
    encode: Convert = None,
    contents: Fit | None = None,
) -> Iterator[Piece]:
    """All entries, cut by key group, in several pieces for each; within a piece in their order.

    `contents`: what values must fit, if that is to be looked at. Raises WrongValue.
    """
    layout, number = entries.layout, 0
    values_left, keys_left = _last_first(entries.values), _last_first(entries.keys)
    while values_left:
        values = values_left.pop()  # so that what changed since is given up bit by bit
        if number < entries.known:
            chunk = layout.chunks[number]
        else:
            chunk = _key_chunk(keys_left.pop(), max_parallelism, encode_key)
            if len(values) == CHUNK_ENTRIES:
                layout.chunks[number] = chunk
        column = _column(values, encode, contents, chunk)
        for group, start, end, keys in chunk.shares:
            yield Piece(group, keys, packed(column, start, end))
        number += 1


def _column(values: list[Any], encode: Convert, contents: Fit | None, chunk: _KeyChunk) -> Column:
    """The values in the order of the chunk."""
    column = column_of(values) if encode is None else None
    if contents is None or (column is not None and contents.fits_column(column)):
        found = None
    else:
        found = first_misfit(contents, values)
    if found is not None:
        raise WrongValue(found[1], chunk.key_at(found[0]))
    return _taken(column_of(_encoded(values, encode)) if column is None else column, chunk.order)


def _key_chunk(keys: list[Any], max_parallelism: int, encode_key: Convert) -> _KeyChunk:
    column = column_of(_encoded(keys, encode_key))
    groups = _groups_of(keys, column if encode_key is None else None, max_parallelism)
    order = np.argsort(groups.astype(np.uint16), kind="stable").astype(np.uint16)  # NumPy sorts 16 bits by radix
    groups, column = groups[order], _taken(column, order)
    starts = np.flatnonzero(np.diff(groups, prepend=-1)).tolist()
    shares = [
        _Share(int(groups[start]), start, end, packed(column, start, end))
        for start, end in zip(starts, [*starts[1:], len(keys)], strict=True)
    ]
    return _KeyChunk(order, shares)


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


def _columns_of_tuples(items: list[tuple[Any, ...]], length: int, depth: int) -> Column:
    flat: list[Any] = []
    add = flat.extend
    for item in items:
        add(item)
    if countOf(map(type, flat), int) == len(flat):  # all at once, where all columns are alike
        column = _integers(flat)
        if column.dtype != object:
            return tuple(map(_narrowed, column.reshape(-1, length).T))
    return tuple(column_of(flat[at::length], depth + 1) for at in range(length))


def _integers(items: list[int]) -> npt.NDArray[Any]:
    """In as few bytes each as will do; as objects, if 64 bits are too few."""
    try:
        return _narrowed(np.fromiter(items, _INTEGERS[-1], len(items)))
    except OverflowError:
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


def _all_narrowed(columns: Columns) -> Column:
    if isinstance(columns, tuple):
        return tuple(map(_all_narrowed, columns))
    return columns if columns.dtype == _FLOATS else _narrowed(columns)


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


def _last_first(chunks: list[list[Any]]) -> list[list[Any]]:
    chunks.reverse()
    return chunks


def _chunks(items: Iterable[Any]) -> Iterator[list[Any]]:
    left = iter(items)
    while chunk := list(islice(left, CHUNK_ENTRIES)):
        yield chunk


def _encoded(items: list[Any], encode: Convert) -> list[Any]:
    return items if encode is None else [encode(item) for item in items]
