"""TextIndex: texts and bytes to slots, a whole column at a time.

Values are hashed to words of 64 bits eight bytes at a time, found in a WordTable, and compared with the values that
are kept for the slots that it gives. Should two values have one word, all are hashed again in another way: so slots are
exact, whatever the values. Slots are as in key_index: never given up, and readable while new ones are added.
"""

from __future__ import annotations

import sys
from hashlib import blake2b
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from ..columns.column_values import Words
from .word_table import Slots, WordTable

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Unsigned: TypeAlias = npt.NDArray[np.uint64]

_N = TypeVar("_N", np.int64, np.uint8)

_WORD = 8
_LONG = 64 * _WORD
"""Values beyond this length are hashed one by one."""
_ENCODES_AFTER = 16
"""Batches looked up without a dictionary, after one in which most values were different."""

_ODD = 0x9E37_79B9_7F4A_7C15
_MASKS: _Unsigned = np.array([(1 << 8 * length) - 1 for length in range(_WORD + 1)], np.uint64)
_ALL = 0xFFFF_FFFF_FFFF_FFFF


def is_text(kind: pa.DataType) -> bool:
    """Whether a TextIndex takes this type."""
    return _is_string(kind) or bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind))


class TextIndex:
    """Slots of one column's values, none of which is null."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._wide = pa.large_string() if _is_string(kind) else pa.large_binary()
        self._kept = _KeptValues(self._wide)
        self._table = WordTable()
        self._seed = 0
        self._unencoded = 0

    def __len__(self) -> int:
        return len(self._table)

    def slots_of(self, column: pa.Array) -> Slots:
        """The slot of each value; a new value gets the next one."""
        if self._unencoded:
            self._unencoded -= 1
            return self._find_or_add(column.cast(self._wide))
        encoded = column.dictionary_encode()
        if 2 * len(encoded.dictionary) > len(column):
            self._unencoded = _ENCODES_AFTER
        slots = self._find_or_add(encoded.dictionary.cast(self._wide))
        taken: Slots = slots[encoded.indices.to_numpy()]
        return taken

    def find(self, column: pa.Array) -> Slots:
        """The slot of each value; -1 for one that is not there."""
        values, kept = column.cast(self._wide), self._kept.all()
        slots = self._table.find(_words_of(values, self._seed)).tolist()
        found = [
            slot if slot >= 0 and kept[slot].equals(value) else -1 for slot, value in zip(slots, values, strict=True)
        ]
        return np.array(found, np.int64)

    def values(self, slots: Slots) -> pa.Array:
        return self._kept.all().take(pa.array(slots)).cast(self._kind)

    def _find_or_add(self, values: pa.Array) -> Slots:
        # Invariant: slot i of the table is value i of `_kept`, and no two of `_kept` have one word. New values whose
        # words collide break it, which the comparison finds: then `_hash_anew` restores it, and the loop begins again.
        while True:
            known = len(self._table)
            slots = self._table.slots_of(_words_of(values, self._seed))
            if len(self._table) > known:
                self._kept.append(values.take(pa.array(_rows_of_new(slots, known, len(self._table)))))
            if self._kept.all().take(pa.array(slots)).equals(values):
                return slots
            self._hash_anew()

    def _hash_anew(self) -> None:
        """Two values have one word: choose other words, all different, for the values that are kept."""
        kept = self._kept.all()
        while True:
            self._seed += 1
            words = _words_of(kept, self._seed)
            if len(np.unique(words)) == len(kept):
                self._table = WordTable.of(words)
                return


class _KeptValues:
    """All values, by slot. What is there never changes, so an array made of it stays good."""

    def __init__(self, wide: pa.DataType) -> None:
        self._wide = wide
        self._count = 0
        self._offsets: npt.NDArray[np.int64] = np.zeros(1024, np.int64)
        self._bytes: _Bytes = np.zeros(1024, np.uint8)

    def all(self) -> pa.Array:
        offsets, data = pa.py_buffer(self._offsets), pa.py_buffer(self._bytes)
        return pa.Array.from_buffers(self._wide, self._count, [None, offsets, data])

    def append(self, values: pa.Array) -> None:
        offsets, data = _parts_of(values)
        end, count = int(self._offsets[self._count]), self._count + len(values)
        self._offsets = _grown(self._offsets, count + 1)
        self._bytes = _grown(self._bytes, end + len(data))
        self._offsets[self._count + 1 : count + 1] = offsets[1:] + end
        self._bytes[end : end + len(data)] = data
        self._count = count


def _grown(array: npt.NDArray[_N], size: int) -> npt.NDArray[_N]:
    if size <= len(array):
        return array
    grown = np.zeros(max(size, 2 * len(array)), array.dtype)
    grown[: len(array)] = array
    return grown


def _rows_of_new(slots: Slots, known: int, count: int) -> Slots:
    """A row of each slot from `known` on."""
    rows = np.flatnonzero(slots >= known)
    found = np.empty(count - known, np.int64)
    found[slots[rows] - known] = rows
    return found


def _words_of(values: pa.Array, seed: int) -> Words:
    """A hash of each value, in the way of this seed."""
    offsets, data = _parts_of(values)
    padded = np.zeros(len(data) + _WORD, np.uint8)
    padded[: len(data)] = data
    windows: _Unsigned = np.ndarray((len(data) + 1,), "<u8", padded, strides=(1,))
    starts, lengths = offsets[:-1], np.diff(offsets)
    odd = np.uint64((_ODD * (2 * seed + 1)) & _ALL)
    found = lengths.view(np.uint64) * odd
    for row in np.flatnonzero(lengths > _LONG).tolist():
        found[row] = _digest(data[offsets[row] : offsets[row + 1]], seed)
    rows: Slots | slice = slice(None)
    for start in range(0, min(int(lengths.max(initial=0)), _LONG), _WORD):
        left = lengths - start
        if start:
            rows = np.flatnonzero(left > 0)
        word = windows[starts[rows] + start] & _MASKS.take(left[rows], mode="clip")
        mixed = (found[rows] ^ word) * odd
        found[rows] = mixed ^ (mixed >> np.uint64(32))
    return found.view(np.int64)


def _digest(value: _Bytes, seed: int) -> int:
    return int.from_bytes(
        blake2b(value.data, digest_size=_WORD, salt=seed.to_bytes(_WORD, "little")).digest(), "little"
    )


def _parts_of(values: pa.Array) -> tuple[npt.NDArray[np.int64], _Bytes]:
    """Where values begin and end, counted from 0, and their bytes. The array has 64-bit offsets and no nulls."""
    _, offset_buffer, data_buffer = values.buffers()
    if not len(values):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(offset_buffer, np.int64)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0], data


def _is_string(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


assert sys.byteorder == "little", "words are read as the processor has them"
