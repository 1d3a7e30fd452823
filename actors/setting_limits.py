"""Limits of settings: the largest number that a setting takes, by the unit that its name ends with.

A number beyond is a mistake, such as another unit, and would fail later, where a timer or a message cannot hold it.
"""

from __future__ import annotations

import math
from typing import Any, Final

MOST_MS: Final = 100 * 366 * 86_400_000
"""A hundred years."""
MOST_BYTES: Final = 2**53
MOST: Final = 2**31 - 1
"""Of anything else that is counted."""


def most_of(name: str) -> int:
    if name.endswith("_ms"):
        return MOST_MS
    return MOST_BYTES if name.endswith("_bytes") else MOST


def limits_in_words(name: str, least: float) -> str:
    """As in "from 1 to 3162240000000 (100 years)"."""
    return f"from {least} to {most_of(name)}{' (100 years)' if name.endswith('_ms') else ''}"


def whole_setting(name: str, value: Any, least: int) -> int:
    """A whole number within the limits. Raises ValueError."""
    if type(value) is not int or not least <= value <= most_of(name):
        raise ValueError(f"{name}: wanted a whole number {limits_in_words(name, least)}, found {value!r:.80}")
    return value


def duration_setting(name: str, value: Any, least: float = 0) -> float:
    """A number of milliseconds within the limits, which need not be whole. Raises ValueError."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not least <= value <= MOST_MS:
        raise ValueError(f"{name}: wanted a number of milliseconds {limits_in_words(name, least)}, found {value!r:.80}")
    number: float = value
    return number
