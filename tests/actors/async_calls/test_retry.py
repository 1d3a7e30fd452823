"""Retry: which settings make sense, for which errors, and how long the pauses are."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.async_calls.retry import Retry


class Fixed(random.Random):
    """Draws one number."""

    def __init__(self, drawn: float) -> None:
        super().__init__()
        self.drawn = drawn

    def random(self) -> float:
        return self.drawn


def test_pauses_grow_to_the_longest_one() -> None:
    retry = Retry(attempts=9, first_delay_ms=100, factor=3, max_delay_ms=1000, jitter=0)
    assert [retry.delay_ms(tries, Fixed(0.7)) for tries in range(1, 6)] == [100, 300, 900, 1000, 1000]


def test_jitter_shortens_a_pause() -> None:
    retry = Retry(first_delay_ms=100, jitter=0.2)
    assert [retry.delay_ms(1, Fixed(drawn)) for drawn in (0.0, 0.5, 1.0)] == [100, 90, 80]


def test_the_thousandth_pause_is_no_longer_than_the_longest_one() -> None:
    assert Retry(attempts=10_000, factor=1e10, jitter=0).delay_ms(9_999, Fixed(0)) == 30_000
    assert Retry(attempts=10_000, first_delay_ms=0, factor=1e10, jitter=0).delay_ms(9_999, Fixed(0)) == 0
    assert Retry(attempts=10_000, factor=1, jitter=0).delay_ms(9_999, Fixed(0)) == 100


@given(
    st.floats(0, 1e5), st.floats(1, 1e6), st.floats(0, 1e6), st.floats(0, 1), st.integers(1, 10**6), st.integers(0, 9)
)
def test_a_pause_is_never_longer_than_the_longest_one_nor_shorter_than_its_jitter_allows(
    first: float, factor: float, more: float, jitter: float, tries: int, seed: int
) -> None:
    retry = Retry(first_delay_ms=first, factor=factor, max_delay_ms=first + more, jitter=jitter)
    delay_ms = retry.delay_ms(tries, random.Random(seed))
    assert first * (1 - jitter) <= delay_ms + 1e-9
    assert delay_ms <= first + more


def test_only_errors_of_its_classes_are_tried_again_and_cancellation_never_is() -> None:
    retry = Retry(on=(ConnectionError, TimeoutError))
    assert retry.is_for(ConnectionResetError())
    assert not retry.is_for(KeyError())
    assert Retry().is_for(KeyError())
    assert not Retry().is_for(asyncio.CancelledError())
    assert not Retry(on=()).is_for(KeyError())


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"attempts": 0}, "Retry: attempts: wanted a whole number, 1 or more, found 0"),
        ({"attempts": 2.5}, "Retry: attempts: wanted a whole number, 1 or more, found 2.5"),
        ({"attempts": True}, "Retry: attempts: wanted a whole number, 1 or more, found True"),
        ({"first_delay_ms": -1}, "Retry: first_delay_ms: wanted a number, 0 or more, found -1"),
        ({"first_delay_ms": "1s"}, "Retry: first_delay_ms: wanted a number, 0 or more, found '1s'"),
        ({"factor": 0.5}, "Retry: factor: wanted a number, 1 or more, found 0.5"),
        ({"factor": float("nan")}, "Retry: factor: wanted a number, 1 or more, found nan"),
        ({"max_delay_ms": 50}, "Retry: max_delay_ms: wanted a number, first_delay_ms (100) or more, found 50"),
        ({"jitter": float("inf")}, "Retry: jitter: wanted a number, 0 to 1, found inf"),
        ({"jitter": 1.1}, "Retry: jitter: wanted a number, 0 to 1, found 1.1"),
        ({"jitter": False}, "Retry: jitter: wanted a number, 0 to 1, found False"),
        (
            {"on": ValueError},
            "Retry: on: wanted a tuple of exception classes, such as (TimeoutError, ConnectionError), "
            "found <class 'ValueError'>",
        ),
        (
            {"on": (ValueError, KeyboardInterrupt)},
            "Retry: on: wanted a tuple of exception classes, such as (TimeoutError, ConnectionError), "
            "found (<class 'ValueError'>, <class 'KeyboardInterrupt'>)",
        ),
    ],
    ids=str,
)
def test_a_setting_that_makes_no_sense_is_refused(setting: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole text is compared
        Retry(**setting)
    assert str(refused.value) == text
