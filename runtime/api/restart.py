"""Restart strategies as users choose them; actors/jobs/restart_strategy.py decides. Flink: RestartStrategies."""

from __future__ import annotations

from ...messages import RestartStrategyConfig, RestartStrategyKind
from ...messages.known_names import known_arguments
from .checks import at_least, more_than
from .errors import InvalidSetting


def no_restart() -> RestartStrategyConfig:
    """The first failure ends the job."""
    return RestartStrategyConfig(RestartStrategyKind.NONE)


@known_arguments("fixed_delay")
def fixed_delay(attempts: int, delay_ms: int = 1000) -> RestartStrategyConfig:
    """Up to `attempts` restarts in the job's life, each `delay_ms` after the failure."""
    return RestartStrategyConfig(
        RestartStrategyKind.FIXED_DELAY,
        attempts=at_least("attempts", attempts, 0),
        delay_ms=at_least("delay_ms", delay_ms, 0),
    )


@known_arguments("failure_rate")
def failure_rate(max_failures: int, interval_ms: int = 60_000, delay_ms: int = 1000) -> RestartStrategyConfig:
    """Restart until there are more than `max_failures` failures within `interval_ms`."""
    return RestartStrategyConfig(
        RestartStrategyKind.FAILURE_RATE,
        max_failures_per_interval=at_least("max_failures", max_failures, 1),
        failure_rate_interval_ms=at_least("interval_ms", interval_ms, 1),
        delay_ms=at_least("delay_ms", delay_ms, 0),
    )


@known_arguments("exponential_delay")
def exponential_delay(
    initial_ms: int = 1000,
    max_ms: int = 60_000,
    multiplier: float = 1.5,
    reset_after_ms: int = 3_600_000,
    jitter: float = 0.1,
    attempts: int = 2**31 - 1,
) -> RestartStrategyConfig:
    """Wait longer after each failure, up to `max_ms`, and go back to `initial_ms` after `reset_after_ms` without one.

    `jitter` is the share of the delay by which it is randomly shortened or lengthened.
    """
    if at_least("max_ms", max_ms, 1) < at_least("initial_ms", initial_ms, 1):
        raise InvalidSetting(f"max_ms: wanted at least initial_ms ({initial_ms}), found {max_ms}")
    if isinstance(jitter, bool) or not isinstance(jitter, int | float) or not 0 <= jitter <= 1:
        raise InvalidSetting(f"jitter: wanted a number from 0 to 1, found {jitter!r}")
    return RestartStrategyConfig(
        RestartStrategyKind.EXPONENTIAL_DELAY,
        attempts=at_least("attempts", attempts, 0),
        initial_backoff_ms=initial_ms,
        max_backoff_ms=max_ms,
        backoff_multiplier=more_than("multiplier", multiplier, 1),
        reset_backoff_threshold_ms=at_least("reset_after_ms", reset_after_ms, 1),
        jitter_factor=float(jitter),
    )
