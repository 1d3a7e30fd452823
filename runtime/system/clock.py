"""The real clock, and ids that are unique in the cluster. The simulator brings its own of both."""

from __future__ import annotations

import random
import time


class SystemClock:
    """Monotonic milliseconds for intervals, Unix milliseconds to show to users."""

    def now_ms(self) -> float:
        return time.monotonic() * 1000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class RandomIds:
    """Ids of 64 random bits from the operating system, so that a forked process does not repeat its parent's."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def __call__(self, prefix: str) -> str:
        return f"{prefix}-{self._random.getrandbits(64):016x}"
