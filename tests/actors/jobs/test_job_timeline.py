"""JobTimeline: rates by heartbeats, samples that stay few, and what happened."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from understudy.actors.jobs.job_timeline import MARKS_KEPT, SAMPLES_KEPT, SAVEPOINTS_KEPT, JobTimeline
from understudy.messages import (
    CheckpointAborted,
    CheckpointCompleted,
    FailureCause,
    JobStatus,
    JobStatusChanged,
    SavepointView,
    TaskManagerChanged,
    TaskMetrics,
)

from .job_stage import graph


def task(vertex: str, records: int, *, busy_ms: int = 0, waits_ms: int = 0, attempt: str = "") -> TaskMetrics:
    name = attempt or f"attempt-{vertex}"
    return TaskMetrics(name, vertex, vertex, 0, records, records // 2, 1, waits_ms, busy_ms, "running")


def attempts(*vertices: str) -> list[str]:
    return [f"attempt-{vertex}" for vertex in vertices]


def test_rates_are_those_between_heartbeats() -> None:
    timeline = JobTimeline(graph(), 0)
    timeline.heard([task("source-0", 100), task("sink-0", 40)], 1_000)
    timeline.heard([task("source-0", 1100, waits_ms=500), task("sink-0", 540, busy_ms=900)], 2_000)
    timeline.look(attempts("source-0", "sink-0"), 5_000, 5_000)
    (sample,) = timeline.samples()
    assert (sample.records_in_per_second, sample.records_out_per_second) == (1000, 500)
    assert (sample.busy, sample.back_pressured) == (0.9, 0.5)
    rates = timeline.rates("attempt-source-0")
    assert rates is not None
    assert rates.shares() == (1000, 500, 0, 0.5)


def test_a_step_longer_than_a_heartbeat_is_spread_over_the_last_seconds() -> None:
    timeline = JobTimeline(graph(), 0)
    for second, records in enumerate([0, 2000, 2000, 4000, 4000]):
        timeline.heard([task("source-0", records)], 1000 * second)
    rates = timeline.rates("attempt-source-0")
    assert rates is not None
    assert rates.records_in_per_second == 1000


def test_heartbeats_that_arrive_together_make_no_peak() -> None:
    timeline = JobTimeline(graph(), 0)
    for clock_ms, arrived_ms in ((1_000, 5_000.0), (2_000, 9_000.0), (3_000, 9_000.1)):
        timeline.heard([replace(task("source-0", clock_ms), clock_ms=clock_ms)], arrived_ms)
    rates = timeline.rates("attempt-source-0")
    assert rates is not None
    assert rates.records_in_per_second == 1000


def test_an_attempt_that_is_over_counts_no_more() -> None:
    timeline = JobTimeline(graph(), 0)
    timeline.heard([task("source-0", 0, attempt="old")], 0)
    timeline.heard([task("source-0", 1000, attempt="old")], 1_000)
    timeline.look(["new"], 1_000, 1_000)
    assert timeline.rates("old") is None
    assert timeline.samples()[0].records_in_per_second == 0


def test_a_heartbeat_of_the_same_moment_changes_no_rate() -> None:
    timeline = JobTimeline(graph(), 0)
    timeline.heard([task("source-0", 10)], 5)
    timeline.heard([task("source-0", 20)], 5)
    rates = timeline.rates("attempt-source-0")
    assert rates is not None
    assert rates.records_in_per_second == 0


@pytest.mark.parametrize("seconds", [SAMPLES_KEPT, 10 * SAMPLES_KEPT])
def test_a_long_life_is_kept_whole_in_few_samples(seconds: int) -> None:
    timeline = JobTimeline(graph(), 0)
    for second in range(seconds):
        timeline.look([], 1000 * second, 1000 * (second + 1))
    kept = [each.at_ms for each in timeline.samples()]
    assert SAMPLES_KEPT / 3 < len(kept) <= SAMPLES_KEPT
    assert kept[0] == 1000
    assert kept == sorted(kept)
    steps = [later - earlier for earlier, later in pairwise(kept)]
    assert max(steps) <= 2 * min(steps)
    assert timeline.samples(after_ms=kept[-2]) == timeline.samples()[-1:]


def test_a_clock_that_is_set_back_does_not_stop_the_timeline() -> None:
    """It was an hour ahead: for an hour the page showed nothing new."""
    hour = 3_600_000
    timeline = JobTimeline(graph(), hour)
    timeline.look([], 1_000, hour + 1_000)
    for second in range(2, 6):
        timeline.look([], second * 1_000, second * 1_000)
    timeline.happened(JobStatusChanged("job-1", JobStatus.RUNNING, JobStatus.CREATED, 5_100))
    assert [each.at_ms - hour for each in timeline.samples()] == [1_000, 2_000, 3_000, 4_000, 5_000]
    assert [each.at_ms - hour for each in timeline.marks()] == [5_100]
    timeline.look([], 6_000, 2 * hour)  # and set right again
    assert timeline.samples()[-1].at_ms == 2 * hour


def test_a_mark_is_behind_what_was_seen_where_no_sample_was_due_since_the_clock_was_set_back() -> None:
    """Of a job that has run for a week, a sample is due in a quarter of an hour."""
    hour = 3_600_000
    timeline = JobTimeline(graph(), hour, interval_ms=900_000)
    timeline.look([], 1_000, hour + 1_000)
    timeline.look([], 2_000, 2_000)
    timeline.happened(JobStatusChanged("job-1", JobStatus.RUNNING, JobStatus.CREATED, 2_100))
    assert [each.at_ms for each in timeline.marks(after_ms=hour + 1_000)] == [hour + 2_100]
    assert len(timeline.samples()) == 1


def test_savepoints_are_known_until_they_are_disposed_of_and_the_last_ones_only() -> None:
    timeline = JobTimeline(graph(), 0)
    timeline.savepoints_stored(["a", "b"], 3, 70)
    timeline.savepoint_removed("a")
    timeline.savepoint_removed("never")
    assert timeline.savepoints() == (SavepointView("b", 3, 70),)
    timeline.savepoints_stored(map(str, range(SAVEPOINTS_KEPT)), 4, 80)
    assert len(timeline.savepoints()) == SAVEPOINTS_KEPT
    assert timeline.savepoints()[0].path == "0"


def test_what_happened_stands_in_its_order_and_failures_outlive_checkpoints() -> None:
    timeline = JobTimeline(graph(), 0)
    cause = FailureCause("ValueError", "no price")
    timeline.happened(TaskManagerChanged("job-1", "tm-0", 0, 7, True, "", 10))
    timeline.happened(JobStatusChanged("job-1", JobStatus.RUNNING, JobStatus.CREATED, 20))
    timeline.happened(JobStatusChanged("job-1", JobStatus.RESTARTING, JobStatus.RUNNING, 30, cause))
    timeline.happened(CheckpointAborted("job-1", 1, "task_failed", 31))
    timeline.happened(CheckpointCompleted("job-1", 2, 15, 2048, 40, "chk-2"), "savepoint")
    for number in range(3, 3 + 2 * MARKS_KEPT):
        timeline.happened(CheckpointCompleted("job-1", number, 15, 2048, 40 + number, "chk"))
    marks = timeline.marks()
    assert [each.kind for each in marks[:6]] == [
        "task_manager",
        "status",
        "failure",
        "status",
        "checkpoint_failed",
        "savepoint",
    ]
    assert marks[2].text == "ValueError: no price"
    assert (marks[-1].number, marks[-1].duration_ms) == (2 + 2 * MARKS_KEPT, 15)
    assert len(marks) == 6 + MARKS_KEPT
    assert timeline.statuses == {"created": 0, "running": 20, "restarting": 30}
    assert [each.kind for each in timeline.marks(after_ms=31)][:1] == ["savepoint"]
