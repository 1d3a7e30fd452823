"""The texts of events: pools that a seed fixes, from which an event takes one by its random number.

A row's text costs a copy instead of a letter-by-letter draw. There are 4,096 different extras of each kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from .draws import word, words

POOL_BITS = 12
CHANNELS = 10_000
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
_BLANK_EVERY = 13


@dataclass(frozen=True)
class Texts:
    """Pools of 4,096 texts; of channels and their URLs first the four frequent ones, then all others."""

    bid_extras: pa.Array
    auction_extras: pa.Array
    person_extras: pa.Array
    names: pa.Array
    descriptions: pa.Array
    emails: pa.Array
    four_digits: pa.Array
    people: pa.Array
    channels: pa.Array
    urls: pa.Array


@lru_cache(maxsize=4)
def texts_of(seed: int) -> Texts:
    """All texts of a seed. An extra fills an event up to 100, 500 or 200 bytes, give or take a fifth of it."""
    return Texts(
        bid_extras=_pool(seed, 1, 54, 82),
        auction_extras=_pool(seed, 2, 271, 407),
        person_extras=_pool(seed, 3, 72, 108),
        names=_pool(seed, 4, 3, 21, blanks=True),
        descriptions=_pool(seed, 5, 3, 101, blanks=True),
        emails=pa.array(
            [f"{name}@{host}.com" for name, host in zip(_words(seed, 6, 7), _words(seed, 7, 5), strict=True)]
        ),
        four_digits=pa.array([f"{number:04d}" for number in range(10_000)]),
        people=pa.array([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]),
        channels=pa.array([*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))]),
        urls=pa.array(_urls(seed)),
    )


def _pool(seed: int, salt: int, shortest: int, longest: int, *, blanks: bool = False) -> pa.Array:
    """Texts of lower-case letters with lengths from `shortest` to `longest` - 1."""
    count = 1 << POOL_BITS
    lengths = words(np.arange(count), seed, 100 + salt) % np.uint64(longest - shortest) + np.uint64(shortest)
    drawn = words(np.arange(count * longest).reshape(count, longest), seed, 200 + salt)
    letters = _LETTERS[drawn % np.uint64(len(_LETTERS))]
    if blanks:
        letters[(drawn >> np.uint64(32)) % np.uint64(_BLANK_EVERY) == 0] = ord(" ")
    rows = [row[:length].tobytes().decode().strip() for row, length in zip(letters, lengths.tolist(), strict=True)]
    return pa.array(rows)


def _words(seed: int, salt: int, length: int) -> Sequence[str]:
    pool: Sequence[str] = [text[:length] for text in _pool(seed, salt, length, length + 1).to_pylist()]
    return pool


def _urls(seed: int) -> list[str]:
    """Nine of ten of the channels that are not frequent have their id in the URL: their number's bits in reverse."""
    parts = _words(seed, 8, 5)
    picks = iter(range(1 << 30))

    def base() -> str:
        path = "/".join(parts[word(seed * 1_000_003 + next(picks)) % len(parts)] for _ in range(3))
        return f"https://www.nexmark.com/{path}/item.htm?query=1"

    hot = [base() for _ in HOT_CHANNELS]
    rest = []
    for channel in range(CHANNELS):
        has_id = word(seed + 7_919 * (channel + 1)) % 10 > 0
        rest.append(f"{base()}&channel_id={_reversed(channel)}" if has_id else base())
    return hot + rest


def _reversed(number: int) -> int:
    """The absolute value of the 32 bits read from the other end, as Java's Integer.reverse and Math.abs give it."""
    turned = int(f"{number:032b}"[::-1], 2)
    return abs(turned - (1 << 32) if turned >> 31 else turned)
