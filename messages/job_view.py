"""JobView: one job as it stands and as it went, to show to users, while it runs and after its end."""

from __future__ import annotations

from .checkpoint_statistics import CheckpointHistory
from .failures import FailureCause
from .ids import CheckpointId, ExecutionAttemptId, JobId, SlotIndex, SubtaskIndex, TaskManagerId, VertexId
from .job import JobDetails, JobSummary
from .job_graph import JobGraph
from .registry import message
from .tasks import ExecutionState


@message
class RequestJobView:
    """Client -> JobManager. Answered with JobView."""

    job_id: JobId
    after_ms: int = 0
    """Of the timeline only what is newer than this wall time."""


@message
class SubtaskView:
    """One subtask: its current attempt, or an earlier one. Wall times are 0 for what has not happened."""

    vertex_id: VertexId
    subtask_index: SubtaskIndex
    attempt_id: ExecutionAttemptId
    attempt_number: int
    state: ExecutionState
    task_manager_id: TaskManagerId
    """Empty before it is deployed."""
    slot: SlotIndex = SlotIndex(-1)
    scheduled_ms: int = 0
    deployed_ms: int = 0
    running_ms: int = 0
    ended_ms: int = 0
    records_in_per_second: float = 0.0
    """Rates are those of the last few seconds."""
    records_out_per_second: float = 0.0
    busy: float = 0.0
    """Share of its time, 0 to 1, that it works; and that it waits for its outputs."""
    back_pressured: float = 0.0


@message
class TaskManagerView:
    task_manager_id: TaskManagerId
    index: int
    host: str
    pid: int
    slots: int
    control_address: str
    data_endpoint: str
    registered_ms: int
    """Wall time."""
    heard_ms: int
    """Wall time of its last heartbeat."""


@message
class TimelineSample:
    """How a job went at one moment. Of a long life fewer are kept, evenly."""

    at_ms: int
    """Wall time."""
    records_in_per_second: float
    """What all sources bring together."""
    records_out_per_second: float
    """What all sinks take together."""
    busy: float
    """Of the subtask that works most; a share of its time, 0 to 1. The same for `back_pressured`."""
    back_pressured: float
    lag_ms: int | None = None
    """How far the event time that is furthest behind is behind the time of day; None without event time."""


@message
class TimelineMark:
    """Something that happened to a job."""

    at_ms: int
    """Wall time of its end."""
    kind: str
    """"status", "failure", "checkpoint", "savepoint", "checkpoint_failed", "task_manager" or "task_manager_lost"."""
    text: str
    duration_ms: int = 0
    number: int = 0
    """A checkpoint's id."""


@message
class FailureAt:
    """One failure, and the wall time at which it was known."""

    at_ms: int
    cause: FailureCause


@message
class SavepointView:
    """A savepoint of the job that nobody has disposed of, as far as this JobManager knows."""

    path: str
    """That a job can start from."""
    checkpoint_id: CheckpointId
    at_ms: int
    """Wall time at which it was stored."""


@message
class JobView:
    """Flink: ArchivedExecutionGraph."""

    at_ms: int
    """Wall time of the view."""
    summary: JobSummary
    details: JobDetails
    graph: JobGraph
    subtasks: tuple[SubtaskView, ...]
    """Current attempts, vertex by vertex."""
    earlier: tuple[SubtaskView, ...]
    """Attempts before these, the last ones of each subtask, oldest first."""
    task_managers: tuple[TaskManagerView, ...]
    statuses: dict[str, int]
    """By the value of a JobStatus: the wall time at which the job got it last."""
    failures: tuple[FailureAt, ...]
    """Oldest first."""
    samples: tuple[TimelineSample, ...]
    marks: tuple[TimelineMark, ...]
    """Oldest first."""
    savepoints: tuple[SavepointView, ...] = ()
    """The last ones, oldest first."""
    restart_refusal: str = "the JobManager that had its program has ended"
    """Why RestartJob cannot be carried out; empty: it can, once the job has ended."""


@message
class EndedJob:
    """All that is kept of a job that has ended. Flink: ArchivedJson, of the history server."""

    view: JobView
    checkpoints: CheckpointHistory
