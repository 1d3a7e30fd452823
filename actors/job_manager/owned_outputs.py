"""Owned outputs: a job is not started where it would write to a place that belongs to a job which has not ended.

And relatives: jobs that go on from the same state. Whatever both write to a place that nobody owns is there twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...messages import JobGraph, JobSubmitted
from ..errors import OutputInUse
from .managed_job import ManagedJob


def check_outputs(graph: JobGraph, jobs: Iterable[ManagedJob]) -> None:
    """Raises OutputInUse, naming the sinks, the place and the other job."""
    wanted = {output.place: output.sink for output in graph.outputs}
    for job in jobs:
        if job.graph.job_id == graph.job_id or job.status.is_terminal:
            continue
        for output in job.graph.outputs:
            if output.place in wanted:
                raise OutputInUse(
                    f"job {graph.name!r} is not started: its sink {wanted[output.place]!r} writes to "
                    f"{_shown(output.place)}, and so does sink {output.sink!r} of job {job.graph.name!r} "
                    f"({job.graph.job_id}), which has not ended ({job.status.value}): who reads the folder "
                    "would get records twice, or of both. Give this job another folder, or cancel or stop that job "
                    "first and wait for its end. Jobs that are to share a folder say so, each of "
                    "them: FileSink(..., shared=True)"
                )


def relatives(submitted: JobSubmitted, jobs: Iterable[ManagedJob]) -> tuple[str, ...]:
    """Those of the jobs that have not ended and share a past with the one that was submitted."""
    past = {each.job_id for each in submitted.predecessors}
    return tuple(
        f"{job.graph.name!r} ({job.graph.job_id}, {job.status.value})"
        for job in jobs
        if job.graph.job_id != submitted.job_id
        and not job.status.is_terminal
        and past & {job.graph.job_id, *(each.job_id for each in job.submitted.predecessors)}
    )


def _shown(place: str) -> str:
    """A path of a machine as users write it."""
    return place.removeprefix("file://")
