"""ActivityClock: the time in which a task could have taken records. Idleness is judged by it.

It stands while the task is held back by its outputs, and while its source is paused or not polled: what brings nothing
then is not idle, as nobody looks. Flink: PausableRelativeClock (FLINK-35886).
"""

from __future__ import annotations

from collections.abc import Callable


class ActivityClock:
    """`now_ms`: the task's clock, which never goes back."""

    def __init__(self, now_ms: Callable[[], float]) -> None:
        self._now_ms = now_ms
        self._stood_ms = 0.0
        self._stands_since: float | None = None

    def read(self) -> float:
        """In ms; it means nothing by itself."""
        at_ms = self._now_ms() if self._stands_since is None else self._stands_since
        return at_ms - self._stood_ms

    def stop(self) -> None:
        """Nothing is taken from here on. Idempotent."""
        if self._stands_since is None:
            self._stands_since = self._now_ms()

    def go_on(self) -> None:
        """Records are looked for again. Idempotent."""
        if self._stands_since is not None:
            self._stood_ms += self._now_ms() - self._stands_since
            self._stands_since = None
