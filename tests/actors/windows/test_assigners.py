"""Assigners: which windows a time is in. What Flink's tests say of them is played by tests/conformance/windows.py."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import (
    GlobalWindow,
    InvalidWindow,
    TimeWindow,
    bounded_out_of_orderness,
    count_window,
    cumulative,
    global_window,
    session,
    sliding,
    tumbling,
)
from understudy.actors.flow.elements import END_OF_TIME, NO_WATERMARK

DAY, HOUR = 86_400_000, 3_600_000
times = st.integers(-(10**13), 10**13)


def at(text: str) -> int:
    """A local time with its zone, in ms: "2024-03-31 00:00 Europe/Berlin"."""
    day, hour, zone = text.split()
    moment = datetime.fromisoformat(f"{day} {hour}").replace(tzinfo=ZoneInfo(zone))
    return int(moment.timestamp()) * 1000


def test_a_size_is_a_number_of_ms_a_timedelta_or_keywords() -> None:
    assert tumbling(60_000) == tumbling(timedelta(minutes=1)) == tumbling(minutes=1) == tumbling(seconds=30, ms=30_000)
    assert sliding(timedelta(seconds=10), 2000) == sliding(10_000, timedelta(seconds=2))
    assert session(hours=1) == session(HOUR)


@given(times, st.integers(1, 10**9), st.data())
def test_each_time_is_in_the_one_tumbling_window_that_begins_at_the_offset_and_multiples_of_the_size(
    time: int, size: int, data: Any
) -> None:
    offset = data.draw(st.integers(0, size - 1))
    (window,) = tumbling(size, offset_ms=offset).assign(None, time)
    assert window.start <= time < window.end == window.start + size
    assert (window.start - offset) % size == 0


def test_a_slide_beyond_the_size_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"5000 ms of each 10000 are in no window.*were the two swapped\?"):
        sliding(timedelta(seconds=5), timedelta(seconds=10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sliding(10, 10)


@pytest.mark.filterwarnings("ignore:sliding")
@given(times, st.integers(1, 10**4), st.integers(1, 10**4))
def test_sliding_windows_are_all_those_that_hold_the_time(time: int, size: int, slide: int) -> None:
    found = sliding(size, slide).assign(None, time)
    first = (time - size) // slide * slide
    wanted = [TimeWindow(start, start + size) for start in range(first, time + 1, slide)]
    assert list(found) == [window for window in wanted if window.start <= time < window.end]


@given(times, st.integers(1, 1000), st.integers(1, 20))
def test_cumulative_windows_begin_together_and_end_a_step_apart(time: int, step: int, steps: int) -> None:
    found = list(cumulative(step, step * steps).assign(None, time))
    (whole,) = tumbling(step * steps).assign(None, time)
    ends = [whole.start + step * (index + 1) for index in range(steps)]
    assert found == [TimeWindow(whole.start, end) for end in ends if time < end]


def test_a_day_of_a_time_zone_has_23_or_25_hours_when_the_clock_changes() -> None:
    days = tumbling(days=1, tz="Europe/Berlin")
    for noon, hours in [("2024-03-31", 23), ("2024-10-27", 25), ("2024-06-01", 24)]:
        (window,) = days.assign(None, at(f"{noon} 12:00 Europe/Berlin"))
        assert window.end - window.start == hours * HOUR
        assert window.start == at(f"{noon} 00:00 Europe/Berlin")


@given(
    st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "America/St_Johns", "Asia/Beirut", "Asia/Kolkata", "UTC"]),
    st.integers(0, 2_000_000_000_000),
    st.sampled_from([0, 6 * HOUR]),
)
def test_each_time_is_in_one_day_of_any_time_zone(tz: str, time: int, offset: int) -> None:
    """Sao Paulo and Beirut leave midnight out; in St John's it came twice, a minute after the day had begun."""
    days = tumbling(days=1, tz=tz, offset_ms=offset)
    (window,) = days.assign(None, time)
    assert window.start <= time < window.end
    (following,) = days.assign(None, window.end)
    (before,) = days.assign(None, window.start - 1)
    assert (before.end, window.end) == (window.start, following.start)
    assert 22 * HOUR < window.end - window.start < 26 * HOUR


def test_weeks_and_sliding_days_go_by_local_days() -> None:
    (week,) = tumbling(days=7, tz="Europe/Berlin").assign(None, at("2024-03-31 12:00 Europe/Berlin"))
    assert week.end - week.start == 7 * DAY - HOUR
    windows = list(sliding(2 * DAY, DAY, tz="Europe/Berlin").assign(None, at("2024-03-31 12:00 Europe/Berlin")))
    assert [window.end - window.start for window in windows] == [2 * DAY - HOUR, 2 * DAY - HOUR]
    assert windows[0].end == windows[1].end - DAY


def test_cumulative_steps_of_a_long_day_are_25() -> None:
    day = cumulative(HOUR, DAY, tz="Europe/Berlin")
    long_day = list(day.assign(None, at("2024-10-27 00:30 Europe/Berlin")))
    short_day = list(day.assign(None, at("2024-03-31 00:30 Europe/Berlin")))
    assert (len(long_day), len(short_day)) == (25, 23)
    assert {window.start for window in long_day} == {at("2024-10-27 00:00 Europe/Berlin")}


def test_a_day_may_begin_at_another_hour() -> None:
    (window,) = tumbling(days=1, tz="Europe/Berlin", offset_ms=6 * HOUR).assign(
        None, at("2024-06-02 05:59 Europe/Berlin")
    )
    assert window == (at("2024-06-01 06:00 Europe/Berlin"), at("2024-06-02 06:00 Europe/Berlin"))


def test_a_gap_may_be_a_function_of_the_record() -> None:
    by_kind = session(lambda record: record["gap"])
    assert list(by_kind.assign({"gap": 5}, 100)) == [TimeWindow(100, 105)]
    assert list(by_kind.assign({"gap": timedelta(seconds=1)}, 100)) == [TimeWindow(100, 1100)]
    with pytest.raises(InvalidWindow, match=r"gap of .*wanted a duration above 0 ms, found 0 ms"):
        by_kind.assign({"gap": 0}, 100)


def test_windows_stay_within_64_bits() -> None:
    (last,) = tumbling(1000).assign(None, END_OF_TIME - 1)
    (first,) = tumbling(1000).assign(None, NO_WATERMARK)
    assert last.end == END_OF_TIME
    assert first.start == NO_WATERMARK


def test_the_global_window_and_counted_ones_go_by_no_time() -> None:
    for assigner in (global_window(), count_window(3)):
        (window,) = assigner.assign("record", 0)
        assert isinstance(window, GlobalWindow)
        assert window.max_timestamp == window.end == END_OF_TIME
        assert assigner.time is None


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: tumbling(), "found nothing"),
        (lambda: tumbling(1000, seconds=1), "found both"),
        (lambda: tumbling(0), "above 0 ms, found 0 ms"),
        (lambda: tumbling(1.5), r"whole number of milliseconds or a timedelta, found 1\.5"),  # type: ignore[arg-type]
        (lambda: tumbling(True), "found True"),
        (lambda: tumbling(timedelta(microseconds=1)), "whole milliseconds"),
        (lambda: tumbling(1000, offset_ms=-100), "the same windows have the offset 900"),
        (lambda: tumbling(1000, offset_ms=1000), "the same windows have the offset 0"),
        (lambda: sliding(1000, 100, offset_ms=100), "below 100, found 100"),
        (lambda: tumbling(1000, time="arrival"), "'event' or 'processing', found 'arrival'"),  # type: ignore[arg-type]
        (lambda: tumbling(hours=1, tz="Europe/Berlin"), "whole days"),
        (lambda: sliding(DAY, HOUR, tz="Europe/Berlin"), "whole days"),
        (lambda: tumbling(days=1, tz="Europe/Atlantis"), "a time zone by its name"),
        (lambda: cumulative(300, 1000), "a multiple of the step"),
        (lambda: session(), "found nothing"),
        (lambda: session(lambda record: 1, seconds=1), "found both"),
        (lambda: count_window(0), "above 0, found 0"),
        (lambda: count_window(3, 0), "above 0, found 0"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_is_written(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(InvalidWindow, match=says):
        make()


def test_a_time_that_is_not_in_ms_is_named_for_days_of_a_zone() -> None:
    nanoseconds = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) * 10**9
    with pytest.raises(InvalidWindow, match="are the times in milliseconds"):
        tumbling(days=1, tz="Europe/Berlin").assign(None, nanoseconds)


@pytest.mark.parametrize(
    ("bare", "with_a_unit"),
    [
        (tumbling(10), tumbling(ms=10)),
        (session(10), session(ms=10)),
        (bounded_out_of_orderness(10), bounded_out_of_orderness(ms=10)),
    ],
)
def test_a_duration_is_the_same_however_it_is_written(bare: Any, with_a_unit: Any) -> None:
    assert bare == with_a_unit
    assert repr(bare) == repr(with_a_unit)
