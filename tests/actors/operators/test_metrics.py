"""Metrics of user code: counters, meters, gauges, histograms, and their bounds."""

from __future__ import annotations

import logging

import pytest

from understudy import MetricGroup, Operator
from understudy.actors.operators.metrics import HISTOGRAM_WINDOW, MAX_METRICS
from understudy.messages import HISTOGRAM_FIGURES, OperatorId

from .conftest import context


def reported(group: MetricGroup) -> dict[str, tuple[float, ...]]:
    return {each.name: each.values for each in group.reported(OperatorId("o"), "count")}


def test_each_kind_reports_its_state() -> None:
    group = MetricGroup()
    group.counter("late").inc(3)
    group.counter("late").dec()
    group.counter("early").count += 5
    group.meter("calls").mark(5)
    group.gauge("depth").set(7)
    for value in range(1, 101):
        group.histogram("ms").update(value)
    found = reported(group)
    assert (found["late"], found["early"], found["calls"], found["depth"]) == ((2.0,), (5.0,), (5.0,), (7.0,))
    figures = dict(zip(HISTOGRAM_FIGURES, found["ms"], strict=True))
    assert figures == {
        "count": 100, "sum": 5050, "min": 1, "max": 100, "mean": 50.5,
        "p50": 50, "p75": 75, "p95": 95, "p98": 98, "p99": 99, "p999": 100,
    }  # fmt: skip


def test_a_histogram_forgets_old_values_and_counts_all() -> None:
    histogram = MetricGroup().histogram("ms")
    for value in range(3 * HISTOGRAM_WINDOW):
        histogram.update(value)
    figures = dict(zip(HISTOGRAM_FIGURES, histogram.values(), strict=True))
    assert figures["count"] == 3 * HISTOGRAM_WINDOW
    assert figures["min"] == 2 * HISTOGRAM_WINDOW


def test_what_has_no_value_yet_or_none_that_is_finite_is_not_reported() -> None:
    group = MetricGroup()
    group.gauge("empty")
    group.histogram("none")
    group.gauge("nan").set(float("nan"))
    assert reported(group) == {}


def test_a_gauges_function_is_asked_when_it_is_read_and_keeps_its_value_when_that_raises(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group, queue = MetricGroup(), [1, 2, 3]
    group.gauge("depth", lambda: 6 / len(queue))
    assert group.has_functions
    assert reported(group) == {}
    group.read_gauges("count")
    queue.clear()
    with caplog.at_level(logging.WARNING):
        group.read_gauges("count")
        group.read_gauges("count")
    assert reported(group) == {"depth": (2.0,)}
    assert len(caplog.records) == 1
    assert "gauge 'depth' of operator 'count' has no value: ZeroDivisionError" in caplog.text


def test_a_name_has_one_kind() -> None:
    group = MetricGroup()
    group.counter("late")
    with pytest.raises(ValueError, match="metric 'late' is a counter already: give the gauge another name"):
        group.gauge("late")
    for bad in ("", "x" * 300):
        with pytest.raises(ValueError, match="the name of a metric"):
            group.counter(bad)
    with pytest.raises(TypeError, match="gauge 'depth': wanted a function"):
        group.gauge("depth", 3)  # type: ignore[arg-type]


def test_too_many_metrics_work_and_are_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    group = MetricGroup()
    with caplog.at_level(logging.WARNING):
        for number in range(MAX_METRICS + 50):
            group.counter(f"of-user-{number:04}").inc()
    assert len(reported(group)) == MAX_METRICS
    assert len(caplog.records) == 1
    assert "makes one metric for each" in caplog.text


def test_an_operator_has_a_group_once_it_runs_and_may_have_an_attribute_of_that_name() -> None:
    class Counting(Operator):
        pass

    class Own(Operator):
        def __init__(self) -> None:
            self.metrics = "mine"  # type: ignore[misc, assignment]

    operator = Counting()
    with pytest.raises(RuntimeError, match="make its metrics in `open`"):
        operator.metrics  # noqa: B018
    operator.context = context()
    operator.metrics.counter("seen").inc()
    assert reported(operator.context.metrics) == {"seen": (1.0,)}
    assert Own().metrics == "mine"  # type: ignore[comparison-overlap]
