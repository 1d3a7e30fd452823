"""Which jobs a name or the beginning of an id means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from understudy.messages import JobId, JobStatus
from understudy.runtime.clusters.remote_cluster import jobs_meant
from understudy.runtime.clusters.remote_errors import NoSuchJob

from ..web.views import job_view

ENDED, FIRST, SECOND = (
    replace(job_view().summary, job_id=JobId(job_id), name="orders", status=status, started_ms=started_ms)
    for job_id, status, started_ms in (
        ("job-1a", JobStatus.FAILED, 1),
        ("job-1b", JobStatus.RUNNING, 2),
        ("job-2c", JobStatus.RESTARTING, 3),
    )
)


def test_those_that_have_not_ended_come_before_those_that_have() -> None:
    jobs = [ENDED, FIRST, SECOND]
    assert jobs_meant(jobs, "orders") == [FIRST, SECOND]
    assert jobs_meant(jobs, "job-1") == [FIRST]
    assert jobs_meant(jobs, "job-1a") == [ENDED], "the whole id"
    assert jobs_meant([ENDED, replace(FIRST, status=JobStatus.FINISHED)], "orders")[0].job_id == "job-1b", "the newest"


@pytest.mark.parametrize("wanted", ["/savepoints/1", "savepoints/1"])
def test_a_path_in_the_place_of_a_job_is_seen_as_one(wanted: str) -> None:
    assert "which looks like a path: the job comes first" in str(NoSuchJob(wanted, [FIRST]))
