"""Metrics: what a running cluster says about itself, as figures by name, which are Flink's where it has one.

    ClusterMetrics -> jobs -> vertices -> subtasks -> values: name -> number

A figure of one operator has the operator's name before it, as in `count.numLateRecordsDropped`. A histogram is several
figures, as in `count.latency_p99`. Not at home here: how often, and by how much, something is back-pressured by samples
(`back_pressure`).
"""

from __future__ import annotations

from .ids import ExecutionAttemptId, JobId, OperatorId, SubtaskIndex, TaskManagerId, VertexId
from .job_status import JobStatus
from .registry import message


@message
class UserMetric:
    """TaskManager -> JobManager: one metric that user code has made, in its present state."""

    operator_id: OperatorId
    operator: str
    """The operator's name."""
    name: str
    kind: str
    """"counter", "gauge", "meter" or "histogram"."""
    values: tuple[float, ...]
    """Of a counter or a gauge its value; of a meter how many events there were; of a histogram those of
    HISTOGRAM_FIGURES.
    """


HISTOGRAM_FIGURES = ("count", "sum", "min", "max", "mean", "p50", "p75", "p95", "p98", "p99", "p999")
"""What is known of a histogram, in the order of `UserMetric.values`. Flink: HistogramStatistics."""


@message
class OperatorFigures:
    """TaskManager -> JobManager: one operator of a task, beside what user code measures."""

    operator_id: OperatorId
    operator: str
    """Its name."""
    late_records: int
    in_flight: int | None = None
    """Records of which calls are under way; None for an operator without coroutines."""
    state_entries: int | None = None
    """How many (state, key) its newest snapshot has; None where that is not known without counting."""
    state_size_bytes: int | None = None
    """Of its newest snapshot; None before the first one."""


@message
class SubtaskMetrics:
    """One subtask, by its current attempt."""

    subtask_index: SubtaskIndex
    attempt_id: ExecutionAttemptId
    attempt_number: int
    task_manager_id: TaskManagerId
    status: str
    """Flink's ExecutionState, in small letters."""
    values: dict[str, float]


@message
class VertexMetrics:
    """One vertex of the graph: a chain of operators. `values`: sums, or the greatest, over its subtasks."""

    vertex_id: VertexId
    name: str
    parallelism: int
    operators: tuple[str, ...]
    """Their names, in the order of the chain."""
    values: dict[str, float]
    subtasks: tuple[SubtaskMetrics, ...]
    kinds: dict[str, str]
    """Of metrics of user code, by full name: "counter", "gauge", "meter" or "histogram"."""


@message
class JobMetrics:
    """All figures of one job, as of the last heartbeats, with rates over the last seconds."""

    job_id: JobId
    name: str
    status: JobStatus
    timestamp_ms: int
    """Wall time of the snapshot."""
    values: dict[str, float]
    """Of the job as a whole: numRestarts, lastCheckpointDuration, ..."""
    vertices: tuple[VertexMetrics, ...]
    """In topological order."""

    def vertex(self, wanted: str) -> VertexMetrics:
        """The vertex with this name or id, or with an operator of this name. Raises LookupError."""
        for each in self.vertices:
            if wanted in (each.vertex_id, each.name, *each.operators):
                return each
        known = ", ".join(repr(each.name) for each in self.vertices) or "none"
        raise LookupError(f"job {self.name!r} has no vertex or operator {wanted!r}; its vertices: {known}")


@message
class TaskManagerMetrics:
    """One TaskManager: where it runs, and the figures of its process."""

    task_manager_id: TaskManagerId
    job_id: JobId
    index: int
    """Which of the job's TaskManagers it is."""
    host: str
    pid: int
    slots: int
    silent_ms: int
    """How long ago its last heartbeat came."""
    values: dict[str, float]
    """Of its process: Status.Process.CPU.Time, ..."""


@message
class ClusterMetrics:
    """All that a JobManager knows now, by the last heartbeats."""

    timestamp_ms: int
    """Wall time of the snapshot."""
    values: dict[str, float]
    """Of the JobManager: numRegisteredTaskManagers, numRunningJobs, taskSlotsTotal, ..."""
    jobs: tuple[JobMetrics, ...]
    """In the order of their submission; those that have ended with their last figures."""
    task_managers: tuple[TaskManagerMetrics, ...]

    def job(self, wanted: str) -> JobMetrics:
        """The job with this id, or else the last one with this name. Raises LookupError."""
        for each in self.jobs:
            if each.job_id == wanted:
                return each
        for each in reversed(self.jobs):
            if each.name == wanted:
                return each
        known = ", ".join(f"{each.name!r} ({each.job_id})" for each in self.jobs) or "none"
        raise LookupError(f"no job has the id or name {wanted!r}; there are: {known}")


@message
class RequestMetrics:
    """Client -> JobManager. Answered with ClusterMetrics."""

    job_id: JobId | None = None
    """Of this job only; None: of all."""
