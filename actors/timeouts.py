"""Timeouts as callers give them: one check for every call that waits."""

from __future__ import annotations

import math
import numbers
from datetime import timedelta
from typing import Any

from .errors import InvalidTimeout

_USUAL: tuple[type, ...] = (int, float)
_LONGEST_SECONDS = 366 * 86_400.0
"""Longer than that is without end: a lock of the operating system takes no more than some 292 years."""


def timeout_seconds(timeout: object) -> float | None:
    """A number of seconds, or None for a wait without end, which infinity is too. Raises InvalidTimeout.

    As in Python's own calls, a negative one is over at once.
    """
    checked = _number("timeout", "seconds", timeout, "timeout.total_seconds()")
    return None if checked is None or checked > _LONGEST_SECONDS else checked


def timeout_milliseconds(timeout_ms: object) -> float | None:
    """The same in milliseconds, of an ask: None is the system's default, and infinity is without end."""
    return _number("timeout_ms", "milliseconds", timeout_ms, "timeout_ms.total_seconds() * 1000")


def _number(name: str, unit: str, value: Any, of_timedelta: str) -> float | None:
    if value is None:
        return None
    kind: type = type(value)
    is_real: bool = issubclass(kind, numbers.Real)
    if is_real and not issubclass(kind, bool) and not math.isnan(value):
        number: float = value if issubclass(kind, _USUAL) else float(value)
        return number
    match value:
        case timedelta():
            instead = f"write {of_timedelta}"
        case str():
            instead = f"write float({name}) if the text is a number"
        case _:
            instead = f"write {name}=10.0, for example"
    raise InvalidTimeout(f"{name}: wanted a number of {unit}, or None, found {value!r:.80}: {instead}")
