"""JobReport: what clients may know of one job: its details, who hosts an operator, what its checkpoints cost.

Reads the machines of the JobMaster, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ...messages import (
    CheckpointHistory,
    CheckpointId,
    ExecutionAttemptId,
    ExecutionState,
    FailureAt,
    JobDetails,
    JobGraph,
    JobSummary,
    JobView,
    JobWatermarks,
    SlotIndex,
    SubtaskView,
    TaskManagerId,
    TaskManagerView,
    TaskMetrics,
)
from ..checkpoints.checkpoint_statistics import CheckpointStatisticsTracker
from ..restore.restore_points import RestorePoints
from .execution import Execution
from .execution_graph import ExecutionGraph
from .failure_history import FailureHistory
from .job_timeline import JobTimeline, Rates
from .region_restarts import RegionRestarts
from .task_manager_roster import TaskManagerRoster


class JobReport:
    """One job's."""

    def __init__(
        self,
        job: JobGraph,
        graph: ExecutionGraph,
        roster: TaskManagerRoster,
        history: FailureHistory,
        restarts: RegionRestarts,
        checkpoints: CheckpointStatisticsTracker,
        restore_points: RestorePoints,
    ) -> None:
        self._job = job
        self._graph = graph
        self._roster = roster
        self._history = history
        self._restarts = restarts
        self._checkpoints = checkpoints
        self._restore_points = restore_points
        self.is_retained_gone = False
        """Whether somebody has deleted the checkpoint that the job leaves."""
        self._shown: dict[ExecutionAttemptId, _Shown] = {}

    def details(self) -> JobDetails:
        """Everything a client may want to know, now."""
        latest = self._checkpoints.latest
        return JobDetails(
            job_id=self._job.job_id,
            name=self._job.name,
            status=self._graph.status,
            restarts=self._restarts.count,
            failures=self._history.all,
            completed_checkpoints=self._checkpoints.completions,
            latest_checkpoint_id=latest.checkpoint_id if latest else CheckpointId(0),
            latest_checkpoint_path=self._absolute(latest.path) if latest else "",
            tasks=self._tasks(),
            retained_checkpoint_path=self._absolute(self.retained) if self.retained else "",
        )

    def view(
        self,
        summary: JobSummary,
        timeline: JobTimeline,
        heard_ms: Mapping[TaskManagerId, tuple[int, int]],
        wall_ms: int,
        after_ms: int = 0,
    ) -> JobView:
        """The whole job. `heard_ms`: when each TaskManager registered and was heard last, by the wall clock; `after_ms`
        as in RequestJobView.
        """
        workers = [
            TaskManagerView(
                each.task_manager_id,
                each.index,
                each.host,
                each.pid,
                each.slots,
                each.control_address,
                each.data_endpoint,
                *heard_ms.get(each.task_manager_id, (0, 0)),
            )
            for each in self._roster.registrations()
        ]
        return JobView(
            wall_ms,
            summary,
            self.details(),
            self._job,
            self._subtasks(timeline),
            tuple(_subtask(each, timeline.rates(each.attempt_id)) for each in self._graph.all_earlier()),
            tuple(workers),
            dict(timeline.statuses),
            tuple(map(FailureAt, self._history.times, self._history.all)),
            timeline.samples(after_ms),
            timeline.marks(after_ms),
            timeline.savepoints(),
        )

    def watermarks(self) -> JobWatermarks:
        """How far event time is, by the last heartbeats."""
        job = self._job
        return JobWatermarks(job.job_id, job.name, self._graph.status, job.vertices, job.edges, self._tasks())

    @property
    def latest_failure(self) -> FailureAt | None:
        history = self._history
        return FailureAt(history.times[-1], history.all[-1]) if history.all else None

    @property
    def task_managers_awaited(self) -> int:
        """How many wait for free slots."""
        return self._roster.awaits

    @property
    def trouble(self) -> str:
        """Why a TaskManager that the job needs cannot be started; empty: there is none."""
        return self._roster.trouble

    @property
    def latest_kind(self) -> str:
        """Of the checkpoint that completed last: "checkpoint", "savepoint" or "final"."""
        latest = self._checkpoints.latest
        return latest.kind if latest else "checkpoint"

    def _tasks(self) -> tuple[TaskMetrics, ...]:
        """Of current attempts."""
        current = self._graph.execution
        return tuple([each for each in self._roster.metrics() if current(each.attempt_id) is not None])

    def _subtasks(self, timeline: JobTimeline) -> tuple[SubtaskView, ...]:
        """Of current attempts: the same object as last time where nothing has been heard since."""
        before, self._shown = self._shown, {}
        for each in self._graph.executions():
            rates, kept = timeline.rates(each.attempt_id), before.get(each.attempt_id)
            metrics = None if rates is None else rates.metrics
            if kept is None or kept.state is not each.state or kept.metrics is not metrics:
                kept = _Shown(each.state, metrics, _subtask(each, rates))
            self._shown[each.attempt_id] = kept
        return tuple([each.view for each in self._shown.values()])

    @property
    def retained(self) -> str:
        """The metadata of the checkpoint that the job leaves, below the checkpoint directory; empty: it leaves none.
        After the job's end its store holds only that.
        """
        kept = self._restore_points.own if self._graph.status.is_terminal and not self.is_retained_gone else None
        return "" if kept is None else kept.metadata_path

    def _absolute(self, path: str) -> str:
        """A path below the checkpoint directory."""
        return f"{self._job.checkpoints.directory.rstrip('/')}/{path}"

    def checkpoint_history(self, now_ms: float) -> CheckpointHistory:
        """What the last checkpoints cost, and why some failed; of those in progress, what is known by now."""
        return self._checkpoints.history(now_ms)

    def holder_of(self, operator: str, subtask_of: Callable[[int, int], int]) -> Execution | None:
        """The running attempt that hosts this operator; `subtask_of(parallelism, max_parallelism)` picks the
        subtask.
        """
        for vertex in self._job.vertices:
            if any(operator in (one.name, one.operator_id) for one in vertex.operators):
                return self._graph.current(vertex.vertex_id, subtask_of(vertex.parallelism, vertex.max_parallelism))
        return None


class _Shown(NamedTuple):
    """What was shown of an attempt, and what it was made of."""

    state: ExecutionState
    metrics: TaskMetrics | None
    """Those that its rates were made of last."""
    view: SubtaskView


def _subtask(execution: Execution, rates: Rates | None) -> SubtaskView:
    times = execution.times
    return SubtaskView(
        execution.vertex_id,
        execution.subtask_index,
        execution.attempt_id,
        execution.number,
        execution.state,
        execution.task_manager_id or TaskManagerId(""),
        SlotIndex(-1) if execution.slot is None else execution.slot.slot_index,
        times.get(ExecutionState.SCHEDULED, 0),
        times.get(ExecutionState.DEPLOYING, 0),
        times.get(ExecutionState.RUNNING, 0),
        times[execution.state] if execution.state.is_terminal else 0,
        *((0.0,) * 4 if rates is None or execution.state.is_terminal else rates.shares()),
    )
