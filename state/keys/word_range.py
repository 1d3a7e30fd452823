"""WordRange: slots of words by their distance from the least: for words that fill a good part of the range they lie in.

Ids do. One place is looked at for a word, where a hash table looks at two and more, and no word is compared.

Invariant: `_held[word - _low]` is 1 + the word's slot, and 0 for a word without one. The difference is taken modulo
2**64 and read as unsigned, so a word below `_low` is far beyond the end, and one comparison finds both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..columns.column_values import Words

_RANGE_PER_SLOT = 8
_RANGE_PER_SLOT_OF_SMALL = 128
_SMALL_RANGE = 1 << 24
"""Up to here (64 MB) a range may be emptier: a miss of the cache costs more than memory."""

_Slots = npt.NDArray[np.int64]


class WordRange:
    """Owned by a WordTable, which gives out the slots. The words of a range may be any run of int64."""

    def __init__(self, low: int, size: int) -> None:
        self._low = np.int64((low + 2**63) % 2**64 - 2**63)
        self._held = np.zeros(size, np.int32)
        """By distance: 1 + slot; 0 where there is none, so that memory which no word is near is never touched."""

    @classmethod
    def of(cls, words: Words, low: int, high: int) -> WordRange | None:
        """A range of these words, which get the slots 0, 1, 2, ..., with room for `low` to `high` and as much again;
        None if it would be too empty.
        """
        size = high - low + 1
        if not is_dense(size, len(words)):
            return None
        made = cls(low - size // 2, 2 * size)
        made._held[words - made._low] = np.arange(1, len(words) + 1)
        return made

    def covers(self, words: Words) -> bool:
        """Whether there is room for all of these."""
        return int((words - self._low).view(np.uint64).max()) < len(self._held)

    def find(self, words: Words, places: _Slots, slots: npt.NDArray[np.int32]) -> None:
        """Fill in the slots, -1 for words that are not there. `places` is memory to work in."""
        np.subtract(words, self._low, out=places)
        distance = places.view(np.uint64)
        self._held.take(places, out=slots, mode="clip")
        np.subtract(slots, 1, out=slots)
        if int(distance.max()) >= len(self._held):
            slots[distance >= len(self._held)] = -1

    def claim(self, words: Words) -> tuple[_Slots, _Slots]:
        """For each word, none of which is held, the row that stands for it, one of those with this word; and places."""
        # Of rows with one word NumPy keeps the last one's mark, and all of them read it: that row owns the word.
        places = words - self._low
        self._held[places] = -1 - np.arange(len(words))
        return -1 - self._held[places].astype(np.int64), places

    def hold(self, places: _Slots, slots: _Slots) -> None:
        """These slots, at places that were claimed."""
        self._held[places] = slots + 1


def is_dense(size: int, words: int) -> bool:
    """Whether this number of words fills enough of a range of this size."""
    return size <= max(_RANGE_PER_SLOT * words, min(_RANGE_PER_SLOT_OF_SMALL * words, _SMALL_RANGE))
