"""Durations, as users write them: a number of milliseconds, a timedelta, or keywords such as `minutes=1`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, TypeAlias, TypedDict

from .errors import InvalidWindow

Duration: TypeAlias = int | timedelta
"""A number of milliseconds, or a timedelta of whole milliseconds."""

DAY_MS: Final = 86_400_000

_MILLISECOND: Final = timedelta(milliseconds=1)


class Units(TypedDict, total=False):
    """A duration in parts, which are added up."""

    days: int
    hours: int
    minutes: int
    seconds: int
    ms: int


_UNIT_MS: Final[dict[str, int]] = {"days": DAY_MS, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000, "ms": 1}


def duration_ms(what: str, given: Any, units: Units | None = None) -> int:
    """The number of milliseconds, above 0. `what` it is the duration of, for the error. Raises InvalidWindow."""
    if (given is None) == (not units):
        found = "both a duration and keywords" if units else "nothing"
        raise InvalidWindow(
            f"{what}: wanted a duration such as 60_000, timedelta(minutes=1) or minutes=1, found {found}"
        )
    if units:
        if unknown := units.keys() - _UNIT_MS.keys():
            raise InvalidWindow(f"{what}: no unit {', '.join(sorted(unknown))}; wanted some of {', '.join(_UNIT_MS)}")
        return positive(
            what, sum(whole_ms(f"{what}: {name}", number) * _UNIT_MS[name] for name, number in units.items())
        )
    return positive(what, whole_ms(what, given))


def whole_ms(what: str, given: Any) -> int:
    """Milliseconds of a number of them or of a timedelta; they may be below 0. Raises InvalidWindow."""
    if isinstance(given, timedelta):
        whole, rest = divmod(given, _MILLISECOND)
        if rest:
            raise InvalidWindow(f"{what}: wanted whole milliseconds, found {given!r}")
        return whole
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidWindow(f"{what}: wanted a whole number or a timedelta, found {given!r:.80}")
    return given


def positive(what: str, ms: int) -> int:
    """Raises InvalidWindow for what is not above 0."""
    if ms <= 0:
        raise InvalidWindow(f"{what}: wanted a duration above 0 ms, found {ms} ms")
    return ms
