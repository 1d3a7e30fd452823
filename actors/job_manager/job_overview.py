"""JobOverview: one job as a whole, as clients see it: its summary, its view, its status in words.

A part of the ManagedJob, on the JobManager's dispatcher. It keeps the job's times and its timeline, and reads the
JobMaster's books and the TaskManagers that there are. It decides nothing and sends nothing. Figures, samples and logs
are in the JobWatch.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...messages import (
    EndedJob,
    ExecutionState,
    Heartbeat,
    JobGraph,
    JobStatus,
    JobSummary,
    JobView,
    KeyGroups,
    Message,
    TaskManagerId,
)
from ...messages.failures import tell_line
from ..checkpoints.checkpoint_events import MetadataStored
from ..checkpoints.key_group_sizes import key_groups_of
from ..context import Clock
from ..jobs.job_master import JobMaster
from ..jobs.job_timeline import JobTimeline
from .job_workers import Worker

_DOWN = (JobStatus.RESTARTING, JobStatus.FAILING, JobStatus.FAILED)
"""Where a failure has brought the job."""
_WAITING = (JobStatus.CREATED, JobStatus.RESTARTING)
"""Where it may wait for TaskManagers."""


class JobOverview:
    """`workers`: those that there are now."""

    def __init__(
        self, graph: JobGraph, master: JobMaster, workers: Mapping[TaskManagerId, Worker], clock: Clock
    ) -> None:
        self.is_taken_over = False
        """Whether the job waits for what may still run of it: see Takeovers."""
        self._graph = graph
        self._master = master
        self._workers = workers
        self._clock = clock
        self._started_ms = clock.wall_ms()
        self._ended_ms = 0
        self._timeline = JobTimeline(graph, self._started_ms)

    def summary(self) -> JobSummary:
        master, failure = self._master, self._master.report.latest_failure
        return JobSummary(
            self._graph.job_id,
            self._graph.name,
            master.status,
            self._started_ms,
            self._ended_ms,
            master.restarts,
            tasks_running=sum([each.state is ExecutionState.RUNNING for each in master.graph.executions()]),
            tasks_total=sum(vertex.parallelism for vertex in self._graph.vertices),
            last_failure=self._why_down(),
            latest_failure=tell_line(failure.cause) if failure else "",
            latest_failure_ms=failure.at_ms if failure else 0,
            is_taken_over=self.is_taken_over,
            task_managers_awaited=master.report.task_managers_awaited,
        )

    def view(self, after_ms: int = 0) -> JobView:
        """See RequestJobView."""
        now_ms, wall_ms = self._clock.now_ms(), self._clock.wall_ms()
        heard_ms = {
            each: (worker.registered_ms, round(wall_ms - now_ms + worker.heard_ms))
            for each, worker in self._workers.items()
        }
        return self._master.report.view(self.summary(), self._timeline, heard_ms, wall_ms, after_ms)

    def history(self) -> EndedJob:
        """What is kept of a job that has ended."""
        return EndedJob(self.view(), self._master.report.checkpoint_history(self._clock.now_ms()))

    def key_groups(self) -> KeyGroups:
        return key_groups_of(self._graph, next(self._master.coordinator.store.restorable(), None))

    def told_status(self) -> str:
        """The status in words; when the job is down, with the failure that is to blame."""
        why, status = self._why_down(), self._master.status.value
        return f"{status}; last failure: {why}" if why else status

    def with_status(self, cause: str) -> str:
        """Why something was not done; when the job is down, with its status."""
        return f"{cause}; the job is {self.told_status()}" if self._why_down() else cause

    def _why_down(self) -> str:
        """In a line, why a TaskManager cannot be started, or else its last failure, if that is why it does not run."""
        failure, status = self._master.latest_failure, self._master.status
        if status in _WAITING and (trouble := self._master.report.trouble):
            return trouble if failure is None else f"{trouble}; before that: {tell_line(failure)}"
        return tell_line(failure) if failure is not None and status in _DOWN else ""

    # -- what happens to the job

    def heard(self, beat: Heartbeat) -> None:
        self._timeline.heard(beat.metrics, self._clock.now_ms())

    def look(self) -> None:
        """Time has passed: a sample may be due. An attempt that is over does nothing more."""
        if self._ended_ms:
            return
        current = (each.attempt_id for each in self._master.graph.executions() if not each.state.is_terminal)
        self._timeline.look(current, self._clock.now_ms(), self._clock.wall_ms())

    def happened(self, event: Message) -> None:
        """As the job's listeners get it."""
        self._timeline.happened(event, self._master.report.latest_kind)

    def savepoints_stored(self, stored: MetadataStored) -> None:
        self._timeline.savepoints_stored(stored.savepoints.values(), stored.checkpoint_id, self._clock.wall_ms())

    def savepoint_removed(self, path: str) -> None:
        """Its user does not need it any more."""
        self._timeline.savepoint_removed(path)

    def ended(self) -> None:
        self._ended_ms = self._clock.wall_ms()
