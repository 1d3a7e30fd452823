"""How an event time looks in logs and reports."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ...messages import END_OF_TIME, NO_WATERMARK

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DATE_MS = 365 * 86_400_000
"""1971: events are younger; rounds of a loop, small numbers of a test and times in seconds are below that."""


def is_date(watermark_ms: int) -> bool:
    """Whether it may well be a moment by the clock, and is no number that something is counted by."""
    return not -_FIRST_DATE_MS < watermark_ms < _FIRST_DATE_MS


def shown_watermark(watermark_ms: int) -> str:
    """A moment in UTC, to the millisecond; a number where it is no date, as the round of a loop."""
    if watermark_ms == NO_WATERMARK:
        return "no watermark yet"
    if watermark_ms == END_OF_TIME:
        return "the end of the data"
    if not is_date(watermark_ms):
        return str(watermark_ms)
    try:
        moment = _EPOCH + timedelta(milliseconds=watermark_ms)
    except OverflowError:
        return f"{watermark_ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}"
