"""Durations, as users write them: a number of milliseconds, a timedelta, or keywords such as `minutes=1`.

Whoever asks says which error a wrong one is: that of windows, of state, of the program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from math import isfinite
from typing import Any, Final, TypeAlias, TypedDict

Duration: TypeAlias = int | timedelta
"""A number of milliseconds, or a timedelta of whole milliseconds."""

DAY_MS: Final = 86_400_000

UNIT_MS: Final[dict[str, int]] = {"days": DAY_MS, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000, "ms": 1}

MOST_MS: Final = 2**60
"""Times are 64 bits wide: a time and such a duration still fit."""

_SMALL_MS: Final = 100

_MILLISECONDS: Final = "a whole number of milliseconds"
_MILLISECOND: Final = timedelta(milliseconds=1)

_IN_WORDS: Final = re.compile(r"([0-9]+) *([a-z]+)")
_SPELLINGS: Final = {
    "days": ("d", "day", "days"),
    "hours": ("h", "hr", "hour", "hours"),
    "minutes": ("m", "min", "mins", "minute", "minutes"),
    "seconds": ("s", "sec", "secs", "second", "seconds"),
    "milliseconds": ("ms", "milli", "millis", "millisecond", "milliseconds"),
}
"""Of the units of a timedelta, as they are written in texts."""


class Units(TypedDict, total=False):
    """A duration in parts, which are added up."""

    days: int
    hours: int
    minutes: int
    seconds: int
    ms: int


def duration_ms(
    what: str, given: Any, units: Mapping[str, Any] | None = None, *, error: type[Exception], least: int = 1
) -> int:
    """The number of milliseconds, at least `least`. `what` it is the duration of. Raises `error`."""
    if unknown := (units or {}).keys() - UNIT_MS.keys():
        raise error(f"{what}: no unit {', '.join(sorted(unknown))}; wanted some of {', '.join(UNIT_MS)}")
    if (given is None) == (not units):
        found = "both a duration and keywords" if units else "nothing"
        raise error(f"{what}: wanted a duration such as 60_000, timedelta(minutes=1) or minutes=1, found {found}")
    if not units:
        return at_least(least, what, whole_ms(what, given, error=error), error=error)
    parts = (
        whole_ms(f"{what}: {name}", number, error=error, wanted="a whole number") * UNIT_MS[name]
        for name, number in units.items()
    )
    return at_least(least, what, whole_ms(what, sum(parts), error=error), error=error)


def whole_ms(what: str, given: Any, *, error: type[Exception], wanted: str = _MILLISECONDS) -> int:
    """Milliseconds of a number of them or of a timedelta; they may be below 0. Raises `error`."""
    if isinstance(given, timedelta):
        whole, rest = divmod(given, _MILLISECOND)
        if rest:
            raise error(f"{what}: wanted whole milliseconds, found {given!r}")
        given = whole
    if isinstance(given, bool) or not isinstance(given, int):
        instead = _as_timedelta(given) or (_of_seconds(given) if wanted == _MILLISECONDS else "")
        raise error(f"{what}: wanted {wanted} or a timedelta, found {given!r:.80}{instead}")
    if abs(given) > MOST_MS:
        raise error(f"{what}: wanted a duration of at most 2**60 ms, found {given!r:.80}")
    return given


def _as_timedelta(given: Any) -> str:
    """How a text such as "5s" or "1 min" is written; empty for what names no number of a unit."""
    found = _IN_WORDS.fullmatch(given.strip().lower()) if isinstance(given, str) else None
    unit = next((each for each in _SPELLINGS if found and found[2] in _SPELLINGS[each]), None)
    return "" if found is None or unit is None else f": write timedelta({unit}={found[1]})"


def _of_seconds(given: Any) -> str:
    """The same of a number that is not whole, as other libraries take seconds."""
    if isinstance(given, float) and isfinite(given):
        return f": if it is in seconds, write timedelta(seconds={given!r})"
    return ""


def at_least(least: int, what: str, ms: int, *, error: type[Exception]) -> int:
    """Raises `error` for what is below that."""
    if ms < least:
        wanted = "above 0 ms" if least == 1 else f"of at least {least} ms"
        raise error(f"{what}: wanted a duration {wanted}, found {ms} ms")
    return ms


def as_if_seconds(call: str, *given: Any, **named: Any) -> str:
    """The call as it is written, if one of these durations is a bare number that may well be meant as seconds."""
    written = [*map(repr, given), *(f"{name}={value!r}" for name, value in named.items())]
    return f"{call}({', '.join(written)})" if any(map(may_be_seconds, (*given, *named.values()))) else ""


def may_be_seconds(given: Any) -> bool:
    """Whether a number of ms is smaller than almost all that are meant."""
    return isinstance(given, int | float) and 0 < given < _SMALL_MS


def take_units(options: dict[str, Any]) -> dict[str, Any]:
    """Take the units of a duration out of other keywords."""
    return {unit: options.pop(unit) for unit in UNIT_MS if unit in options}
