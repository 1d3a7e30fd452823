"""Ttl: how long what is held in keyed state lives after its last update. Flink: StateTtlConfig.

    seen = ValueState(bool, ttl=Ttl(hours=1))

Nothing that has expired is returned, counted or listed, whether it has been cleaned up yet or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from ..errors import InvalidState

TtlClock = Literal["processing", "event"]
TtlUpdate = Literal["write", "read"]

_UNIT_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000, "ms": 1}


@dataclass(frozen=True, slots=True, init=False)
class Ttl:
    """A time to live: `Ttl(hours=1)`, `Ttl(60_000)`. The parts of a duration are added up.

    `clock`: "processing" counts by the clock of the TaskManager; "event" by event time: what the record at hand writes
    has the record's time, and the watermark decides what has expired. `on`: what counts as an update, "write" alone, or
    "read" as well. Raises InvalidState.
    """

    ms: int
    """The whole duration."""
    clock: TtlClock
    on: TtlUpdate

    def __init__(
        self,
        ms: int = 0,
        *,
        days: int = 0,
        hours: int = 0,
        minutes: int = 0,
        seconds: int = 0,
        clock: TtlClock = "processing",
        on: TtlUpdate = "write",
    ) -> None:
        given = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds, "ms": ms}
        whole_ms = sum(_whole(unit, number) * _UNIT_MS[unit] for unit, number in given.items())
        if whole_ms <= 0:
            raise InvalidState(f"Ttl: wanted a duration above 0 ms, such as Ttl(hours=1), found {whole_ms} ms")
        _check_word("clock", clock, TtlClock)
        _check_word("on", on, TtlUpdate)
        for name, value in (("ms", whole_ms), ("clock", clock), ("on", on)):
            object.__setattr__(self, name, value)


def check_ttl(kind: str, ttl: Any) -> Ttl | None:
    """Raises InvalidState for what is neither a Ttl nor None."""
    if ttl is None or isinstance(ttl, Ttl):
        return ttl
    raise InvalidState(f"{kind}: ttl: wanted Ttl(hours=1), or Ttl(ms) for a number of ms, found {ttl!r:.60}")


def _whole(unit: str, number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidState(f"Ttl: {unit}: wanted a whole number, found {number!r:.60}")
    return number


def _check_word(what: str, found: Any, wanted: Any) -> None:
    words = get_args(wanted)
    if found not in words:
        raise InvalidState(f"Ttl: {what}: wanted {' or '.join(map(repr, words))}, found {found!r:.60}")
