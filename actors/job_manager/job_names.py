"""Names of jobs where another one may have the same: in the log, and in the answer to who submits it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...messages import JobGraph, JobId, JobStatus

if TYPE_CHECKING:
    from .managed_job import ManagedJob

_PREFIX = "job-"
_DIGITS = 8
"""Of the id, behind its prefix: the commands take as many for the whole."""


def named(graph: JobGraph, jobs: Iterable[ManagedJob]) -> str:
    """As a line of the log begins: with the id's beginning if another one of the jobs, ended or not, has the name."""
    return named_among(graph, ((job.graph.name, job.job_id) for job in jobs))


def named_among(graph: JobGraph, jobs: Iterable[tuple[str, JobId]]) -> str:
    """The same, of jobs by name and id."""
    name = f"job {graph.name!r}"
    is_alone = all(other != graph.name or job_id == graph.job_id for other, job_id in jobs)
    return name if is_alone else f"{name} ({graph.job_id[: len(_PREFIX) + _DIGITS]})"


_OVER = (JobStatus.CANCELLING, JobStatus.FAILING, *(each for each in JobStatus if each.is_terminal))


def namesakes(graph: JobGraph, jobs: Iterable[ManagedJob]) -> tuple[str, ...]:
    """The other ones of its name that have not ended, nor are about to, each as "id, status"."""
    return tuple(
        f"{job.job_id}, {job.status.value}"
        for job in jobs
        if job.graph.name == graph.name and job.job_id != graph.job_id and job.status not in _OVER
    )
