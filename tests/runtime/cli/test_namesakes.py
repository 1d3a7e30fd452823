"""Of several jobs of one name: whether it is said that there are others."""

from __future__ import annotations

import pytest

from understudy.messages import JobId, JobStatus, JobSummary
from understudy.runtime.cli.connection import _note_namesakes


def job(number: int, status: JobStatus) -> JobSummary:
    return JobSummary(JobId(f"job-{number}"), "flights", status, number)


@pytest.mark.parametrize(
    ("status", "wanted", "is_said"),
    [
        (JobStatus.FINISHED, "flights", True),
        (JobStatus.RUNNING, "flights", False),
        (JobStatus.FINISHED, "job-2", False),
    ],
)
def test_only_the_newest_of_ended_ones_that_was_named_by_its_name_is_told(
    status: JobStatus, wanted: str, is_said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [job(1, JobStatus.FAILED), job(2, status)]
    _note_namesakes(jobs, wanted, jobs[1])
    assert ("2 ended jobs have the name 'flights'; this is the newest, job-2" in capsys.readouterr().err) is is_said
