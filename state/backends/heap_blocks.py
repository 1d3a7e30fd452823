"""Entries of a dict for a snapshot: frozen at one moment, taken in chunks, and cut by key group.

The writer shares the interpreter with the task, so an entry should cost it no function call: the entries of a chunk
become columns (packed_columns.py), and are dealt out to their key groups there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..columns.packed_columns import INTEGERS, Column, column_of, packed, taken, unpacked
from ..keys.key_groups import key_groups_of, key_groups_of_list
from ..kinds.record_serializer import Convert
from ..kinds.value_fit import Fit, first_misfit
from .keyed_snapshot import WrongValue

CHUNK_ENTRIES = 65_536
"""Entries handled by one call of NumPy, which lets no other thread run; at most 2**16, see `_KeyChunk`."""


class Piece(NamedTuple):
    """Entries of one key group. Keys, values and times are packed: `unpacked` makes lists of them again."""

    group: int
    keys: list[Any]
    values: list[Any]
    times: list[Any] | None = None


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
    times: list[list[Any]] = field(default_factory=list)
    """Of all chunks, if values have times."""


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
    values_left, keys_left, times_left = map(_last_first, (entries.values, entries.keys, entries.times))
    while values_left:
        values = values_left.pop()  # so that what changed since is given up bit by bit
        if number < entries.known:
            chunk = layout.chunks[number]
        else:
            chunk = _key_chunk(keys_left.pop(), max_parallelism, encode_key)
            if len(values) == CHUNK_ENTRIES:
                layout.chunks[number] = chunk
        column = _column(values, encode, contents, chunk)
        times = taken(column_of(times_left.pop()), chunk.order) if times_left else None
        for group, start, end, keys in chunk.shares:
            yield Piece(group, keys, packed(column, start, end), None if times is None else packed(times, start, end))
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
    return taken(column_of(_encoded(values, encode)) if column is None else column, chunk.order)


def _key_chunk(keys: list[Any], max_parallelism: int, encode_key: Convert) -> _KeyChunk:
    column = column_of(_encoded(keys, encode_key))
    groups = groups_of(keys, column if encode_key is None else None, max_parallelism)
    order = np.argsort(groups.astype(np.uint16), kind="stable").astype(np.uint16)  # NumPy sorts 16 bits by radix
    groups, column = groups[order], taken(column, order)
    starts = np.flatnonzero(np.diff(groups, prepend=-1)).tolist()
    shares = [
        _Share(int(groups[start]), start, end, packed(column, start, end))
        for start, end in zip(starts, [*starts[1:], len(keys)], strict=True)
    ]
    return _KeyChunk(order, shares)


def groups_of(keys: list[Any], column: Column | None, max_parallelism: int) -> npt.NDArray[np.int32]:
    """The key group of each key; `column`: the same keys, if they are stored as they are."""
    if isinstance(column, np.ndarray) and column.dtype in INTEGERS:
        return key_groups_of(column.astype(INTEGERS[-1]), max_parallelism)
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
