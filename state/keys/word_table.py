"""WordTable: words of 64 bits to slots, for many words at once. A slot is a small number: 0, 1, 2, ... as words come.

Open addressing with linear probing, in NumPy. Slots are never given up, and the word of a slot never changes; so words
of given slots may be read on another thread while new ones are added. Why it is not a library: docs/decisions/0007.

Invariants. From a word's home to its place no place is free: nothing is ever removed, so a search may stop at the first
free place. Each word has one slot. At most a quarter of the places are taken, so probes stay short and always end.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..columns.column_values import Words
from .word_range import WordRange, is_dense

Slots: TypeAlias = npt.NDArray[np.int64]
_Places: TypeAlias = npt.NDArray[np.int32]

_GOLDEN = np.int64(-7046029254386353131)  # 2**64 divided by the golden ratio: Fibonacci hashing
_FEWEST_SLOTS = 1024
_PLACES_PER_SLOT = 4
_FREE, _MARK = -1, -2
_CHUNK = 32_768
"""How many words are looked up at a time, so that what is computed for them stays in the cache."""


class WordTable:
    """A place holds a slot, and the slot's word is found by slot: so places are small, and more of them stay in the
    processor's cache. Words that lie close together, as ids do, are found by subtraction instead, while they do
    (`WordRange`). Temporary arrays are kept, as fresh memory costs more than what is done with it here.
    """

    def __init__(self) -> None:
        self._count = 0
        self._words: Words = np.zeros(_FEWEST_SLOTS, np.int64)
        """By slot. It is replaced when it grows, and its filled part never changes."""
        self._scratch = _Scratch()
        self._range: WordRange | None = None
        """If there is one, there are no places."""
        self._low, self._high = 2**63, -(2**63)
        """Between these are all words."""
        self._places: _Places
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

    def words(self, slots: Slots | slice) -> Words:
        """The words of these slots: of a slice a view, as they never change."""
        return self._words[slots]

    def slots_of(self, words: Words) -> Slots:
        """The slot of each word; new words get the next ones."""
        slots = np.empty(len(words), np.int64)
        for start in range(0, len(words), _CHUNK):
            self._fill(slots[start : start + _CHUNK], words[start : start + _CHUNK])
        return slots

    def find(self, words: Words) -> Slots:
        """The slot of each word; -1 for one that is not there."""
        slots = np.empty(len(words), np.int64)
        for start in range(0, len(words), _CHUNK):
            slots[start : start + _CHUNK] = self._find(words[start : start + _CHUNK])
        return slots

    def _fill(self, slots: Slots, words: Words) -> None:
        slots[:] = self._find(words)
        if slots.min() < 0:
            missing = np.flatnonzero(slots < 0)
            slots[missing] = self._insert(words[missing])

    def _find(self, words: Words) -> _Places:
        """The slots, and -1 for a word that is not there. At most a chunk of words; valid until the next call."""
        places, slots, found, differ = self._scratch.of(len(words))
        if self._range is not None:
            self._range.find(words, places, slots)
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
        first = self._count
        self._low, self._high = min(self._low, int(words.min())), max(self._high, int(words.max()))
        if self._range is not None and not self._range.covers(words):
            self._range = WordRange.of(self._words[:first], self._low, self._high)
            if self._range is None:
                self._place_all()
        if first + len(words) > len(self._words):
            self._grow(first + len(words))
        owners, places = self._claim(words) if self._range is None else self._range.claim(words)
        rows = np.flatnonzero(owners == np.arange(len(words)))
        slots = np.empty(len(words), np.int64)
        slots[rows] = np.arange(first, first + len(rows))
        self._words[first : first + len(rows)] = words[rows]
        self._count = first + len(rows)
        if self._range is not None:
            self._range.hold(places[rows], slots[rows])
        else:
            self._places[places[rows]] = slots[rows]
            self._seek_range()
        return slots[owners]

    def _seek_range(self) -> None:
        if is_dense(self._high - self._low + 1, self._count):
            self._range = WordRange.of(self._words[: self._count], self._low, self._high)
            self._places = np.empty(0, np.int32)

    def _claim(self, words: Words) -> tuple[Slots, Slots]:
        """For each word the row that stands for it, one of those with this word; and for that row, a place.

        Rows mark a free place with their number, and see whose mark stands there afterwards.

        Rows with one word go from place to place together, so they all see the same mark, and have one owner. A mark
        that stands belongs to a row that owns it: the loser of a place goes on. So `_insert` replaces every mark by a
        slot, and no mark is left when it returns.
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
        if self._range is None:
            self._place_all()

    def _place_all(self) -> None:
        self._clear_places()
        self._place(np.arange(self._count))

    def _clear_places(self) -> None:
        """There are several times as many places as slots, so that probes are short. A free place has slot -1."""
        size = _PLACES_PER_SLOT * len(self._words)
        self._mask = size - 1
        self._shift = np.uint64(64 - self._mask.bit_length())
        self._places = np.full(size, _FREE, np.int32)

    def _homes(self, words: Words) -> Slots:
        return ((words * _GOLDEN).view(np.uint64) >> self._shift).view(np.int64)

    def _place(self, slots: Slots) -> None:
        """Put each slot at the first free place from its word's home on; where several want one, one gets it.

        The words are all different, so none is compared. The losers of a place go on behind it: no place in between
        becomes free again, which keeps the invariant of probes.
        """
        places = self._homes(self._words[slots])
        while len(slots):
            free = self._places[places] < 0
            self._places[places[free]] = slots[free]
            left = self._places[places] != slots
            slots, places = slots[left], (places[left] + 1) & self._mask


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
