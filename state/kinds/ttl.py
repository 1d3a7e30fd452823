"""Ttl: how long what is held in keyed state lives after its last update. Flink: StateTtlConfig.

    seen = ValueState(bool, ttl=Ttl(hours=1))

Nothing that has expired is returned, counted or listed, whether it has been cleaned up yet or not.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

from ..errors import InvalidState
from . import durations
from .durations import Duration, Units

log = logging.getLogger(__name__)

TtlClock = Literal["processing", "event"]
TtlUpdate = Literal["write", "read"]


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
        duration_ms: Duration | None = None,
        *,
        clock: TtlClock = "processing",
        on: TtlUpdate = "write",
        **units: Unpack[Units],
    ) -> None:
        _check_word("clock", clock, TtlClock)
        _check_word("on", on, TtlUpdate)
        whole = durations.duration_ms("Ttl", duration_ms, units, error=InvalidState)
        if written := durations.as_if_seconds("Ttl", duration_ms):
            log.warning(
                "%s is %d ms. If seconds are meant, write Ttl(seconds=%d), else Ttl(ms=%d)", written, *[whole] * 3
            )
        object.__setattr__(self, "duration_ms", whole)
        object.__setattr__(self, "clock", clock)
        object.__setattr__(self, "on", on)


def check_ttl(kind: str, ttl: Any) -> Ttl | None:
    """Raises InvalidState for what is neither a Ttl nor None."""
    if ttl is None or isinstance(ttl, Ttl):
        return ttl
    raise InvalidState(f"{kind}: ttl: wanted Ttl(hours=1), or Ttl(ms) for a number of ms, found {ttl!r:.60}")


def _check_word(what: str, found: Any, wanted: Any) -> None:
    words = get_args(wanted)
    if found not in words:
        raise InvalidState(f"Ttl: {what}: wanted {' or '.join(map(repr, words))}, found {found!r:.60}")
