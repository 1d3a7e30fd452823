"""Figures of a job in the JSON of Flink's REST: what a JobManager knows comes first, and nothing is made up."""

from __future__ import annotations

from understudy.messages import JobId, JobMetrics, JobStatus
from understudy.runtime.web import flink_metrics

from .views import job_view


def test_uptime_is_what_the_job_manager_says() -> None:
    """The time in which the job was RUNNING, over all of its restarts."""
    metrics = JobMetrics(
        JobId("job-1"), "orders", JobStatus.RUNNING, 5, {"uptime": 1_234.0, "runningTime": 1_234.0}, ()
    )
    values = flink_metrics.of_job(job_view(vertices=1, parallelism=1), metrics)
    assert values["uptime"] == values["runningTime"] == 1_234.0


def test_a_job_of_the_history_has_its_counts_and_no_uptime() -> None:
    """Of its statuses only the last moment of each is kept: times between restarts are not known."""
    view = job_view(vertices=1, parallelism=1)
    assert flink_metrics.of_job(view, None) == {
        "numRestarts": view.summary.restarts,
        "fullRestarts": view.summary.restarts,
        "numberOfCompletedCheckpoints": view.details.completed_checkpoints,
    }
