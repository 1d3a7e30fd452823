"""Owned outputs: a job is not started where it would write to a place that belongs to a job which has not ended."""

from __future__ import annotations

from collections.abc import Iterable

from ...messages import JobGraph
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


def _shown(place: str) -> str:
    """A path of a machine as users write it."""
    return place.removeprefix("file://")
