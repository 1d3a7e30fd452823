"""cluster_metrics: one snapshot of all that a JobManager knows by figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...messages import ClusterMetrics, ExecutionState, JobStatus, TaskManagerMetrics
from ..context import Clock
from .managed_job import ManagedJob


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
    for task_manager_id, worker in job.workers.items():
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
