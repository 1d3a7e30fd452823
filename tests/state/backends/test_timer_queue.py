"""TimerQueue: by time, then in the order of registration, each once. Flink: InternalPriorityQueueTestBase."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.state.backends import timer_queue
from understudy.state.backends.timer_queue import TimerEntry, TimerQueue

TIMES = st.integers(0, 6)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "add", "add", "remove", "pop"]), TIMES, st.sampled_from("abc")), max_size=60
)


@given(STEPS)
def test_it_is_the_list_of_its_timers_sorted_by_time(steps: list[tuple[str, int, str]]) -> None:
    queue, model, added_again = TimerQueue("timers"), list[TimerEntry](), set[TimerEntry]()
    removed = set[TimerEntry]()
    for what, time_ms, key in steps:
        timer = (time_ms, key, ())
        if what == "add":
            assert queue.add(timer) == (timer not in model)
            if timer not in model:
                model.append(timer)
                added_again |= {timer} & removed
        elif what == "remove":
            assert queue.remove(timer) == (timer in model)
            if timer in model:
                model.remove(timer)
                removed.add(timer)
        else:
            due = sorted((each for each in model if each[0] <= time_ms), key=lambda each: each[0])
            first = queue.pop(time_ms)
            assert (first is None) == (not due)
            if first is not None:
                assert first == due[0] or (first[0] == due[0][0] and added_again & {first, due[0]})
                model.remove(first)
        assert len(queue) == len(model)
        earliest = queue.next_ms()
        assert (earliest is None) == (not model)
        assert earliest is None or earliest <= min(each[0] for each in model)


def test_one_that_is_added_while_those_of_its_time_fire_comes_after_them() -> None:
    queue = TimerQueue("timers")
    for key in "ab":
        queue.add((5, key, ()))
    assert queue.pop(5) == (5, "a", ())
    queue.add((5, "c", ()))
    assert [queue.pop(5), queue.pop(5), queue.pop(5)] == [(5, "b", ()), (5, "c", ()), None]


def test_an_earlier_one_that_is_added_while_others_fire_comes_first() -> None:
    queue = TimerQueue("timers")
    for key in "ab":
        queue.add((5, key, ()))
    assert queue.pop(9) == (5, "a", ())
    queue.add((3, "c", ()))
    assert [queue.pop(9), queue.pop(9)] == [(3, "c", ()), (5, "b", ())]


def test_deleted_timers_do_not_pile_up() -> None:
    """A session that gets a record moves its timer each time."""
    queue = TimerQueue("timers")
    for time_ms in range(100_000):
        queue.add((time_ms, "a", ()))
        queue.remove((time_ms - 1, "a", ()))
    assert len(queue) == 1
    assert len(queue._times) + len(queue._at) < 10_000


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)))
def test_once_empty_times_are_dropped_the_others_fire_in_order(times: list[int], left: set[int]) -> None:
    queue = TimerQueue("timers")
    for time_ms in times:
        queue.add((time_ms, "a", ()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timer_queue, "_MOST_EMPTY", 0)
        for time_ms in times:
            assert time_ms in left or queue.remove((time_ms, "a", ()))
    assert [time_ms for time_ms, _, _ in queue.due(99)] == sorted(left)


@pytest.mark.parametrize("time_ms", [-(2**63), 2**63 - 1])
def test_the_first_and_the_last_time_there_are_can_be_timers(time_ms: int) -> None:
    queue = TimerQueue("timers")
    queue.add((time_ms, "a", ()))
    assert queue.pop(2**63 - 1) == (time_ms, "a", ())


def test_a_timer_with_a_namespace_is_none_without() -> None:
    """Nor is a key that looks like both."""
    queue = TimerQueue("timers")
    timers = [(5, "a", ()), (5, "a", "w"), (5, ("a", "w"), ()), (5, "b", ()), (5, ("x", "a", "w"), ())]
    assert [queue.add(timer) for timer in (*timers, *timers)] == [True] * 5 + [False] * 5
    assert queue.remove((5, "a", "w"))
    assert not queue.remove((5, "a", "w"))
    assert list(queue) == list(queue.freeze().timers) == [timers[0], *timers[2:]]
    assert list(queue.due(5)) == [timers[0], *timers[2:]]


def test_what_places_hold_is_pending_at_any_later_moment() -> None:
    queue = TimerQueue("timers")
    queue.add((5, "a", ()))
    places = queue.places_at(5)
    assert "a" in places
    assert queue.pop(5) == (5, "a", ())
    assert "a" not in places
    assert queue.pop(5) is None
    queue.add((5, "a", ()))
    assert "a" in queue.places_at(5)
    places = queue.places_at(5)
    queue.clear()
    assert "a" not in places


def test_timers_that_set_their_own_time_again_do_not_go_through_those_that_have_fired() -> None:
    queue = TimerQueue("timers")
    for key in range(20_000):
        queue.add((5, key, ()))
    fired = 0
    for timer in queue.due(5):
        fired += 1
        if fired < 40_000:
            queue.add(timer) if timer[1] == 0 else None
    assert fired == 40_000
    assert (len(queue), queue.next_ms()) == (0, None)
