"""Questions about figures: which job answers them, and one snapshot of all that a JobManager knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, assert_never

from ...messages import (
    ClusterMetrics,
    ExecutionState,
    JobId,
    JobStatus,
    RequestBackPressure,
    RequestFlameGraph,
    RequestLogs,
    RequestMetrics,
    RequestThreadDump,
    TaskManagerMetrics,
    ThreadDump,
)
from ..context import Clock
from ..stacks import Stacks
from .managed_job import ManagedJob

FigureQuestion: TypeAlias = RequestMetrics | RequestLogs | RequestBackPressure | RequestFlameGraph | RequestThreadDump


def answer_by_figures(
    question: FigureQuestion,
    jobs: Iterable[ManagedJob],
    job_of: Callable[[JobId], ManagedJob],
    clock: Clock,
    stacks: Stacks,
) -> Any:
    """The answer, or the future of it. `stacks`: of the JobManager's process. Raises what `job_of` does, NotRunning,
    and ValueError for a TaskManager that there is not.
    """
    match question:
        case RequestMetrics(job_id):
            return cluster_metrics(tuple(jobs) if job_id is None else (job_of(job_id),), clock)
        case RequestLogs(job_id, after):
            return job_of(job_id).watch.logs.read(after)
        case RequestBackPressure(job_id=job_id) | RequestFlameGraph(job_id=job_id):
            return job_of(job_id).watch.ask(question)
        case RequestThreadDump(None):
            return ThreadDump(stacks.dump())
        case RequestThreadDump(task_manager_id):
            job = next((each for each in jobs if task_manager_id in each.workers.there), None)
            if job is None:
                raise ValueError(f"no TaskManager {task_manager_id!r} here: it has ended, or has not registered yet")
            return job.watch.dump(question)
        case _:
            assert_never(question)


def cluster_metrics(jobs: Sequence[ManagedJob], clock: Clock) -> ClusterMetrics:
    """Of these jobs."""
    task_managers = tuple(each for job in jobs for each in _task_managers(job, clock.now_ms()))
    slots = sum(each.slots for each in task_managers)
    taken = sum(
        len({each.slot for each in job.master.graph.executions() if each.state is ExecutionState.RUNNING})
        for job in jobs
    )
    values = {
        "numRegisteredTaskManagers": float(len(task_managers)),
        "numRunningJobs": float(sum(job.status is JobStatus.RUNNING for job in jobs)),
        "taskSlotsTotal": float(slots),
        "taskSlotsAvailable": float(max(0, slots - taken)),
    }
    return ClusterMetrics(clock.wall_ms(), values, tuple(job.watch.metrics() for job in jobs), task_managers)


def _task_managers(job: ManagedJob, now_ms: float) -> Iterator[TaskManagerMetrics]:
    for task_manager_id, worker in job.workers.there.items():
        yield TaskManagerMetrics(
            task_manager_id,
            job.job_id,
            worker.registration.index,
            worker.registration.host,
            worker.registration.pid,
            worker.registration.slots,
            round(now_ms - worker.heard_ms),
            dict(job.watch.book.processes.get(task_manager_id, {})),
        )
