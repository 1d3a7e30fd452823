"""Random numbers by counter: the number of an event and a salt decide each one, whoever asks and in whichever order.

splitmix64 (Steele, Lea, Flood 2014: "Fast splittable pseudorandom number generators") over whole arrays.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"
"""uint64, all 64 bits of which are random."""

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def words(numbers: Any, seed: int, salt: int) -> Words:
    """One word for each of the numbers (int64, any shape)."""
    mixed: Words = numbers.astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed *= np.uint64(_GOLDEN)
        mixed += np.uint64(word(word(seed) + salt))
        mixed ^= mixed >> np.uint64(30)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def word(number: int) -> int:
    """The word of one number alone."""
    mixed = (number + 1) * _GOLDEN & _MASK
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _MASK
    return mixed ^ (mixed >> 31)


def bits(drawn: Words, first: int, count: int) -> Any:
    """`count` bits of each word, as int64."""
    return ((drawn >> np.uint64(first)) & np.uint64((1 << count) - 1)).view(np.int64)


def below(drawn: Any, count: int, limit: Any) -> Any:
    """From `count` bits (at most 32) a number from 0 to limit - 1, int64. `limit` is one or an array, below 2^31."""
    return (drawn * limit) >> count
