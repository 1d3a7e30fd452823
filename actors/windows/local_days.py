"""LocalDays: the days of a time zone, numbered, of which one may have 23 or 25 hours.

A day begins at local midnight, or `offset_ms` after it. Where a clock change leaves midnight out, the day begins with
the change; where midnight comes twice, with the first. Day 0 is 1970-01-01.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ...state.kinds.durations import DAY_MS
from .errors import InvalidWindow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_ORDINAL = date(1970, 1, 1).toordinal()
_MILLISECOND = timedelta(milliseconds=1)

FIRST_MS, LAST_MS = ((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND for year in (2, 9998))
"""Python's calendar ends not far beyond."""


def check_zone(tz: str) -> None:
    """Raises InvalidWindow for a time zone that is not known here."""
    try:
        ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        more = "if there is one, install the package tzdata" if isinstance(tz, str) else "write the name as a text"
        raise InvalidWindow(
            f"tz: wanted a time zone by its name, such as 'Europe/Berlin', found {tz!r:.80}; {more}"
        ) from error


@dataclass(frozen=True, slots=True)
class LocalDays:
    """The days of one zone."""

    tz: str
    offset_ms: int = 0

    def day_of(self, timestamp_ms: int) -> int:
        """The number of the day that a time lies in. Raises InvalidWindow beyond the years 2 to 9997."""
        if not FIRST_MS <= timestamp_ms < LAST_MS:
            raise InvalidWindow(
                f"tz={self.tz!r}: wanted a time within the years 2 to 9997, found {timestamp_ms} ms: are the times in "
                "milliseconds?"
            )
        local = (_EPOCH + timestamp_ms * _MILLISECOND).astimezone(ZoneInfo(self.tz))
        day = (local - timedelta(milliseconds=self.offset_ms)).toordinal() - _FIRST_ORDINAL
        # Where the clock goes back over midnight, the date alone names the day before.
        while timestamp_ms >= self.start_of(day + 1):
            day += 1
        while timestamp_ms < self.start_of(day):
            day -= 1
        return day

    def start_of(self, day: int) -> int:
        """The time at which a day begins."""
        return _start_of(self.tz, self.offset_ms, day)


@lru_cache(maxsize=4096)
def _start_of(tz: str, offset_ms: int, day: int) -> int:
    midnight = datetime.fromordinal(_FIRST_ORDINAL + day)
    local = (midnight + timedelta(milliseconds=offset_ms)).replace(tzinfo=ZoneInfo(tz))
    assert 0 <= offset_ms < DAY_MS
    return (local.astimezone(UTC) - _EPOCH) // _MILLISECOND
