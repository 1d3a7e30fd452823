"""WordTable: words of 64 bits to slots, for many words at once. A slot is a small number: 0, 1, 2, ... as words come.

Open addressing with linear probing, in NumPy. Slots are never given up, and the word of a slot never changes; so words
of given slots may be read on another thread while new ones are added. Why it is not a library: docs/decisions/0007.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .column_values import Words

Slots: TypeAlias = npt.NDArray[np.int64]
_Places: TypeAlias = npt.NDArray[np.int32]

_GOLDEN = np.int64(-7046029254386353131)  # 2**64 divided by the golden ratio: Fibonacci hashing
_FEWEST_SLOTS = 1024
_PLACES_PER_SLOT = 4
_RANGE_PER_SLOT = 8
_FREE, _MARK = -1, -2
_CHUNK = 32_768
"""How many words are looked up at a time, so that what is computed for them stays in the cache."""


class WordTable:
    """A place holds a slot, and the slot's word is found by slot: so places are small, and more of them stay in the
    processor's cache. Words that lie close together, as ids do, are found by subtraction instead (`_Range`). Temporary
    arrays are kept, as fresh memory costs more than what is done with it here.
    """

    def __init__(self) -> None:
        self._count = 0
        self._words: Words = np.zeros(_FEWEST_SLOTS, np.int64)
        """By slot. It is replaced when it grows, and its filled part never changes."""
        self._scratch = _Scratch()
        self._range: _Range | None = None
        self._clear_places()

    @classmethod
    def of(cls, words: Words) -> WordTable:
        """A table of these words, which are all different and get slots in this order."""
        made = cls()
        if len(words):
            made._insert(words)
        return made

    def __len__(self) -> int:
        return self._count

    def words(self, slots: Slots) -> Words:
        """The words of these slots."""
        return self._words[slots]

    def slots_of(self, words: Words) -> Slots:
        """The slot of each word; new words get the next ones."""
        slots = np.empty(len(words), np.int64)
        for start in range(0, len(words), _CHUNK):
            self._fill(slots[start : start + _CHUNK], words[start : start + _CHUNK])
        return slots

    def _fill(self, slots: Slots, words: Words) -> None:
        slots[:] = self._find(words)
        if slots.min() < 0:
            missing = np.flatnonzero(slots < 0)
            slots[missing] = self._insert(words[missing])

    def _find(self, words: Words) -> _Places:
        """The slots, and -1 for a word that is not there. At most a chunk of words; valid until the next call."""
        places, slots, found, differ = self._scratch.of(len(words))
        if self._range is not None and self._range.find(words, places, slots):
            return slots
        np.multiply(words, _GOLDEN, out=places)
        home = places.view(np.uint64)
        np.right_shift(home, self._shift, out=home)
        self._places.take(places, out=slots, mode="clip")
        self._words.take(slots, out=found, mode="clip")  # of a free place it finds some word, and the slot stays -1
        np.not_equal(found, words, out=differ)
        wrong = np.flatnonzero(differ)
        if len(wrong):
            self._probe(slots, wrong[slots[wrong] >= 0], words, places)
        return slots

    def _probe(self, slots: _Places, wrong: Slots, words: Words, places: Slots) -> None:
        """Go on from place to place for the words at `wrong`, which found another word's slot at home."""
        words, places = words[wrong], places[wrong]
        while len(wrong):
            places = (places + 1) & self._mask
            found = self._places[places]
            slots[wrong] = found
            left = np.flatnonzero((self._words[found] != words) & (found >= 0))
            wrong, words, places = wrong[left], words[left], places[left]

    def _insert(self, words: Words) -> Slots:
        """Give slots to words that are not there, in their order; equal ones get one. Returns each word's slot."""
        first, grows = self._count, self._count + len(words) > len(self._words)
        if grows:
            self._grow(self._count + len(words))
        owners, places = self._claim(words)
        rows = np.flatnonzero(owners == np.arange(len(words)))
        new = words[rows]
        slots = np.empty(len(words), np.int64)
        slots[rows] = np.arange(first, first + len(rows))
        self._places[places[rows]] = slots[rows]
        self._words[first : first + len(rows)] = new
        self._count = first + len(rows)
        if self._range is None or not self._range.add(new, first):
            self._range = _Range.of(self._words[: self._count]) if grows or self._range is not None else None
        return slots[owners]

    def _claim(self, words: Words) -> tuple[Slots, Slots]:
        """For each word the row that stands for it, one of those with this word; and for that row, a place.

        Rows mark a free place with their number, and see whose mark stands there afterwards.
        """
        owners, taken = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
        rows, places = np.arange(len(words)), self._homes(words)
        while len(rows):
            free = self._places[places] == _FREE
            self._places[places[free]] = _MARK - rows[free]
            marks = _MARK - self._places[places].astype(np.int64)
            equal = (marks >= 0) & (words[np.maximum(marks, 0)] == words[rows])
            owners[rows[equal]] = marks[equal]
            taken[rows[equal]] = places[equal]
            left = ~equal
            rows, places = rows[left], (places[left] + 1) & self._mask
        return owners, taken

    def _grow(self, slots: int) -> None:
        """Have room for this many."""
        grown = np.zeros(_power_of_two(slots), np.int64)
        grown[: self._count] = self._words[: self._count]
        self._words = grown
        self._clear_places()
        self._place(np.arange(self._count))

    def _clear_places(self) -> None:
        """There are several times as many places as slots, so that probes are short. A free place has slot -1."""
        size = _PLACES_PER_SLOT * len(self._words)
        self._mask = size - 1
        self._shift = np.uint64(64 - self._mask.bit_length())
        self._places: _Places = np.full(size, _FREE, np.int32)

    def _homes(self, words: Words) -> Slots:
        return ((words * _GOLDEN).view(np.uint64) >> self._shift).view(np.int64)

    def _place(self, slots: Slots) -> None:
        """Put each slot at the first free place from its word's home on; where several want one, one gets it."""
        places = self._homes(self._words[slots])
        while len(slots):
            free = self._places[places] < 0
            self._places[places[free]] = slots[free]
            left = self._places[places] != slots
            slots, places = slots[left], (places[left] + 1) & self._mask


class _Range:
    """Slots by distance from the least word: for words that fill a good part of the range that they lie in."""

    def __init__(self, low: int, size: int) -> None:
        self._low = np.int64((low + 2**63) % 2**64 - 2**63)
        self._slots: _Places = np.full(size, -1, np.int32)

    @classmethod
    def of(cls, words: Words) -> _Range | None:
        """A range of these words, with room on both sides; None if it would be too large. Slots are 0, 1, 2, ..."""
        low, high = int(words.min()), int(words.max())
        size = high - low + 1
        if size > _RANGE_PER_SLOT * len(words):
            return None
        made = cls(low - size // 2, 2 * size)
        made.add(words, 0)
        return made

    def add(self, words: Words, first: int) -> bool:
        """Give slots from `first` on to words; False if some lie outside."""
        places = words - self._low
        if int(places.view(np.uint64).max()) >= len(self._slots):
            return False
        self._slots[places] = np.arange(first, first + len(words))
        return True

    def find(self, words: Words, places: Slots, slots: _Places) -> bool:
        """Fill in the slots, -1 for words that are not there; False, and nothing of use, if some lie outside."""
        np.subtract(words, self._low, out=places)
        if int(places.view(np.uint64).max()) >= len(self._slots):
            return False
        self._slots.take(places, out=slots, mode="clip")
        return True


class _Scratch:
    """Temporary arrays for one chunk."""

    def __init__(self) -> None:
        self._places = np.empty(_CHUNK, np.int64)
        self._slots = np.empty(_CHUNK, np.int32)
        self._found = np.empty(_CHUNK, np.int64)
        self._differ = np.empty(_CHUNK, np.bool_)

    def of(self, size: int) -> tuple[Slots, _Places, Words, npt.NDArray[np.bool_]]:
        return self._places[:size], self._slots[:size], self._found[:size], self._differ[:size]


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()
