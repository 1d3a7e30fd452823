"""JobSpans: events of a job in, spans with causes out."""

from __future__ import annotations

from understudy.messages import (
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointHistory,
    CheckpointId,
    CheckpointStatistics,
    FailureCause,
    JobId,
    JobStatus,
    JobStatusChanged,
    SnapshotMetrics,
    SubtaskIndex,
    SubtaskStatistics,
    VertexId,
)
from understudy.runtime.metrics.job_spans import JobSpan, JobSpans

JOB = JobId("job-1")
WHY = FailureCause("ValueError", "bad record", operator_name="parse")
SNAPSHOT = SubtaskStatistics(VertexId("v"), SubtaskIndex(0), 30, 500, SnapshotMetrics(2.0, 20.0, 5.0))


def known(number: int, kind: str = "checkpoint", failure: str = "") -> CheckpointStatistics:
    status = "failed" if failure else "completed"
    return CheckpointStatistics(CheckpointId(number), kind, status, 1_000, 40, 500, 2, failure, "", (SNAPSHOT,))


def watched(*checkpoints: CheckpointStatistics) -> JobSpans:
    history = CheckpointHistory(JOB, 0, 0, 0, CheckpointId(0), checkpoints)
    return JobSpans(JOB, "orders", 500, lambda: history)


def moved(status: JobStatus, at_ms: int, failure: FailureCause | None = None) -> JobStatusChanged:
    return JobStatusChanged(JOB, status, JobStatus.RUNNING, at_ms, failure)


def completed(number: int) -> CheckpointCompleted:
    return CheckpointCompleted(JOB, CheckpointId(number), 40, 500, 1_040, "chk")


def test_a_checkpoint_has_the_times_of_its_statistics() -> None:
    (span,) = watched(known(3)).on(completed(3))
    assert (span.name, span.start_ms, span.end_ms, span.error) == ("Checkpoint", 1_000, 1_040, "")
    assert span.attributes == {
        "understudy.job.id": "job-1",
        "understudy.job.name": "orders",
        "understudy.checkpoint.id": 3,
        "understudy.checkpoint.kind": "checkpoint",
        "understudy.checkpoint.size_bytes": 500,
        "understudy.checkpoint.subtasks": 2,
        "understudy.checkpoint.acknowledged": 1,
        "understudy.checkpoint.max_sync_ms": 2.0,
        "understudy.checkpoint.max_async_ms": 20.0,
        "understudy.checkpoint.max_alignment_ms": 5.0,
    }


def test_a_savepoint_and_a_failed_checkpoint_are_shown_as_such() -> None:
    spans = watched(known(3, "savepoint"), known(4, failure="expired"))
    (savepoint,) = spans.on(completed(3))
    (failed,) = spans.on(CheckpointAborted(JOB, CheckpointId(4), "expired", 1_040))
    assert savepoint.name == "Savepoint"
    assert (failed.name, failed.error) == ("Checkpoint", "expired")


def test_without_statistics_the_event_says_enough() -> None:
    def gone() -> CheckpointHistory:
        raise TimeoutError

    (span,) = JobSpans(JOB, "orders", 500, gone).on(completed(3))
    assert (span.start_ms, span.end_ms) == (1_000, 1_040)


def test_a_restart_lasts_until_all_runs_again_and_has_each_failure_as_its_cause() -> None:
    spans, other = watched(), FailureCause("OSError", "disk full")
    assert spans.on(moved(JobStatus.RUNNING, 600)) == []
    assert spans.on(moved(JobStatus.RESTARTING, 1_000, WHY)) == []
    assert spans.on(moved(JobStatus.RESTARTING, 1_200, other)) == []
    (restart,) = spans.on(moved(JobStatus.RUNNING, 2_000))
    assert (restart.name, restart.start_ms, restart.end_ms, restart.error) == ("Restart", 1_000, 2_000, "")
    assert restart.causes == ((1_000, WHY), (1_200, other))
    assert restart.attributes["understudy.restart.number"] == 1


def test_a_job_that_fails_ends_its_restart_and_itself_with_the_cause() -> None:
    spans = watched()
    spans.on(moved(JobStatus.RESTARTING, 1_000, WHY))
    (restart,) = spans.on(moved(JobStatus.FAILING, 1_500, WHY))
    (job,) = spans.on(moved(JobStatus.FAILED, 1_600))
    assert restart.error == "the job is failing"
    assert (job.name, job.start_ms, job.end_ms, job.error) == (
        "Job",
        500,
        1_600,
        "ValueError: bad record (in operator 'parse')",
    )
    assert job.causes == ((1_500, WHY),)
    assert spans.has_ended
    assert spans.cut_off(9_000) == []


def test_a_job_that_finishes_ends_well_though_it_had_failures() -> None:
    spans = watched()
    spans.on(moved(JobStatus.RESTARTING, 1_000, WHY))
    spans.on(moved(JobStatus.RUNNING, 1_100))
    (job,) = spans.on(moved(JobStatus.FINISHED, 2_000))
    assert (job.error, job.causes, job.attributes["understudy.job.restarts"]) == ("", (), 1)


def test_a_job_that_is_watched_no_longer_is_cut_off() -> None:
    spans = watched()
    spans.on(moved(JobStatus.RESTARTING, 1_000, WHY))
    found = spans.cut_off(3_000)
    assert [(each.name, each.end_ms) for each in found] == [("Restart", 3_000), ("Job", 3_000)]
    assert isinstance(found[0], JobSpan)
