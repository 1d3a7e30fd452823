"""Figures of checkpoints and jobs as Flink's REST has them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from understudy.messages import JobStatus
from understudy.runtime.web import flink_jobs
from understudy.runtime.web.flink_checkpoints import numbers, statistics

from .views import START_MS, history_of, job_view


def test_a_quantile_is_the_least_value_that_so_many_are_not_above() -> None:
    found = numbers(range(100, 0, -1))
    assert (found["min"], found["max"], found["avg"]) == (1, 100, 50)
    assert [found[name] for name in ("p50", "p90", "p95", "p99", "p999")] == [50.0, 90.0, 95.0, 99.0, 100.0]


@pytest.mark.parametrize("value", [0, 7])
def test_of_one_value_each_figure_is_that(value: int) -> None:
    assert set(numbers([value]).values()) == {value}


def test_the_latest_checkpoint_is_no_savepoint_though_one_is_newer() -> None:
    history = history_of(view := job_view(), checkpoints=5)
    latest = statistics(history, view)["latest"]
    done = [each for each in history.checkpoints if each.status == "completed"]
    newest = {
        kind: next(each.checkpoint_id for each in done if each.kind == kind) for kind in ("checkpoint", "savepoint")
    }
    assert newest["savepoint"] > newest["checkpoint"]
    assert (latest["completed"]["id"], latest["savepoint"]["id"]) == (newest["checkpoint"], newest["savepoint"])


@pytest.mark.parametrize(("most", "is_truncated"), [(0, True), (1, False), (2, False)])
def test_exceptions_are_truncated_where_some_are_left_out(most: int, is_truncated: bool) -> None:
    view = job_view()
    assert len(view.failures) == 1
    shown = flink_jobs.exceptions(view, most)
    assert shown["exceptionHistory"]["truncated"] is shown["truncated"] is is_truncated


def test_a_job_that_has_ended_lasts_no_longer() -> None:
    ended = replace(job_view(status=JobStatus.FINISHED).summary, started_ms=START_MS, ended_ms=START_MS + 5_000)
    assert flink_jobs.summary(ended, START_MS + 60_000)["duration"] == 5_000
    runs = replace(ended, status=JobStatus.RUNNING, ended_ms=0)
    assert [flink_jobs.summary(runs, START_MS + at_ms)["duration"] for at_ms in (60_000, -1)] == [60_000, 0]
