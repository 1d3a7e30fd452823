"""Durations of joins, triggers and lateness that are a few milliseconds, where seconds may be meant."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from understudy import Count, StreamEnvironment, any_of, continuous_event_time, event_time, monotonous, tumbling
from understudy.runtime.api.stream import DataStream, WindowedStream
from understudy.testing import SimulatedCluster

NOON = 1_700_000_000_000
Made = Callable[[Any, Any], DataStream]


def run(made: Made, start_ms: int, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What such a job says of seconds, from the first call on."""
    env = StreamEnvironment(parallelism=1)

    def stream(name: str) -> DataStream:
        rows = [{"id": number, "at": start_ms + number * 1_000} for number in range(4)]
        return env.from_collection(rows).assign_timestamps("at", monotonous(), name=name).key_by("id")

    with caplog.at_level(logging.WARNING), SimulatedCluster(1) as cluster:
        made(stream("left"), lambda: stream("right")).collect(name="out")
        cluster.submit(env).wait(60)
    return [said for said in caplog.messages if "seconds are meant" in said]


def counted(windowed: WindowedStream) -> DataStream:
    return windowed.aggregate(n=Count())


def windows(keyed: Any) -> WindowedStream[Any]:
    return keyed.window(tumbling(seconds=1))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (lambda a, b: a.interval_join(b(), 0, 60), "interval_join(0, 60)"),
        (lambda a, b: a.interval_join(b(), -60, 0), "interval_join(-60, 0)"),
        (lambda a, b: a.join(b(), ttl_ms=60, ttl_time="event"), "join(ttl_ms=60)"),
        (lambda a, b: a.deduplicate(within_ms=60), "deduplicate(within_ms=60)"),
        (lambda a, b: counted(windows(a).allowed_lateness(60)), "allowed_lateness(60)"),
        (lambda a, b: counted(windows(a).trigger(continuous_event_time(5))), "continuous_event_time(5)"),
        (
            lambda a, b: counted(windows(a).trigger(any_of(event_time(), continuous_event_time(5)))),
            "continuous_event_time(5)",
        ),
    ],
)
def test_a_few_ms_of_dates_are_asked_about_and_of_other_times_they_are_not(
    made: Made, written: str, caplog: pytest.LogCaptureFixture
) -> None:
    (said,) = run(made, NOON, caplog)
    assert said.startswith(f"operator 'left': times are milliseconds, and so are those of {written}. If seconds are")
    caplog.clear()
    assert run(made, 0, caplog) == []


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (lambda a, b: a.join(b(), ttl_ms=60), "join(ttl_ms=60)"),
        (lambda a, b: a.deduplicate(within_ms=60, within_time="processing"), "deduplicate(within_ms=60)"),
    ],
)
def test_a_few_ms_of_the_clock_are_asked_about_whatever_the_times_are(
    made: Made, written: str, caplog: pytest.LogCaptureFixture
) -> None:
    (said,) = run(made, 0, caplog)
    assert said.startswith(f"{written}: the duration is milliseconds of the clock. If seconds are meant, write seconds")


@pytest.mark.parametrize(
    "made",
    [
        lambda a, b: a.interval_join(b(), 0, timedelta(milliseconds=60)),
        lambda a, b: a.interval_join(b(), -3_600_000, -1),
        lambda a, b: a.interval_join(b(), -1, timedelta(hours=1)),
        lambda a, b: a.interval_join(b(), 0, 0),
        lambda a, b: a.interval_join(b(), 0, 100),
        lambda a, b: a.join(b(), ms=60),
        lambda a, b: a.join(b(), ttl_ms=100, ttl_time="event"),
        lambda a, b: a.join(b()),
        lambda a, b: a.deduplicate(ms=60),
        lambda a, b: a.deduplicate(),
        lambda a, b: counted(windows(a).allowed_lateness(ms=60)),
        lambda a, b: counted(windows(a).allowed_lateness(0)),
        lambda a, b: counted(windows(a).trigger(continuous_event_time(ms=500))),
        lambda a, b: counted(windows(a).trigger(continuous_event_time(timedelta(milliseconds=50)))),
    ],
)
def test_durations_with_a_unit_and_longer_ones_are_not_asked_about(
    made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    assert run(made, NOON, caplog) == []
