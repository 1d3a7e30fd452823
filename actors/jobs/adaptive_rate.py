"""AdaptiveRate: how many calls a second the other end of an operator's calls takes at the moment.

A pure function of time. It halves at once when there were too many, and grows back by the same number each second, as a
TCP connection finds its share of a line: additive increase, multiplicative decrease (Chiu and Jain, 1989).
"""

from __future__ import annotations

import math
from typing import Final

GROWTH_PER_SECOND: Final = 0.05
"""The part of the configured rate by which it grows."""
HALVED_AT_MOST_EVERY_MS: Final = 500
"""What is said against a burst of calls counts once."""
LEAST_PER_SECOND: Final = 1 / 60


class AdaptiveRate:
    """The configured one, until it is throttled."""

    def __init__(self, per_second: float) -> None:
        self._full = per_second
        self._least = min(LEAST_PER_SECOND, per_second)
        self._growth = per_second * GROWTH_PER_SECOND
        self.per_second = per_second
        """At the time that it has been advanced to."""
        self._now_ms = 0.0
        self._halved_ms = -math.inf
        self.resumes_ms = -math.inf
        """No call is wanted before; from then on it grows."""

    def throttle(self, now_ms: float, retry_after_ms: float) -> None:
        """There were too many calls. It has been advanced to this time."""
        if now_ms >= self._halved_ms + HALVED_AT_MOST_EVERY_MS:
            self._halved_ms = now_ms
            self.per_second = max(self.per_second / 2, self._least)
        self.resumes_ms = max(self.resumes_ms, now_ms + retry_after_ms)

    def advance(self, now_ms: float) -> float:
        """Time has passed: how many calls could have begun in it."""
        flat, growing = self._phases()
        seconds = max(now_ms - self._now_ms, 0.0) / 1000
        grown = min(max(seconds - flat, 0.0), growing)
        calls = self.per_second * (min(seconds, flat) + grown) + self._growth * grown**2 / 2
        calls += self._full * max(seconds - flat - growing, 0.0)
        is_full = seconds >= flat + growing
        self.per_second = self._full if is_full else self.per_second + self._growth * grown
        self._now_ms = max(now_ms, self._now_ms)
        return calls

    def wait_ms(self, calls: float) -> float:
        """In how many ms this many calls could have begun: `advance` turned round."""
        flat, growing = self._phases()
        rate, growth = self.per_second, self._growth
        if calls <= rate * flat:
            return 1000 * calls / rate
        calls -= rate * flat
        while_growing = rate * growing + growth * growing**2 / 2
        if calls <= while_growing:
            return 1000 * (flat + (math.sqrt(rate**2 + 2 * growth * calls) - rate) / growth)
        return 1000 * (flat + growing + (calls - while_growing) / self._full)

    def _phases(self) -> tuple[float, float]:
        """For how many seconds from now it stays as it is, and then for how many it grows."""
        growing = max((self._full - self.per_second) / self._growth, 0.0)
        return max(self.resumes_ms - self._now_ms, 0.0) / 1000 if growing else 0.0, growing
