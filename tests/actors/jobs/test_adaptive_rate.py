"""AdaptiveRate: it halves at once, grows back by a part of what is configured, and its two readings fit each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.jobs.adaptive_rate import HALVED_AT_MOST_EVERY_MS, LEAST_PER_SECOND, AdaptiveRate

RATES = st.sampled_from([0.001, 1 / 60, 0.5, 1.0, 7.5, 100.0, 25_000.0])
THROTTLES = st.lists(st.tuples(st.floats(0, 3000), st.floats(0, 5000)), max_size=4)
"""After how many ms, and for how long no call is wanted."""


def throttled(per_second: float, throttles: list[tuple[float, float]]) -> tuple[AdaptiveRate, float]:
    """A rate with this past, and the time."""
    rate, now_ms = AdaptiveRate(per_second), 0.0
    for after_ms, retry_after_ms in throttles:
        now_ms += after_ms
        rate.advance(now_ms)
        rate.throttle(now_ms, retry_after_ms)
    return rate, now_ms


def test_without_a_throttle_it_is_what_is_configured() -> None:
    rate = AdaptiveRate(40)
    assert rate.advance(2500) == pytest.approx(100)
    assert (rate.per_second, rate.wait_ms(10)) == (40, pytest.approx(250))


def test_it_halves_at_once_and_grows_by_a_twentieth_of_what_is_configured_each_second() -> None:
    rate, now_ms = throttled(100, [(1000, 0)])
    assert rate.per_second == 50
    assert rate.advance(now_ms + 4000) == pytest.approx(50 * 4 + 5 * 4**2 / 2)
    assert rate.per_second == pytest.approx(70)
    rate.advance(now_ms + 10_000)
    assert rate.per_second == 100
    rate.advance(now_ms + 60_000)
    assert rate.per_second == 100, "never more"


def test_a_hundred_answers_of_one_moment_count_once() -> None:
    rate, _ = throttled(64, [(10, 0)] + [(1, 0)] * 99)
    assert 32 <= rate.per_second < 33
    just_too_early, _ = throttled(64, [(0, 0), (HALVED_AT_MOST_EVERY_MS - 1, 0)])
    assert just_too_early.per_second > 32
    again, _ = throttled(64, [(0, 0), (HALVED_AT_MOST_EVERY_MS, 0)])
    assert again.per_second < 32


def test_it_grows_only_once_calls_are_wanted_again_and_of_two_times_the_later_one_holds() -> None:
    rate, _ = throttled(100, [(0, 3000), (100, 50)])
    assert rate.resumes_ms == 3000
    rate.advance(3000)
    assert rate.per_second == 50
    rate.advance(4000)
    assert rate.per_second == pytest.approx(55)


def test_there_is_a_least_rate_but_none_above_what_is_configured() -> None:
    many = [(500.0, 60_000.0)] * 40
    assert throttled(100, many)[0].per_second == LEAST_PER_SECOND
    assert throttled(0.001, many)[0].per_second == 0.001


@given(RATES, THROTTLES, st.floats(0, 60_000), st.floats(0, 60_000))
def test_two_steps_give_what_one_does(per_second: float, past: list[tuple[float, float]], a: float, b: float) -> None:
    one, now_ms = throttled(per_second, past)
    two, _ = throttled(per_second, past)
    at_once = one.advance(now_ms + a + b)
    assert two.advance(now_ms + a) + two.advance(now_ms + a + b) == pytest.approx(at_once)
    assert one.per_second == pytest.approx(two.per_second)


@given(RATES, THROTTLES, st.floats(0.001, 1000))
def test_the_time_to_wait_for_calls_is_the_time_that_gives_them(
    per_second: float, past: list[tuple[float, float]], calls: float
) -> None:
    rate, now_ms = throttled(per_second, past)
    assert rate.advance(now_ms + rate.wait_ms(calls)) == pytest.approx(calls)
