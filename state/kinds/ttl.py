"""Ttl: how long what is held in keyed state lives after its last update. Flink: StateTtlConfig.

    seen = ValueState(bool, ttl=Ttl(hours=1))

Nothing that has expired is returned, counted or listed, whether it has been cleaned up yet or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal, TypedDict, Unpack, get_args

from ..errors import InvalidState

TtlClock = Literal["processing", "event"]
TtlUpdate = Literal["write", "read"]


class TtlUnits(TypedDict, total=False):
    """A duration in parts, which are added up."""

    days: int
    hours: int
    minutes: int
    seconds: int
    ms: int


_UNIT_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000, "ms": 1}
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, init=False)
class Ttl:
    """A time to live: `Ttl(hours=1)`, `Ttl(minutes=1, seconds=30)`, `Ttl(90_000)`, `Ttl(timedelta(seconds=90))`.

    `clock`: "processing" counts by the clock of the TaskManager; "event" by event time: what the record at hand writes
    has the record's time, and the watermark decides what has expired. `on`: what counts as an update, "write" alone, or
    "read" as well. Raises InvalidState.
    """

    duration_ms: int
    clock: TtlClock
    on: TtlUpdate

    def __init__(
        self,
        duration_ms: int | timedelta | None = None,
        *,
        clock: TtlClock = "processing",
        on: TtlUpdate = "write",
        **units: Unpack[TtlUnits],
    ) -> None:
        _check_word("clock", clock, TtlClock)
        _check_word("on", on, TtlUpdate)
        object.__setattr__(self, "duration_ms", _duration_ms(duration_ms, dict(units)))
        object.__setattr__(self, "clock", clock)
        object.__setattr__(self, "on", on)


def check_ttl(kind: str, ttl: Any) -> Ttl | None:
    """Raises InvalidState for what is neither a Ttl nor None."""
    if ttl is None or isinstance(ttl, Ttl):
        return ttl
    raise InvalidState(f"{kind}: ttl: wanted Ttl(hours=1), or Ttl(ms) for a number of ms, found {ttl!r:.60}")


def _duration_ms(given: int | timedelta | None, units: dict[str, Any]) -> int:
    if unknown := units.keys() - _UNIT_MS:
        raise InvalidState(f"Ttl: wanted {', '.join(_UNIT_MS)}, clock or on, found {min(unknown)}")
    if (given is None) == (not units):
        found = "both a duration and units" if units else "no duration"
        raise InvalidState(f"Ttl: wanted a duration such as Ttl(hours=1) or Ttl(60_000), found {found}")
    if isinstance(given, timedelta):
        given = given // _MILLISECOND
    parts = units if given is None else {"ms": given}
    whole_ms = sum(_whole(unit, number) * _UNIT_MS[unit] for unit, number in parts.items())
    if whole_ms <= 0:
        raise InvalidState(f"Ttl: wanted a duration above 0 ms, such as Ttl(hours=1), found {whole_ms} ms")
    return whole_ms


def _whole(unit: str, number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidState(f"Ttl: {unit}: wanted a whole number, found {number!r:.60}")
    return number


def _check_word(what: str, found: Any, wanted: Any) -> None:
    words = get_args(wanted)
    if found not in words:
        raise InvalidState(f"Ttl: {what}: wanted {' or '.join(map(repr, words))}, found {found!r:.60}")
