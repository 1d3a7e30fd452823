"""How an event time looks in logs and reports."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ...messages import END_OF_TIME, NO_WATERMARK
from .dates import is_date

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
