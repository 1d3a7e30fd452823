"""TimerWheel: many deadlines, one timer of the loop. On a loop whose time the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from understudy.runtime.coroutines.timer_wheel import TICK_MS, TimerWheel


class Hands:
    """A loop with one timer, and a clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now_s

    def call_at(self, when_s: float, callback: Callable[[], None]) -> Any:
        timer = when_s, callback
        self.timers.append(timer)
        return _Handle(self.timers, timer)

    def pass_time(self, until_s: float) -> None:
        turns = 0
        while self.timers and min(self.timers)[0] <= until_s:
            timer = min(self.timers, key=lambda each: each[0])
            self.timers.remove(timer)
            self.now_s = max(self.now_s, timer[0])
            timer[1]()
            turns += 1
            assert turns < 10_000, "it turns without end"
        self.now_s = until_s


class _Handle:
    def __init__(self, timers: list[Any], timer: Any) -> None:
        self._timers, self._timer = timers, timer

    def cancel(self) -> None:
        if self._timer in self._timers:
            self._timers.remove(self._timer)


def wheel(hands: Hands, expired: Callable[[Any], None]) -> TimerWheel[Any]:
    return TimerWheel(cast(asyncio.AbstractEventLoop, hands), expired)


@given(st.lists(st.tuples(st.floats(0, 500), st.floats(0, 300)), max_size=30), st.floats(0, 100_000))
def test_each_deadline_comes_once_never_early_and_at_most_a_tick_late(
    deadlines: list[tuple[float, float]], start_s: float
) -> None:
    hands = Hands()
    hands.now_s = start_s
    came: dict[int, float] = {}

    def expired(item: int) -> None:
        assert item not in came
        came[item] = hands.now_s

    turning = wheel(hands, expired)
    wanted = {}
    for item, (at_ms, after_ms) in enumerate(sorted(deadlines)):
        hands.pass_time(max(hands.now_s, start_s + at_ms / 1000))
        turning.add(item, after_ms)
        wanted[item] = hands.now_s + after_ms / 1000
    hands.pass_time(hands.now_s + 1)

    assert came.keys() == wanted.keys()
    slack_s = 1e-6
    assert all(wanted[item] - slack_s <= came[item] <= wanted[item] + (TICK_MS + 1) / 1000 for item in came)


def test_there_is_one_timer_for_all_of_them() -> None:
    hands = Hands()
    turning = wheel(hands, lambda _: None)
    for after_ms in (500, 300, 400, 300, 1):
        turning.add("item", after_ms)

    assert len(hands.timers) == 1


def test_an_earlier_deadline_is_kept_beside_a_later_one() -> None:
    hands, came = Hands(), []
    turning = wheel(hands, came.append)
    turning.add("late", 500)
    turning.add("early", 100)
    hands.pass_time(0.2)
    assert came == ["early"]

    hands.pass_time(1)
    assert came == ["early", "late"]


def test_after_close_nothing_comes() -> None:
    hands, came = Hands(), []
    turning = wheel(hands, came.append)
    turning.add("item", 100)
    turning.close()
    hands.pass_time(1)

    assert (came, hands.timers) == ([], [])


def test_it_does_not_turn_for_ever_where_the_loop_is_a_hair_early() -> None:
    """16.33 s are 16329.999999999998 ms as floats, which is a tick before: found by the simulator."""
    hands, came = Hands(), []
    hands.now_s = 16.3
    turning = wheel(hands, came.append)
    for after_ms in range(0, 200, 3):
        turning.add(after_ms, after_ms)
    hands.pass_time(17)

    assert len(came) == 67
