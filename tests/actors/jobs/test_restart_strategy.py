"""Restart strategies: what holds for any failures. Flink's own cases are played in tests/conformance."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.jobs.restart_strategy import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
)


@given(
    failures=st.lists(st.integers(0, 30), max_size=40), max_failures=st.integers(1, 4), interval_ms=st.integers(1, 20)
)
def test_a_failure_is_final_if_it_is_not_more_than_the_interval_after_the_one_max_failures_before(
    failures: list[int], max_failures: int, interval_ms: int
) -> None:
    times = [sum(failures[: index + 1]) for index in range(len(failures))]
    strategy = FailureRate(max_failures, interval_ms, delay_ms=3)
    for index, now_ms in enumerate(times):
        is_final = index >= max_failures and now_ms - times[index - max_failures] <= interval_ms
        assert strategy.on_failure(now_ms) == (None if is_final else 3)


@given(attempts=st.integers(0, 5), questions=st.integers(0, 3))
def test_asking_uses_up_no_attempt(attempts: int, questions: int) -> None:
    strategy = FixedDelay(attempts, delay_ms=0)
    for _ in range(attempts):
        assert all(strategy.can_restart(0) for _ in range(questions))
        assert strategy.on_failure(0) == 0
    assert strategy.on_failure(0) is None


@given(seed=st.integers(), gaps=st.lists(st.integers(0, 100_000), max_size=30))
def test_exponential_delay_stays_between_the_jittered_initial_and_the_maximum(seed: int, gaps: list[int]) -> None:
    strategy = ExponentialDelay(100, 5000, 1.5, 60_000, 0.1, random=random.Random(seed), started_ms=1e9)
    now_ms = 1e9
    for gap_ms in gaps:
        now_ms += gap_ms
        delay_ms = strategy.on_failure(now_ms)
        assert delay_ms is not None
        assert 90 <= delay_ms <= 5000
        assert abs(delay_ms - strategy.backoff_ms) <= strategy.backoff_ms * 0.1


def test_a_failure_exactly_one_interval_after_the_one_before_is_final() -> None:
    strategy = FailureRate(1, 10, delay_ms=3)
    assert [strategy.on_failure(now_ms) for now_ms in (0, 11, 21)] == [3, 3, None]


def test_the_backoff_does_not_count_as_running_well_so_that_it_reaches_its_maximum() -> None:
    """Though each delay is longer than the time after which a job that runs well starts again from the initial one."""
    strategy = ExponentialDelay(100, 1000, 2, reset_ms=50, jitter=0, random=random.Random(0))
    now_ms, delays_ms = 0, []
    for ran_ms in (0, 49, 49, 49, 49, 50):
        now_ms += strategy.backoff_ms + ran_ms if delays_ms else ran_ms
        delays_ms.append(strategy.on_failure(now_ms))
    assert delays_ms == [200, 400, 800, 1000, 1000, 100]


def test_jitter_makes_no_delay_longer_than_the_maximum() -> None:
    strategy = ExponentialDelay(1000, 1000, 2, 60_000, 0.5, random=random.Random(0))
    delays_ms = [strategy.on_failure(now_ms) or 0 for now_ms in range(50)]
    assert max(delays_ms) == 1000
    assert 500 <= min(delays_ms) < 750
