"""Triggers in a window operator: continuous ones, combinations, and one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from understudy import (
    InvalidWindow,
    Trigger,
    TriggerResult,
    all_of,
    any_of,
    continuous_event_time,
    continuous_processing_time,
    count,
    event_time,
    global_window,
    never,
    processing_time,
    purging,
    session,
    tumbling,
)
from understudy.actors.windows.window_contents import Reduced

from .window_stage import WindowStage, windowed


def number(key: Any, window: Any, records: Sequence[Any], out: Any) -> None:
    out.collect(records[0][1])


def counting(assigner: Any, trigger: Trigger, **settings: Any) -> WindowStage:
    """Emits how many records of a key a window has; records are (key, 1)."""
    return WindowStage(
        windowed(assigner, Reduced(lambda a, b: (a[0], a[1] + b[1])), number, trigger=trigger, **settings)
    )


def put(stage: WindowStage, *times: int) -> list[Any]:
    return stage.feed(*[("a", 1)] * len(times), at=times)


def test_time_and_count_out_of_the_box() -> None:
    stage = counting(tumbling(10), any_of(event_time(), count(2)))
    assert put(stage, 1, 2, 3) == [2]
    assert stage.advance(9) == [3]
    assert stage.holds() == (0, 0)


def test_all_of_waits_for_each_in_whatever_order() -> None:
    stage = counting(tumbling(10), all_of(event_time(), count(3)), allowed_lateness_ms=100)
    put(stage, 1, 2, 11, 12, 13)
    stage = stage.restored()
    assert stage.advance(9) == []
    assert put(stage, 3) == [3]
    assert put(stage, 4, 5) == []  # the time fires again, and the count must too
    assert stage.advance(19) == [3]
    stage.put_watermark(200)
    assert stage.holds() == (0, 0)


def test_all_of_waits_for_the_end_of_the_merged_session() -> None:
    """The end of the first session came before the record that made it longer."""
    stage = counting(session(10), all_of(event_time(), count(3)), allowed_lateness_ms=100)
    put(stage, 0, 5)
    assert stage.advance(16) == []
    assert put(stage, 12) == []
    assert stage.advance(21) == [3]


def test_all_of_keeps_the_count_of_sessions_that_merge() -> None:
    stage = counting(session(10), all_of(event_time(), count(2)))
    assert put(stage, 0, 5, 12) == []
    assert stage.advance(21) == [3]


def test_timers_that_two_parts_have_set_stay_until_neither_wants_them() -> None:
    class Fickle(Trigger):
        """Takes its timer back with the second record."""

        def on_record(self, record: Any, timestamp_ms: Any, window: Any, context: Any) -> TriggerResult:
            if context.get("seen"):
                context.delete_event_time(window.max_timestamp)
            else:
                context.put("seen", True)
                context.at_event_time(window.max_timestamp)
            return TriggerResult.CONTINUE

        def on_event_time(self, time_ms: int, window: Any, context: Any) -> TriggerResult:
            raise AssertionError("it has no timer")

    stage = counting(tumbling(10), any_of(Fickle(), event_time()), allowed_lateness_ms=50)
    put(stage, 1, 2)
    assert stage.advance(9) == [2]
    stage.put_watermark(100)
    assert stage.holds() == (0, 0)


def test_a_window_is_forgotten_at_its_end_though_its_trigger_has_taken_back_its_own_timer_for_then() -> None:
    class Early(Trigger):
        """By the clock, and then no more."""

        def on_record(self, record: Any, timestamp_ms: Any, window: Any, context: Any) -> TriggerResult:
            context.at_event_time(window.max_timestamp)
            context.at_processing_time(5)
            return TriggerResult.CONTINUE

        def on_processing_time(self, time_ms: int, window: Any, context: Any) -> TriggerResult:
            context.delete_event_time(window.max_timestamp)
            return TriggerResult.FIRE

    stage = counting(tumbling(10), Early())
    put(stage, 1, 2)
    assert stage.clock(5) == [2]
    assert stage.advance(9) == []
    assert stage.holds() == (0, 0)


def test_combinations_may_be_combined() -> None:
    trigger = purging(any_of(all_of(count(2), continuous_event_time(5)), event_time()))
    stage = counting(tumbling(20), trigger)
    put(stage, 1, 2)
    assert stage.advance(5) == [2]
    put(stage, 6)
    assert stage.advance(10) == []
    assert stage.advance(19) == [1]
    assert stage.holds() == (0, 0)


def test_continuous_event_time_fires_at_each_multiple_and_at_the_end() -> None:
    """Flink: WindowOperatorTest.testContinuousWatermarkTrigger, and its firing at the end of a window."""
    stage = counting(tumbling(10), continuous_event_time(4))
    put(stage, 1)
    assert [stage.advance(time) for time in (3, 4, 5, 8, 9)] == [[], [1], [], [1], [1]]
    assert stage.holds() == (0, 0)


def test_continuous_event_time_goes_on_from_the_earliest_of_the_sessions_that_merge() -> None:
    stage = counting(session(10), continuous_event_time(4))
    put(stage, 1, 13, 10)
    assert [stage.advance(time) for time in (3, 4, 8, 21, 22)] == [[], [3], [3], [3, 3, 3], [3]]
    assert stage.holds() == (0, 0)


def test_continuous_event_time_over_everything_ends_with_the_data() -> None:
    stage = counting(global_window(), continuous_event_time(3000))
    put(stage, 20, 999)
    assert [stage.advance(time) for time in (1000, 3000, 4000, 6000)] == [[], [2], [], [2]]
    assert stage.end() == [2]


def test_event_time_over_everything_fires_when_the_data_ends() -> None:
    stage = counting(global_window(), event_time())
    put(stage, 1, 2)
    assert stage.advance(10**15) == []
    assert stage.end() == [2]


def test_continuous_processing_time_shows_a_window_as_it_grows() -> None:
    stage = counting(tumbling(10), any_of(event_time(), continuous_processing_time(1000)))
    stage.clock(10_500)
    put(stage, 1, 2)
    assert stage.clock(10_999) == []
    assert stage.clock(11_000) == [2]
    put(stage, 3)
    assert stage.clock(12_000) == [3]
    assert stage.advance(9) == [3]
    assert stage.clock(50_000) == []
    assert stage.holds() == (0, 0)


def test_continuous_processing_time_ends_with_a_window_of_processing_time() -> None:
    stage = counting(tumbling(10, time="processing"), continuous_processing_time(4))
    stage.clock(1)
    put(stage, 0, 0)
    assert [stage.clock(time) for time in (4, 8, 9, 20)] == [[2], [2], [2], []]
    assert stage.holds() == (0, 0)


def test_continuous_processing_time_keeps_to_its_multiples_in_a_session_that_grows() -> None:
    stage = counting(session(10, time="processing"), continuous_processing_time(16))
    for time in (0, 6, 12):
        assert stage.clock(time) == []
        put(stage, 0)
    assert [stage.clock(time) for time in (15, 16, 20)] == [[], [3], []]
    put(stage, 0)
    assert [stage.clock(time) for time in (28, 29, 50)] == [[], [4], []]
    assert stage.holds() == (0, 0)


def test_continuous_processing_time_goes_on_in_a_session_that_merges() -> None:
    stage = counting(session(10), any_of(event_time(), continuous_processing_time(1000)))
    stage.clock(500)
    put(stage, 0, 5, 12)
    assert stage.clock(1000) == [3]
    assert stage.advance(50) == [3]
    assert stage.holds() == (0, 0)


def test_processing_time_alone_may_not_close_windows_of_event_time() -> None:
    """They are forgotten when the watermark has passed them, with all they hold."""
    with pytest.raises(InvalidWindow, match=r"use event_time\(\)"):
        counting(tumbling(10), processing_time())
    stage = counting(tumbling(10), any_of(event_time(), processing_time()))
    stage.clock(0)
    put(stage, 1)
    assert stage.clock(9) == [1]
    stage.put_watermark(9)
    assert stage.holds() == (0, 0)


def test_never_never_fires_and_the_window_is_forgotten_at_its_end() -> None:
    stage = counting(tumbling(10), never())
    put(stage, 1)
    assert stage.end() == []
    assert stage.holds() == (0, 0)


class Threshold(Trigger):
    """Fires when the records of a window come to `limit`."""

    def on_record(self, record: Any, timestamp_ms: Any, window: Any, context: Any) -> TriggerResult:
        total = context.get("total", 0) + record[1]
        context.put("total", total)
        return TriggerResult.FIRE_AND_PURGE if total >= 3 else TriggerResult.CONTINUE

    def on_merge(self, window: Any, context: Any) -> None:
        context.put("total", sum(context.of_merged("total")))


class NotForSessions(Trigger):
    def on_record(self, record: Any, timestamp_ms: Any, window: Any, context: Any) -> TriggerResult:
        return TriggerResult.CONTINUE


def test_a_trigger_of_ones_own_remembers_in_its_context_and_merges() -> None:
    stage = counting(session(10), Threshold())
    assert put(stage, 0, 15) == []
    stage = stage.restored()
    assert put(stage, 8) == [3]
    stage.put_watermark(100)
    assert stage.holds() == (0, 0)


class DeletesTheEnd(Trigger):
    """Takes back a timer that it never set: the one with which the operator forgets the window."""

    def on_record(self, record: Any, timestamp_ms: Any, window: Any, context: Any) -> TriggerResult:
        context.delete_event_time(window.max_timestamp)
        return TriggerResult.FIRE

    def clear(self, window: Any, context: Any) -> None:
        context.delete_event_time(window.max_timestamp)


def test_no_trigger_can_keep_a_window_from_being_forgotten() -> None:
    stage = counting(tumbling(10), DeletesTheEnd())
    assert put(stage, 1, 2) == [1, 2]
    stage.put_watermark(9)
    assert stage.holds() == (0, 0)


@pytest.mark.parametrize("trigger", [NotForSessions(), purging(NotForSessions()), any_of(NotForSessions(), count(3))])
def test_a_trigger_that_cannot_merge_is_refused_for_sessions(trigger: Trigger) -> None:
    with pytest.raises(InvalidWindow, match="define on_merge"):
        windowed(session(10), trigger=trigger)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: count(0), "above 0, found 0"),
        (lambda: any_of(count(1)), "at least two triggers"),
        (lambda: all_of(count(1), count), "wanted a trigger such as"),  # type: ignore[arg-type]
        (lambda: purging(3), "wanted a trigger such as"),  # type: ignore[arg-type]
        (lambda: continuous_event_time(0), "above 0 ms"),
        (lambda: continuous_processing_time(), "found nothing"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_is_written(make: Any, says: str) -> None:
    with pytest.raises(InvalidWindow, match=says):
        make()
