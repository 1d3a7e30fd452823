"""What an error says about too many calls: whether it does, and for how long none is wanted (RFC 9110, 10.2.3).

It goes by the attributes that errors of HTTP clients have, and imports none of these. An error that was raised from
another one says what that one says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

THROTTLED: Final = (429, 503)
"""Too Many Requests, Service Unavailable."""
MAX_CAUSES: Final = 5
"""So deep it looks into `__cause__`, the error itself counted."""
MAX_MS: Final = 24 * 3600 * 1000.0
"""More is taken for this."""


def is_throttled(error: BaseException) -> bool:
    """Whether it says that there were too many calls: a status 429 or 503, or none and when to try again."""
    return any(_is_throttled(each) for each in _chain(error))


def retry_after_ms(error: BaseException, now_wall_ms: int) -> float | None:
    """How long no call is wanted, in ms; None when that is not said, or not in a way that has a meaning.

    Attributes `retry_after_ms` and `retry_after` (seconds) come first, then the header Retry-After, in seconds or as a
    date of the past or the future, of `response.headers` and of `headers`.
    """
    for each in _chain(error):
        said = (*_own_delays(each), *(_delay(value, now_wall_ms) for value in _headers(each)))
        for delay_ms in said:
            if delay_ms is not None:
                return min(delay_ms, MAX_MS)
    return None


def _is_throttled(error: BaseException) -> bool:
    statuses = list(_statuses(error))
    if statuses:
        return any(status in THROTTLED for status in statuses)
    return any(delay is not None for delay in _own_delays(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if each is None:
            return
        yield each
        each = each.__cause__


def _get(holder: object, name: str) -> Any:
    """An attribute; None where there is none, and where it cannot be asked for."""
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - a property of somebody else's class, as `request` of an httpx.RequestError
        return None


def _statuses(error: BaseException) -> Iterator[int]:
    response = _get(error, "response")
    for holder in (error, response):
        for name in ("status", "status_code"):
            value = _get(holder, name)
            if isinstance(value, int) and not isinstance(value, bool):
                yield value


def _own_delays(error: BaseException) -> Iterator[float | None]:
    yield _as_ms(_get(error, "retry_after_ms"), 1)
    yield _as_ms(_get(error, "retry_after"), 1000)


def _headers(error: BaseException) -> Iterator[object]:
    """The values of Retry-After. Header names have no case, whatever mapping holds them."""
    for holder in (_get(error, "response"), error):
        headers = _get(holder, "headers")
        try:
            yield from [value for name, value in headers.items() if str(name).lower() == "retry-after"]
        except Exception:  # noqa: BLE001 - no mapping
            continue


def _delay(value: object, now_wall_ms: int) -> float | None:
    delay_ms = _as_ms(value, 1000)
    if delay_ms is not None or not isinstance(value, str):
        return delay_ms
    try:
        date = parsedate_to_datetime(value)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return max(date.timestamp() * 1000 - now_wall_ms, 0.0)
    except (ValueError, TypeError, OverflowError, IndexError):  # no date
        return None


def _as_ms(value: object, unit_ms: int) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        delay_ms = float(value) * unit_ms
    except (ValueError, OverflowError):
        return None
    return delay_ms if 0 <= delay_ms < math.inf else None
