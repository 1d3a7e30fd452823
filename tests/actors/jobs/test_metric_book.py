"""MetricBook: rates of two readings, and Flink's names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from understudy.actors.jobs.metric_book import MetricBook
from understudy.actors.jobs.metric_sums import of_subtasks
from understudy.messages import (
    END_OF_TIME,
    ExecutionAttemptId,
    Heartbeat,
    OperatorFigures,
    OperatorId,
    SubtaskIndex,
    TaskEventTime,
    TaskManagerId,
    TaskMetrics,
    UserMetric,
    VertexId,
)

ATTEMPT, TM = ExecutionAttemptId("attempt-1"), TaskManagerId("tm-1")
BEGUN = TaskMetrics(ATTEMPT, VertexId("v"), "v", SubtaskIndex(0), 0, 0, 0, 0, 0, "running")
TIME = TaskEventTime(5_000, 4_000, 10, 250, False, False, 3)


def reading(clock_ms: float, **fields: Any) -> TaskMetrics:
    return replace(BEGUN, clock_ms=clock_ms, **fields)


def after(*readings: TaskMetrics) -> MetricBook:
    book = MetricBook()
    for number, each in enumerate(readings):
        book.heard(TM, Heartbeat(TM, number, (each,)))
    return book


def values_after(*readings: TaskMetrics) -> dict[str, float]:
    return after(*readings).values(ATTEMPT)[0]


def test_rates_are_made_of_the_tasks_own_clock() -> None:
    found = values_after(
        reading(1_000, records_in=100, records_out=10, input_bytes=1_000),
        reading(3_000, records_in=300, records_out=30, input_bytes=5_000),
    )
    assert found["numRecordsIn"] == 300
    assert (found["numRecordsInPerSecond"], found["numRecordsOutPerSecond"]) == (100, 10)
    assert found["numBytesInPerSecond"] == 2_000


def test_rates_look_back_on_the_last_seconds_only() -> None:
    steps = [reading(1_000.0 * second, records_in=1_000 if second >= 3 else 0) for second in range(11)]
    assert values_after(*steps[:4])["numRecordsInPerSecond"] == pytest.approx(1_000 / 3)
    assert values_after(*steps)["numRecordsInPerSecond"] == 0


def test_busy_held_back_and_idle_make_a_second() -> None:
    found = values_after(reading(0), reading(2_000, busy_ms=500, backpressured_ms=1_000))
    times = [found[f"{name}TimeMsPerSecond"] for name in ("busy", "backPressured", "idle")]
    assert times == [250, 500, 250]


def test_a_task_that_was_heard_of_once_or_has_ended_has_no_rates() -> None:
    assert values_after(reading(1_000, records_in=5))["numRecordsInPerSecond"] == 0
    ended = values_after(reading(0), reading(1_000, busy_ms=800, status="finished"))
    assert ended["busyTimeMsPerSecond"] == ended["idleTimeMsPerSecond"] == 0
    assert MetricBook().values(ATTEMPT) == ({}, {})


def test_a_watermark_is_shown_as_long_as_there_is_one() -> None:
    found = values_after(reading(0, event_time=TIME))
    assert (found["currentInputWatermark"], found["currentOutputWatermark"], found["watermarkLag"]) == (
        5_000,
        4_000,
        250,
    )
    ended = replace(TIME, input_watermark_ms=END_OF_TIME, output_watermark_ms=END_OF_TIME, lag_ms=None)
    assert {"currentInputWatermark", "watermarkLag"}.isdisjoint(values_after(reading(0, event_time=ended)))


def test_figures_of_operators_and_of_users_have_the_operators_name_before_them() -> None:
    state = OperatorFigures(OperatorId("o"), "count", 0, in_flight=None, state_entries=7, state_size_bytes=900)

    def user(events: float) -> tuple[UserMetric, ...]:
        return (
            UserMetric(OperatorId("o"), "count", "late", "counter", (4.0,)),
            UserMetric(OperatorId("o"), "count", "calls", "meter", (events,)),
            UserMetric(OperatorId("o"), "count", "ms", "histogram", tuple(map(float, range(11)))),
        )

    book = after(reading(0, user=user(10), operators=(state,)), reading(2_000, user=user(30), operators=(state,)))
    found, kinds = book.values(ATTEMPT)
    assert found["count.stateEntries"] == 7
    assert found["count.stateSize"] == 900
    assert "count.recordsInFlight" not in found
    assert (found["count.late"], found["count.calls"], found["count.calls_count"]) == (4, 10, 30)
    assert (found["count.ms_count"], found["count.ms_p999"]) == (0, 10)
    assert kinds == {"count.late": "counter", "count.calls": "meter", "count.ms": "histogram"}


def test_attempts_that_are_gone_are_forgotten() -> None:
    book = after(reading(0))
    book.keep([])
    assert book.last(ATTEMPT) is None


def test_a_vertex_is_the_sum_of_its_subtasks_or_the_worst_of_them() -> None:
    one = {
        "numRecordsIn": 30.0,
        "busyTimeMsPerSecond": 900.0,
        "currentInputWatermark": 7.0,
        "a.depth": 1.0,
        "a.late": 2.0,
    }
    other = {
        "numRecordsIn": 10.0,
        "busyTimeMsPerSecond": 100.0,
        "currentInputWatermark": 9.0,
        "a.depth": 5.0,
        "a.late": 1.0,
    }
    assert of_subtasks([one, other], {"a.depth": "gauge", "a.late": "counter"}) == {
        "numRecordsIn": 40.0,
        "busyTimeMsPerSecond": 900.0,
        "currentInputWatermark": 7.0,
        "a.late": 3.0,
        "dataSkewPercentage": 50.0,
    }
