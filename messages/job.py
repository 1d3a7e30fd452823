"""What is said about whole jobs: the JobGraph, submission, cancellation, status, and what a listener hears.

A JobGraph describes structure only. User code reaches TaskManagers with the job (Spark's closure, the spawn of a local
process), never in a message.
"""

from __future__ import annotations

from enum import Enum

from .failures import FailureCause
from .ids import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    OperatorId,
    SubtaskIndex,
    TaskManagerId,
    VertexId,
)
from .registry import Message, Plain, message


class JobStatus(Enum):
    """Flink's JobStatus. FINISHED, CANCELED and FAILED are terminal.

    Unlike Flink's, RUNNING is stricter: a job whose tasks have been deployed and still start is not RUNNING yet.
    """

    CREATED = "created"
    """Submitted; its TaskManagers start, or its tasks do."""
    RUNNING = "running"
    """Every task runs, or has finished: operators can be asked, and savepoints taken."""
    FAILING = "failing"
    """It is given up; its tasks are being cancelled."""
    RESTARTING = "restarting"
    """A task has failed; some tasks are being cancelled, wait for their restart, or restore their state."""
    CANCELLING = "cancelling"
    """The user wants it to end; its tasks are being cancelled."""
    FINISHED = "finished"
    CANCELED = "canceled"
    FAILED = "failed"

    @property
    def is_terminal(self) -> bool:
        return self in (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED)


class Partitioning(Enum):
    """How an edge deals its elements out to the consumer's subtasks."""

    FORWARD = "forward"
    HASH = "hash"
    REBALANCE = "rebalance"
    BROADCAST = "broadcast"


@message
class StateDescription:
    """One declared state, as a savepoint's metadata and a submitted program name it."""

    name: str
    kind: str
    """"ValueState", "ListState", "OperatorListState", ..."""
    schema: Plain = None
    """Of what one key, or one item, holds; None when it is not known before the job runs."""


@message
class OperatorDescription:
    """One operator of a vertex's chain, for people and for state restore."""

    operator_id: OperatorId
    name: str
    kind: str
    """"source", "operator" or "sink"."""
    states: tuple[StateDescription, ...] = ()


@message
class JobVertex:
    """A chain of operators that runs as one task per subtask. Flink: JobVertex."""

    vertex_id: VertexId
    name: str
    parallelism: int
    max_parallelism: int
    operators: tuple[OperatorDescription, ...]
    slot_sharing_group: str = "default"
    task_manager_bound: bool = False
    """True for a source that reads a Spark partition: subtask i runs only on the TaskManager that drives its
    partition.
    """
    first_task_manager: int = 0
    """For a bound vertex: subtask i runs on TaskManager `first_task_manager + i`."""
    bounded: bool = True


@message
class JobEdge:
    """Producer vertex to consumer vertex. `input_index` is 0, or 1 for the second input of a two-input operator."""

    source: VertexId
    target: VertexId
    partitioning: Partitioning
    input_index: int = 0
    output_tag: str = ""


class RestartStrategyKind(Enum):
    NONE = "none"
    FIXED_DELAY = "fixed-delay"
    FAILURE_RATE = "failure-rate"
    EXPONENTIAL_DELAY = "exponential-delay"


@message
class RestartStrategyConfig:
    """Settings of all strategies; each reads its own. Flink: RestartStrategyOptions."""

    kind: RestartStrategyKind
    attempts: int = 2**31 - 1
    delay_ms: int = 1000
    max_failures_per_interval: int = 1
    failure_rate_interval_ms: int = 60_000
    initial_backoff_ms: int = 1000
    max_backoff_ms: int = 60_000
    backoff_multiplier: float = 1.5
    reset_backoff_threshold_ms: int = 3_600_000
    jitter_factor: float = 0.1


class CheckpointRetention(Enum):
    """When a job's checkpoints stay after its end; one that has finished leaves none. Flink:
    ExternalizedCheckpointRetention.
    """

    ON_CANCELLATION = "on_cancellation"
    """When it fails, and when it is canceled."""
    ON_FAILURE = "on_failure"
    NEVER = "never"

    def keeps(self, status: JobStatus) -> bool:
        """Whether a job that has ended so leaves its checkpoints."""
        match self:
            case CheckpointRetention.ON_CANCELLATION:
                return status in (JobStatus.FAILED, JobStatus.CANCELED)
            case CheckpointRetention.ON_FAILURE:
                return status is JobStatus.FAILED
            case CheckpointRetention.NEVER:
                return False


@message
class CheckpointConfig:
    """Flink: CheckpointConfig. `interval_ms` None: no periodic checkpoints, only the final one of a bounded job."""

    directory: str
    interval_ms: int | None = None
    exactly_once: bool = True
    timeout_ms: int = 600_000
    min_pause_ms: int = 0
    max_concurrent: int = 1
    retained: int = 1
    tolerable_failures: int = 0
    inline_threshold_bytes: int = 20_480
    alignment_timeout_ms: int | None = None
    """How long after its trigger a checkpoint's barriers may be aligned before they overtake what is in flight; None:
    as long as it takes. Only periodic checkpoints, and only with `exactly_once`; a savepoint is always aligned.
    """
    retention: CheckpointRetention = CheckpointRetention.ON_FAILURE


@message
class JobGraph:
    """A whole job's structure. Vertices are in topological order, sources first."""

    job_id: JobId
    name: str
    vertices: tuple[JobVertex, ...]
    edges: tuple[JobEdge, ...]
    checkpoints: CheckpointConfig
    restart: RestartStrategyConfig
    state_backend: str = "memory"
    buffer_timeout_ms: int = 5
    """How long a task may keep what it emits, to send it in larger batches; 0: not at all. Flink:
    execution.buffer-timeout.
    """
    max_same_failures: int | None = 5
    """How often the same repeatable failure may come, with no completed checkpoint in between, until the job fails;
    None: without limit.
    """
    slow_step_ms: int | None = 1_000
    """A step of a task that takes longer is logged; None: no watch."""


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


@message
class Predecessor:
    """A job that another one continues, and the checkpoint at which that one took over."""

    job_id: JobId
    checkpoint_id: CheckpointId


@message
class JobSubmitted:
    job_id: JobId
    restored_checkpoint_id: CheckpointId = CheckpointId(0)
    """0 for a fresh start."""
    restored_operators: tuple[str, ...] = ()
    """Names of the operators that found their state."""
    left_behind: tuple[str, ...] = ()
    """Ids of operators whose state nobody took, which was allowed."""
    predecessors: tuple[Predecessor, ...] = ()
    """The job whose checkpoint it was started from, before it the one that this was started from, ...: oldest first."""


@message
class ListJobs:
    """Client -> JobManager. Answered with JobList."""


@message
class JobSummary:
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


@message
class JobDetails:
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
    tasks: tuple[TaskMetrics, ...]
    retained_checkpoint_path: str = ""
    """Of a job that has ended and left its checkpoints: the newest that can be read, to start a job from. Absolute."""


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
    """JobManager -> listeners: a checkpoint is stored and its completion is being told to the tasks."""

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

    `key` chooses the subtask by its key group; without a key, subtask 0 is asked.
    """

    job_id: JobId
    operator: str
    """The operator's name or id."""
    has_key: bool
    key: Plain
    question: Message | None
    plain_question: Plain
    """The question when it is plain data rather than a message."""


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
