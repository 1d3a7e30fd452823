"""RestartStrategy: whether a failed job, or a failed region of it, is started again, and after which delay.

A strategy is a value machine that the job's JobMaster owns. It gets each failure with the time (`Clock.now_ms`)
and answers; it starts no timer. Flink: RestartBackoffTimeStrategy and its implementations.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Protocol

from ...messages import RestartStrategyConfig, RestartStrategyKind


class RestartStrategy(Protocol):
    """Asking (`can_restart`) changes nothing; telling (`on_failure`) may use up an attempt."""

    def can_restart(self, now_ms: float) -> bool:
        """Whether a failure at this time would be followed by a restart."""
        ...

    def on_failure(self, now_ms: float) -> int | None:
        """Count a failure; returns the delay in ms before the restart, or None when this failure is final."""
        ...


class NoRestart:
    """Every failure is final. Flink: NoRestartBackoffTimeStrategy."""

    def can_restart(self, now_ms: float) -> bool:
        return False

    def on_failure(self, now_ms: float) -> int | None:
        return None


class FixedDelay:
    """At most `attempts` restarts in the job's life. Flink: FixedDelayRestartBackoffTimeStrategy."""

    def __init__(self, attempts: int, delay_ms: int) -> None:
        _require(attempts >= 0, "attempts", attempts, "0 or more")
        _require(delay_ms >= 0, "delay_ms", delay_ms, "0 or more")
        self._attempts_left = attempts
        self._delay_ms = delay_ms

    def can_restart(self, now_ms: float) -> bool:
        return self._attempts_left > 0

    def on_failure(self, now_ms: float) -> int | None:
        if not self.can_restart(now_ms):
            return None
        self._attempts_left -= 1
        return self._delay_ms


class FailureRate:
    """Restarts as long as failures are rare: a failure is final when it comes no later than `interval_ms` after the
    `max_failures`-th failure before it. Flink: FailureRateRestartBackoffTimeStrategy.
    """

    def __init__(self, max_failures: int, interval_ms: int, delay_ms: int) -> None:
        _require(max_failures >= 1, "max_failures_per_interval", max_failures, "1 or more")
        _require(interval_ms >= 1, "failure_rate_interval_ms", interval_ms, "1 or more")
        _require(delay_ms >= 0, "delay_ms", delay_ms, "0 or more")
        self._interval_ms = interval_ms
        self._delay_ms = delay_ms
        self._failures_ms: deque[float] = deque(maxlen=max_failures)

    def can_restart(self, now_ms: float) -> bool:
        return len(self._failures_ms) < (self._failures_ms.maxlen or 0) or (
            now_ms - self._failures_ms[0] > self._interval_ms
        )

    def on_failure(self, now_ms: float) -> int | None:
        restarts = self.can_restart(now_ms)
        self._failures_ms.append(now_ms)
        return self._delay_ms if restarts else None


class ExponentialDelay:
    """Always restarts, later each time; a job that ran well for long enough starts again from the initial delay.

    Each failure multiplies the backoff, cut to whole ms and to the maximum, unless `reset_ms` and the backoff itself
    have passed since the last one. The jitter, up to that share of the backoff either way, keeps jobs that failed
    together from restarting together. Flink 1.12 to 1.18: ExponentialDelayRestartBackoffTimeStrategy.
    """

    def __init__(
        self,
        initial_ms: int,
        max_ms: int,
        multiplier: float,
        reset_ms: int,
        jitter: float,
        *,
        random: random.Random,
        started_ms: float = 0.0,
    ) -> None:
        """`started_ms`: when the job started; it counts as running well since then."""
        _require(initial_ms >= 1, "initial_backoff_ms", initial_ms, "1 or more")
        _require(max_ms >= initial_ms, "max_backoff_ms", max_ms, f"initial_backoff_ms ({initial_ms}) or more")
        _require(multiplier > 1, "backoff_multiplier", multiplier, "more than 1")
        _require(reset_ms >= 1, "reset_backoff_threshold_ms", reset_ms, "1 or more")
        _require(0 <= jitter <= 1, "jitter_factor", jitter, "0 to 1")
        self._initial_ms = initial_ms
        self._max_ms = max_ms
        self._multiplier = multiplier
        self._reset_ms = reset_ms
        self._jitter = jitter
        self._random = random
        self._last_failure_ms = started_ms
        self._backoff_ms = initial_ms

    @property
    def backoff_ms(self) -> int:
        """The delay after the latest failure, without jitter."""
        return self._backoff_ms

    def can_restart(self, now_ms: float) -> bool:
        return True

    def on_failure(self, now_ms: float) -> int | None:
        if now_ms - self._last_failure_ms >= self._reset_ms + self._backoff_ms:
            self._backoff_ms = self._initial_ms
        else:
            self._backoff_ms = min(int(self._backoff_ms * self._multiplier), self._max_ms)
        self._last_failure_ms = now_ms
        spread_ms = int(self._backoff_ms * self._jitter)
        return min(self._backoff_ms + self._random.randint(-spread_ms, spread_ms), self._max_ms)


def make_restart_strategy(
    config: RestartStrategyConfig, random: random.Random, started_ms: float = 0.0
) -> RestartStrategy:
    """The strategy that these settings describe; raises ValueError for a setting out of range."""
    match config.kind:
        case RestartStrategyKind.NONE:
            return NoRestart()
        case RestartStrategyKind.FIXED_DELAY:
            return FixedDelay(config.attempts, config.delay_ms)
        case RestartStrategyKind.FAILURE_RATE:
            return FailureRate(config.max_failures_per_interval, config.failure_rate_interval_ms, config.delay_ms)
        case RestartStrategyKind.EXPONENTIAL_DELAY:
            return ExponentialDelay(
                config.initial_backoff_ms,
                config.max_backoff_ms,
                config.backoff_multiplier,
                config.reset_backoff_threshold_ms,
                config.jitter_factor,
                random=random,
                started_ms=started_ms,
            )


def _require(holds: bool, setting: str, found: float, wanted: str) -> None:
    if not holds:
        raise ValueError(f"restart strategy: {setting} is {found}; wanted {wanted}")
