"""Divergence: where two histories, line by line the same at first, go different ways."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, zip_longest

SHOWN_LINES = 5


@dataclass(frozen=True, slots=True)
class Divergence:
    """`common` lines are the same: of these, the last few; then the next few of either, none where it has ended."""

    common: int
    before: tuple[str, ...]
    one: tuple[str, ...]
    other: tuple[str, ...]


def divergence(one: Iterable[str], other: Iterable[str]) -> Divergence | None:
    """None when they are the same to the end. Reads no further than it has to."""
    before: deque[str] = deque(maxlen=SHOWN_LINES)
    pairs = zip_longest(one, other)
    for common, (line, other_line) in enumerate(pairs):
        if line != other_line:
            rest = [(line, other_line), *islice(pairs, SHOWN_LINES - 1)]
            continuations = [tuple(each for each in side if each is not None) for side in zip(*rest, strict=True)]
            return Divergence(common, tuple(before), *continuations)
        before.append(line)
    return None
