"""JobCourse: the status that a job has now, and the one that it has reached. A value machine of the JobMaster.

    CREATED --all tasks run--> RUNNING --all tasks have finished--> FINISHED
       |                        |  ^
       |            a task fails|  |all tasks run (or have finished)
       |                        v  |
       +--a task fails------> RESTARTING  (again for each failure before that)
       |                        |
       v                        v         (from all three)
    FAILING -> FAILED,   CANCELLING -> CANCELED

A job is CREATED, or RESTARTING, while its regions wait for delays, slots and their tasks' end, and while deployed tasks
restore their state. Which moves are allowed stands in ExecutionGraph.
"""

from __future__ import annotations

from ...messages import FailureCause, JobId, JobStatus, JobStatusChanged
from ..checkpoints.checkpoint_effects import Publish
from .execution_graph import ExecutionGraph
from .job_effects import JobNews
from .region_restarts import RegionRestarts


class JobCourse:
    """One job's."""

    def __init__(self, job_id: JobId, graph: ExecutionGraph, restarts: RegionRestarts) -> None:
        self._job_id = job_id
        self._graph = graph
        self._restarts = restarts

    def runs(self, wall_ms: int) -> list[Publish[JobNews]]:
        """Move to RUNNING, if that is due."""
        is_awaited = self._graph.status in (JobStatus.CREATED, JobStatus.RESTARTING)
        if is_awaited and self._restarts.are_over and self._graph.all_running_or_finished():
            return self.move(JobStatus.RUNNING, wall_ms)
        return []

    def move(self, status: JobStatus, wall_ms: int, cause: FailureCause | None = None) -> list[Publish[JobNews]]:
        """A RESTARTING job that fails again before all its tasks run is RESTARTING once more, with that cause."""
        previous = self._graph.status
        if previous is not status:
            self._graph.move(status)
        elif cause is None:
            return []
        return [Publish(JobStatusChanged(self._job_id, status, previous, wall_ms, cause))]

    def end(self) -> JobStatus | None:
        """The terminal status that the job has reached; None while there is something to follow."""
        executions = self._graph.executions()
        if not all(execution.state.is_terminal for execution in executions):
            return None
        match self._graph.status:
            case JobStatus.RUNNING if executions and self._graph.all_finished():
                return JobStatus.FINISHED
            case JobStatus.CANCELLING:
                return JobStatus.CANCELED
            case JobStatus.FAILING:
                return JobStatus.FAILED
            case _:
                return None
