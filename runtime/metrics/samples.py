"""Samples: a snapshot of a cluster as single numbers with names and labels, for systems that keep such series.

Scopes as in Flink: "jobmanager", "taskmanager", "job", "task" (a subtask) and "operator" (a subtask's operator). Jobs
that have ended give none, so the series of others stay bounded. Not at home here: how a system wants it written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...messages import ClusterMetrics, JobMetrics, SubtaskMetrics, VertexMetrics


class Sample(NamedTuple):
    scope: str
    name: str
    """Flink's, or the user's as it was given."""
    labels: dict[str, str]
    value: float


def samples_of(metrics: ClusterMetrics) -> Iterator[Sample]:
    """All of a snapshot. Those of one scope have the same labels, and no two are alike in name and labels."""
    for name, value in metrics.values.items():
        yield Sample("jobmanager", name, {}, value)
    for each in metrics.task_managers:
        labels = {"job_id": each.job_id, "task_manager": each.task_manager_id, "host": each.host}
        for name, value in each.values.items():
            yield Sample("taskmanager", name, labels, value)
    for job in metrics.jobs:
        if not job.status.is_terminal:
            yield from _of_job(job)


def _of_job(job: JobMetrics) -> Iterator[Sample]:
    labels = {"job": job.name, "job_id": job.job_id}
    for name, value in job.values.items():
        yield Sample("job", name, labels, value)
    for vertex in job.vertices:
        operators = sorted(vertex.operators, key=len, reverse=True)
        for subtask in vertex.subtasks:
            yield from _of_subtask(labels, vertex, operators, subtask)


def _of_subtask(
    of_job: dict[str, str], vertex: VertexMetrics, operators: list[str], subtask: SubtaskMetrics
) -> Iterator[Sample]:
    labels = of_job | {"vertex": vertex.name, "subtask": str(subtask.subtask_index)}
    for name, value in subtask.values.items():
        operator = next((each for each in operators if name.startswith(f"{each}.")), None)
        if operator is None:
            yield Sample("task", name, labels, value)
        else:
            yield Sample("operator", name[len(operator) + 1 :], labels | {"operator": operator}, value)
