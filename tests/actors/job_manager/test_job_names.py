"""What jobs are called where others have the same name."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from understudy.actors.job_manager.job_names import named, namesakes
from understudy.messages import JobId, JobStatus

from ..jobs.job_stage import graph

MINE = replace(graph(), job_id=JobId("job-0123456789abcdef"))


def job(job_id: str, status: JobStatus, name: str = MINE.name) -> Any:
    return SimpleNamespace(job_id=JobId(job_id), status=status, graph=replace(MINE, job_id=JobId(job_id), name=name))


ITSELF = job(MINE.job_id, JobStatus.RUNNING)
OTHERS = (job("job-a", JobStatus.RUNNING, "trains"), job("job-b", JobStatus.RESTARTING), job("job-c", JobStatus.FAILED))


def test_the_log_tells_jobs_of_one_name_apart() -> None:
    alone = "job 'flights'"
    assert named(MINE, [ITSELF, OTHERS[0]]) == alone
    assert named(MINE, [ITSELF, OTHERS[1]]) == f"{alone} (job-01234567)"
    assert named(MINE, [OTHERS[2], ITSELF]) == f"{alone} (job-01234567)", "lines of one that has ended stand above"


def test_namesakes_are_the_others_of_the_name_that_have_not_ended() -> None:
    """One that is being canceled processes nothing more, though `job.cancel().result()` is not its end."""
    ending = job("job-d", JobStatus.CANCELLING), job("job-e", JobStatus.FAILING)
    assert namesakes(MINE, [ITSELF, *OTHERS, *ending]) == (f"job-b, {JobStatus.RESTARTING.value}",)
