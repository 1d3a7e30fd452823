"""Patience: how long a sink goes on trying what the outside system does not do, and when it tries next.

It waits between two tries, longer each time, and gives up when the first failure is `limit_ms` ago. It says once that
the outside system is away, and once that it is back. It holds no thread and sets no timer: the sink asks it whenever
its task steps. Not at home here: what is tried.
"""

from __future__ import annotations

import logging
from typing import Final

from ..context import Clock
from ..errors import OutsideUnavailable

log = logging.getLogger("understudy.sink")

_MISTAKES = (NameError, AttributeError, TypeError, NotImplementedError, AssertionError, ImportError)
"""Of the program: they come again however often it is tried."""

RETRY_MS: Final = 60_000
"""The usual `retry_ms` of sinks, sources and lookups: how long they go on trying what is outside."""
FIRST_PAUSE_MS = 100.0
LONGEST_PAUSE_MS = 5_000.0


class Patience:
    """One sink's, with one outside system. `who`: the sink, for texts."""

    def __init__(self, who: str, clock: Clock, limit_ms: float) -> None:
        self._who, self._clock, self._limit_ms = who, clock, limit_ms
        self._away_since_ms: float | None = None
        self._next_ms = 0.0
        self._pause_ms = FIRST_PAUSE_MS
        self._failures = 0

    @property
    def is_tried(self) -> bool:
        """Whether the last try failed, and there will be another one."""
        return self._away_since_ms is not None

    def due_in_ms(self) -> float:
        """How long to wait for the next try; 0: none is waited for."""
        return 0.0 if self._away_since_ms is None else max(0.0, self._next_ms - self._clock.now_ms())

    def failed(self, what: str, error: BaseException, *, is_last: bool = False) -> None:
        """A try of `what` has failed: there will be another, unless it is enough, or was the last that there is time
        for. Raises OutsideUnavailable then, and the error itself if it says that it will not pass (`may_pass = False`),
        or is a mistake of the program.
        """
        if getattr(error, "may_pass", True) is False or isinstance(error, _MISTAKES):
            raise error
        now_ms = self._clock.now_ms()
        self._failures += 1
        if self._away_since_ms is None:
            self._away_since_ms = now_ms
            log.warning(
                "%s: %s failed, and is tried again for %.0f s: %s: %s",
                self._who,
                what,
                self._limit_ms / 1000,
                type(error).__name__,
                error,
            )
        tried_ms = now_ms - self._away_since_ms
        if is_last or tried_ms >= self._limit_ms:
            failures = self._failures
            self._forget()
            raise OutsideUnavailable(self._who, what, failures, tried_ms, error) from error
        self._next_ms = min(now_ms + self._pause_ms, self._away_since_ms + self._limit_ms)
        self._pause_ms = min(2 * self._pause_ms, LONGEST_PAUSE_MS)

    def succeeded(self) -> None:
        if self._away_since_ms is not None:
            away_ms = self._clock.now_ms() - self._away_since_ms
            log.warning("%s: it works again, after %.1f s and %d failures", self._who, away_ms / 1000, self._failures)
            self._forget()

    def _forget(self) -> None:
        self._away_since_ms, self._failures, self._pause_ms = None, 0, FIRST_PAUSE_MS
