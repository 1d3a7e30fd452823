"""KeyIndex: key columns to slots. A slot is a small number that stands for one key: 0, 1, 2, ... as keys come.

Slots are never given up, and the key of a slot never changes; so keys of given slots may be read on another thread
while new ones are added. Key columns hold no nulls.

Keys of 64 bits are found in an open-addressing hash table, probed for a whole batch at once; other types by a dict,
once per distinct value of a batch; several columns by a table over pairs of their slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from .column_values import Words, column_of_words, is_ordered, words_of

Slots: TypeAlias = npt.NDArray[np.int64]

_GOLDEN = np.int64(-7046029254386353131)  # 2**64 divided by the golden ratio: Fibonacci hashing
_SMALLEST_TABLE = 1024
_LOW_WORD = 0xFFFF_FFFF


class ColumnIndex(Protocol):
    """Slots of one column's values."""

    def slots_of(self, column: pa.Array) -> Slots: ...

    def values(self, slots: Slots) -> pa.Array: ...

    def __len__(self) -> int: ...


class KeyIndex:
    """Slots of keys of one or several columns."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        assert types, "a key has at least one column"
        self._columns = [column_index(kind) for kind in types]
        self._pairs = [WordTable() for _ in types[1:]]

    def __len__(self) -> int:
        return len(self._pairs[-1]) if self._pairs else len(self._columns[0])

    def slots_of(self, columns: Sequence[pa.Array]) -> Slots:
        """The slot of each row's key; a new key gets the next one."""
        slots = self._columns[0].slots_of(columns[0])
        for pairs, index, column in zip(self._pairs, self._columns[1:], columns[1:], strict=True):
            slots = pairs.slots_of(slots << 32 | index.slots_of(column))
        return slots

    def keys(self, slots: Slots) -> list[pa.Array]:
        """The key columns of these slots."""
        found = []
        for pairs, index in zip(reversed(self._pairs), reversed(self._columns), strict=False):
            words = pairs.words(slots)
            found.append(index.values(words & _LOW_WORD))
            slots = words >> 32
        return [self._columns[0].values(slots), *reversed(found)]


def column_index(kind: pa.DataType) -> ColumnIndex:
    """The index for a column of this type. Raises ValueError for a type that cannot be a key."""
    if is_ordered(kind):
        return FixedIndex(kind)
    if pt.is_nested(kind) or pt.is_null(kind):
        raise ValueError(f"a column of type {kind} cannot be a key")
    return DistinctIndex(kind)


class FixedIndex:
    """Values of at most 64 bits: numbers, booleans, dates and times."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._table = WordTable()

    def __len__(self) -> int:
        return len(self._table)

    def slots_of(self, column: pa.Array) -> Slots:
        return self._table.slots_of(words_of(column))

    def values(self, slots: Slots) -> pa.Array:
        return column_of_words(self._table.words(slots), self._kind)


class DistinctIndex:
    """Values of any other type, such as texts."""

    def __init__(self, kind: pa.DataType) -> None:
        self._slots: dict[object, int] = {}
        self._values = pa.array([], kind)

    def __len__(self) -> int:
        return len(self._slots)

    def slots_of(self, column: pa.Array) -> Slots:
        encoded = column.dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        known = len(self._slots)
        slots = [self._slots.setdefault(value, len(self._slots)) for value in distinct]
        found = np.array(slots, np.int64)
        if len(self._slots) > known:
            self._values = pa.concat_arrays([self._values, encoded.dictionary.filter(pa.array(found >= known))])
        taken: Slots = found[encoded.indices.to_numpy()]
        return taken

    def values(self, slots: Slots) -> pa.Array:
        return self._values.take(pa.array(slots))


class WordTable:
    """A hash table from words of 64 bits to slots, with linear probing, for many words at once."""

    def __init__(self) -> None:
        self._count = 0
        self._words: Words = np.empty(_SMALLEST_TABLE // 2, np.int64)
        """By slot. It is replaced when it grows, and its filled part never changes."""
        self._clear_places(_SMALLEST_TABLE)

    def __len__(self) -> int:
        return self._count

    def words(self, slots: Slots) -> Words:
        """The words of these slots."""
        return self._words[slots]

    def slots_of(self, words: Words) -> Slots:
        """The slot of each word; new words get the next ones."""
        slots = self._find(words)
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            self._add(np.unique(words[missing]))
            slots[missing] = self._find(words[missing])
        return slots

    def _find(self, words: Words) -> Slots:
        """The slots, and -1 for a word that is not there."""
        places = self._home(words)
        slots = self._place_slots[places]
        wrong = np.flatnonzero((self._place_words[places] != words) & (slots >= 0))
        while len(wrong):
            places[wrong] = probed = (places[wrong] + 1) & self._place_mask
            slots[wrong] = found = self._place_slots[probed]
            wrong = wrong[(self._place_words[probed] != words[wrong]) & (found >= 0)]
        return slots

    def _add(self, words: Words) -> None:
        """Give slots to words that are all new and all different."""
        first, self._count = self._count, self._count + len(words)
        if self._count > len(self._words):
            grown = np.empty(_power_of_two(self._count), np.int64)
            grown[:first] = self._words[:first]
            self._words = grown
            self._clear_places(2 * len(grown))
            self._words[first : self._count] = words
            self._place(np.arange(self._count))
        else:
            self._words[first : self._count] = words
            self._place(np.arange(first, self._count))

    def _clear_places(self, size: int) -> None:
        """There are twice as many places as slots, so that probes are short. A free place has slot -1."""
        self._place_mask = size - 1
        self._shift = np.uint64(64 - self._place_mask.bit_length())
        self._place_words: Words = np.zeros(size, np.int64)
        self._place_slots: Slots = np.full(size, -1, np.int64)

    def _place(self, slots: Slots) -> None:
        """Put each slot at the first free place from its word's home on; where several want one, one gets it."""
        words = self._words[slots]
        places = self._home(words)
        while len(slots):
            free = self._place_slots[places] < 0
            self._place_slots[places[free]] = slots[free]
            placed = self._place_slots[places] == slots
            self._place_words[places[placed]] = words[placed]
            left = ~placed
            slots, words, places = slots[left], words[left], (places[left] + 1) & self._place_mask

    def _home(self, words: Words) -> Slots:
        return ((words * _GOLDEN).view(np.uint64) >> self._shift).view(np.int64)


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()
