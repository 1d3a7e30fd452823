"""SlowPlaces: at which lines code was slow, how often, and whether to log it again. The first few times, then once in a
while. It measures nothing.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Any, Final

from .running_code import RunningCode

LOGGED_IN_FULL: Final = 3
"""So often one place is logged before it is logged once in a while."""
ONCE_IN_MS: Final = 60_000.0
_ATTEMPT = re.compile(r", attempt \d+(?=\)$)")
"""The same line is the same place in each attempt of its subtask."""


@dataclass(slots=True)
class _Place:
    """How often it was slow here."""

    count: int = 0
    logged_ms: float = 0.0
    unlogged: int = 0


class SlowPlaces:
    """Of one watch."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str, int], _Place] = {}

    def noted(self, what: str, code: RunningCode, now_ms: float) -> str | None:
        """Count it. None: it is not to be logged this time; else the end of the log line."""
        place = self._places.setdefault((_ATTEMPT.sub("", what), code.path, code.line), _Place())
        place.count += 1
        if place.count > LOGGED_IN_FULL and now_ms - place.logged_ms < ONCE_IN_MS:
            place.unlogged += 1
            return None
        before = f" ({place.unlogged} more times since it was last logged)" if place.unlogged else ""
        place.logged_ms, place.unlogged = now_ms, 0
        return before


def operator_of(code: RunningCode) -> str | None:
    """As in "operator 'count' in process (subtask 2, attempt 0)"; None: it is no operator's."""
    if code.operator is None:
        return None
    context = code.operator.context
    where = f"subtask {context.subtask_index}, attempt {context.attempt_number}"
    return f"operator {context.name!r} in {code.method} ({where})"


def warn(log: logging.Logger, code: RunningCode, text: str, *args: object) -> None:
    """With the operator's fields."""
    extra: dict[str, Any] = {}
    if code.operator is not None:
        context = code.operator.context
        extra = {
            "operator": context.name,
            "subtask": int(context.subtask_index),
            "attempt": context.attempt_number,
        }
    log.warning(text, *args, extra=extra)
