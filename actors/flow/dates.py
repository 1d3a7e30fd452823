"""Which numbers are dates, in milliseconds since 1970-01-01 00:00 UTC, and which are so in another unit."""

from __future__ import annotations

_FIRST_DATE_MS = 365 * 86_400_000
"""1971: events are younger; rounds of a loop, small numbers of a test and times in seconds are below that."""
_YEAR_2000_S, _YEAR_2100_S = 946_684_800, 4_102_444_800
_OTHER_UNITS = (
    (1, "seconds", "multiply", "by 1000"),
    (1_000_000, "microseconds", "divide", "by 1000"),
    (1_000_000_000, "nanoseconds", "divide", "by 1000000"),
)


def is_date(time_ms: int) -> bool:
    """Whether it may well be a moment by the clock, and is no number that something is counted by."""
    return not -_FIRST_DATE_MS < time_ms < _FIRST_DATE_MS


def is_of_this_century(time_ms: int) -> bool:
    """Whether milliseconds are its unit almost certainly: narrower than `is_date`, as old data has dates, too."""
    return _YEAR_2000_S * 1000 <= time_ms < _YEAR_2100_S * 1000


def other_unit(time_ms: int) -> tuple[str, str, str] | None:
    """Of what would be a time of this century in another unit, and is none in ms: the unit, and what makes ms of it."""
    for factor, *unit in _OTHER_UNITS:
        if _YEAR_2000_S * factor <= time_ms < _YEAR_2100_S * factor:
            name, verb, by = unit
            return name, verb, by
    return None
