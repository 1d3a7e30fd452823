"""The functions with which users make assigners: `tumbling(minutes=1)`, `session(seconds=30)`.

A duration is a number of ms, a timedelta, or, where there is one only, keywords. All raise InvalidWindow.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Unpack

from ...messages.known_names import known_arguments
from ...state.kinds.durations import Duration, Units, as_if_seconds, duration_ms, whole_ms
from .assigners import Counted, Cumulative, Gap, Global, Sessions, Sliding, Time, Tumbling
from .errors import InvalidWindow

_LATENESS = "windows are kept for late records by .allowed_lateness(minutes=1), behind window(...)"
_FROM_1970 = "windows begin at multiples of their size since 1970-01-01 00:00 UTC: write offset_ms=... to shift them"
_LATE = dict.fromkeys(("grace", "grace_ms", "grace_period", "expires", "allowed_lateness", "lateness"), _LATENESS)
_SIZES = ("length", "size_ms", "duration", "duration_ms", "width")
_ORIGINS = ("align_to", "start", "start_time", "startTime", "origin", "offset")
_ZONES = ("timezone", "zone")
_PLACED = _LATE | dict.fromkeys(_ORIGINS, _FROM_1970) | dict.fromkeys(_ZONES, "write tz=...")
_TUMBLES = _PLACED | dict.fromkeys(_SIZES, "the size comes first, and without a name")
_SLIDES = _PLACED | {
    **dict.fromkeys((*_SIZES, "slide_ms"), "write size=... and slide=..., each a timedelta or a number of ms"),
    **dict.fromkeys(("period", "step", "step_ms", "advance", "advance_by", "hop"), "write slide=..."),
}
_SESSIONS = _LATE | {
    **dict.fromkeys((*_ORIGINS, "offset_ms", *_ZONES, "tz"), "leave it out: a session begins with its first record"),
    **dict.fromkeys((*_SIZES, "size"), "the gap comes first, and without a name"),
}
"""Of Faust, Kafka Streams, Beam, Bytewax, Spark and Quix."""

_duration_ms = partial(duration_ms, error=InvalidWindow)
_whole_ms = partial(whole_ms, error=InvalidWindow)


@known_arguments(elsewhere=_TUMBLES, example="tumbling(minutes=1)")
def tumbling(
    size: Duration | None = None,
    *,
    offset_ms: Duration = 0,
    tz: str | None = None,
    time: Time = "event",
    **units: Unpack[Units],
) -> Tumbling:
    """Windows of one size, one after the other: `tumbling(minutes=1)`. They begin at multiples of the size from
    1970-01-01 00:00 UTC, shifted by `offset_ms`. With `tz` they are whole days of that time zone, of 23 or 25 hours
    where the clock changes; then `offset_ms` is from local midnight.
    """
    size_ms = _duration_ms("tumbling: size", size, units)
    written = as_if_seconds("tumbling", size)
    return Tumbling(size_ms, size_ms, _whole_ms("tumbling: offset_ms", offset_ms), tz, time, written)


@known_arguments(elsewhere=_SLIDES, example="sliding(timedelta(minutes=10), timedelta(minutes=1))")
def sliding(
    size: Duration, slide: Duration, *, offset_ms: Duration = 0, tz: str | None = None, time: Time = "event"
) -> Sliding:
    """Windows of one size, one beginning each `slide`: a record is in size / slide of them, or, with a larger slide,
    in one or none, of which it warns. `tz` as in tumbling; then both are whole days.
    """
    size_ms, slide_ms = (
        _duration_ms("sliding: size", size),
        _duration_ms("sliding: slide", slide),
    )
    if slide_ms > size_ms:
        warnings.warn(
            f"sliding(size={size_ms} ms, slide={slide_ms} ms): {slide_ms - size_ms} ms of each {slide_ms} are in no "
            "window, and their records in no result. The size comes first: were the two swapped?",
            stacklevel=3,
        )
    written = as_if_seconds("sliding", size, slide)
    return Sliding(size_ms, slide_ms, _whole_ms("sliding: offset_ms", offset_ms), tz, time, written)


@known_arguments(example="cumulative(timedelta(hours=1), timedelta(days=1))")
def cumulative(
    step: Duration, size: Duration, *, offset_ms: Duration = 0, tz: str | None = None, time: Time = "event"
) -> Cumulative:
    """Windows that begin together each `size`, and end after one step, two steps and so on up to the size: the running
    total of a day, each hour. `tz` as in tumbling; then the size is whole days.
    """
    step_ms, size_ms = (
        _duration_ms("cumulative: step", step),
        _duration_ms("cumulative: size", size),
    )
    written = as_if_seconds("cumulative", step, size)
    return Cumulative(size_ms, step_ms, _whole_ms("cumulative: offset_ms", offset_ms), tz, time, written)


@known_arguments(elsewhere=_SESSIONS, example="session(minutes=30)")
def session(gap: Gap | None = None, *, time: Time = "event", **units: Unpack[Units]) -> Sessions:
    """Windows of activity, which end when a key has had no record for the gap: `session(minutes=30)`. `gap` may be a
    function of the record.
    """
    if callable(gap):
        if units:
            raise InvalidWindow("session: wanted a gap or keywords, found both")
        return Sessions(gap, time)
    return Sessions(_duration_ms("session: gap", gap, units), time, as_if_seconds("session", gap))


@known_arguments()
def count_window(size: int, slide: int | None = None) -> Counted:
    """Windows of `size` records of a key; with a slide, the last `size` records after each `slide` records."""
    return Counted(size, slide)


def global_window() -> Global:
    """One window of everything; it fires as its trigger says, and without one never."""
    return Global()
