"""What is said about whole jobs: submission, cancellation, details, questions, and what a listener hears."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from .event_time import TaskEventTime
from .failures import FailureCause
from .ids import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    SubtaskIndex,
    TaskManagerId,
    VertexId,
)
from .job_graph import JobEdge, JobGraph, JobVertex
from .job_status import JobStatus
from .metrics import OperatorFigures, UserMetric
from .registry import Message, Plain, message


@message
class ProgramFile:
    """The code of a job, signed with the cluster's key, for TaskManagers that no parent hands it to."""

    path: str
    """Below the cluster's shared folder, which each process knows from its own settings."""


@message
class SubmitJob:
    """Client -> JobManager. Answered with JobSubmitted, or fails with what is wrong with the graph."""

    graph: JobGraph
    task_managers: int
    slots_per_task_manager: int
    restore_from: str | None = None
    """A savepoint's path, or that of a retained checkpoint's metadata, to start from."""
    allow_non_restored_state: bool = False
    """Whether state of operators that the program does not have may be left behind."""
    working_directory: str = ""
    """The client's, for a relative `restore_from`, which is looked for there first."""
    resume: bool = False
    """Whether it is to go on from the newest checkpoint of the jobs of this name, and to own the name. `restore_from`
    then counts only when there is none, but with `restore_anyway`.
    """
    program: ProgramFile | None = None
    """None where the launcher of TaskManagers has the code already."""
    restore_anyway: bool = False
    """Of one to be resumed: `restore_from` counts, whatever checkpoints of this name there are."""


@message
class Predecessor:
    """A job that another one continues, and the checkpoint at which that one took over."""

    job_id: JobId
    checkpoint_id: CheckpointId


@message
class RestoredFrom:
    """The checkpoint that a job was started from."""

    job_id: JobId
    """Of the job that took it."""
    checkpoint_id: CheckpointId
    path: str
    """Of the savepoint, or of the checkpoint's metadata; absolute."""
    timestamp_ms: int
    """Wall time of its trigger."""


@message
class JobSubmitted:
    """JobManager -> client: a job was taken; what it was started from, and what its program took over."""

    job_id: JobId
    restored_checkpoint_id: CheckpointId = CheckpointId(0)
    """0 for a fresh start."""
    restored_operators: tuple[str, ...] = ()
    """Names of the operators that found their state."""
    left_behind: tuple[str, ...] = ()
    """Ids of operators whose state nobody took, which was allowed."""
    predecessors: tuple[Predecessor, ...] = ()
    """The job whose checkpoint it was started from, before it the one that this was started from, ...: oldest first."""
    restored_from: RestoredFrom | None = None
    """None for a fresh start."""
    restored_states: dict[str, str] = field(default_factory=dict)
    """By "operator.state", for each one that was found: "compatible", "migrated: was ..., is ...", or "not declared,
    carried along".
    """
    relatives: tuple[str, ...] = ()
    """Jobs that have not ended and share a past with this one, each as "'name' (id, status)"."""
    namesakes: tuple[str, ...] = ()
    """Jobs that have not ended and are called as this one, each as "id, status"."""
    restore_notes: tuple[str, ...] = ()
    """What may not be meant of how it goes on from there: state that begins empty, fields that are forgotten."""


@message
class ListJobs:
    """Client -> JobManager. Answered with JobList."""


@message
class JobSummary:
    """One job in a line: status, times, restarts and its last failure."""

    job_id: JobId
    name: str
    status: JobStatus
    started_ms: int
    """Wall time of its submission."""
    ended_ms: int = 0
    """0 as long as it has not ended."""
    restarts: int = 0
    tasks_running: int = 0
    tasks_total: int = 0
    last_failure: str = ""
    """In a line, while the job is down because of it: restarting, failing or failed."""
    latest_failure: str = ""
    """The last one in a line, also when the job runs again."""
    latest_failure_ms: int = 0
    """Its wall time; 0: there was none."""
    is_taken_over: bool = False
    """A new leader looks whether its tasks still run, before it goes on with them or starts the job again."""
    task_managers_awaited: int = 0
    """How many of its TaskManagers wait for free slots."""


@message
class JobList:
    """In the order of their submission: those that run, and the last that have ended."""

    jobs: tuple[JobSummary, ...]


@message
class CancelJob:
    """Client -> JobManager: stop at once, without a final checkpoint."""

    job_id: JobId


@message
class StopJob:
    """Client -> JobManager: end the sources, take a final checkpoint, finish. Answered with JobDetails."""

    job_id: JobId


@message
class RequestJobStatus:
    """Client -> JobManager. Answered with JobDetails."""

    job_id: JobId


@message
class TaskMetrics:
    """What one task has done since its attempt started, with its share of time spent waiting for output credit."""

    attempt_id: ExecutionAttemptId
    vertex_id: VertexId
    vertex_name: str
    subtask_index: SubtaskIndex
    records_in: int
    records_out: int
    batches_in: int
    backpressured_ms: int
    busy_ms: int
    status: str
    event_time: TaskEventTime | None = None
    """None of a task that has not begun."""
    clock_ms: float = 0.0
    """When it was read, by the clock of its process: rates are made of two readings."""
    input_bytes: int = 0
    output_bytes: int = 0
    """As they were on their channels; within a process an estimate."""
    input_usage: float = 0.0
    output_usage: float = 0.0
    """How full the fullest channel is, 0 to 1. Flink: inPoolUsage, outPoolUsage."""
    alignment_ms: float = 0.0
    """Of its newest checkpoint."""
    operators: tuple[OperatorFigures, ...] = ()
    """In the order of the chain."""
    user: tuple[UserMetric, ...] = ()


@message
class JobDetails:
    """What a JobManager knows of one job: its status, failures, checkpoints and tasks, as of the answer."""

    job_id: JobId
    name: str
    status: JobStatus
    restarts: int
    failures: tuple[FailureCause, ...]
    """Oldest first; the last one is why the job failed, when it did."""
    completed_checkpoints: int
    latest_checkpoint_id: CheckpointId
    """0 as long as there is none."""
    latest_checkpoint_path: str
    """Of its metadata, absolute; empty as long as there is none."""
    tasks: tuple[TaskMetrics, ...]
    retained_checkpoint_path: str = ""
    """Of a job that has ended and left its checkpoints: the newest that can be read, to start a job from. Absolute."""
    restarted_as: str = ""
    """The id of the job that goes on in its place, when it was restarted from a savepoint; see RestartJob."""

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """As a cell of a notebook shows its value."""
        printer.text(str(self))

    def __str__(self) -> str:
        """In a line, as `print` shows it; `repr` has all."""
        said = [
            f"job {self.name!r} ({self.job_id}): {self.status.value}",
            f"restarts: {self.restarts}",
            f"completed checkpoints: {self.completed_checkpoints}",
        ]
        if self.failures:
            last = self.failures[-1]
            said.append(f"last failure: {last.headline.partition(chr(10))[0]:.220}")
        if self.retained_checkpoint_path:
            said.append(f"kept checkpoint: {self.retained_checkpoint_path}")
        if self.restarted_as:
            said.append(f"restarted as {self.restarted_as}")
        return ", ".join(said)


@message
class RequestWatermarks:
    """Client -> JobManager. Answered with JobWatermarks."""

    job_id: JobId


@message
class JobWatermarks:
    """How far event time is in a job: its shape, and each task's last word."""

    job_id: JobId
    name: str
    status: JobStatus
    vertices: tuple[JobVertex, ...]
    edges: tuple[JobEdge, ...]
    tasks: tuple[TaskMetrics, ...]


@message
class ListenToJob:
    """Client -> JobManager: tell `listener` (an actor address) every JobEvent of this job from now on."""

    job_id: JobId
    listener: str


@message
class JobStatusChanged:
    """JobManager -> listeners: the job went from one status to another.

    Or it is RESTARTING, and `failure` is one more failure that came before all its tasks ran again.
    """

    job_id: JobId
    status: JobStatus
    previous: JobStatus
    timestamp_ms: int
    failure: FailureCause | None = None


@message
class CheckpointCompleted:
    """JobManager -> listeners: a checkpoint is stored and the tasks are being notified of its completion."""

    job_id: JobId
    checkpoint_id: CheckpointId
    duration_ms: int
    state_size_bytes: int
    timestamp_ms: int
    path: str
    final: bool = False
    sync_ms: float = 0.0
    """How long the step of the subtask that took longest stood still for it."""


@message
class CheckpointAborted:
    """JobManager -> listeners: a pending checkpoint was given up."""

    job_id: JobId
    checkpoint_id: CheckpointId
    reason: str
    timestamp_ms: int


@message
class TaskManagerChanged:
    """JobManager -> listeners: a TaskManager registered or was lost."""

    job_id: JobId
    task_manager_id: TaskManagerId
    index: int
    pid: int
    registered: bool
    reason: str
    timestamp_ms: int


@message
class FirstBatchProcessed:
    """TaskManager -> JobManager -> listeners: this attempt took its first batch; how recovery time is measured."""

    job_id: JobId
    attempt_id: ExecutionAttemptId
    vertex_id: VertexId
    subtask_index: SubtaskIndex
    attempt_number: int
    timestamp_ms: int


@message
class AskOperator:
    """Client -> JobManager -> TaskManager: put a question to a running operator. It may read state, not change it.

    `key` chooses the subtask by its key group; without a key, `subtask` says which one is asked.
    """

    job_id: JobId
    operator: str
    """The operator's name or id."""
    has_key: bool
    key: Plain
    question: Message | None
    plain_question: Plain
    """The question when it is plain data rather than a message."""
    timeout_ms: int = 0
    """So long the task has for its answer; 0: as long as the JobManager thinks fit."""
    subtask: SubtaskIndex = SubtaskIndex(0)


@message
class AskTask:
    """JobManager -> TaskManager: the same question, for the attempt that holds the key. Answered with
    OperatorAnswer.
    """

    attempt_id: ExecutionAttemptId
    question: AskOperator


@message
class OperatorAnswer:
    answer: Plain
