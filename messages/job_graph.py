"""JobGraph: the structure of a whole job, and its settings.

No user code is in it: that reaches TaskManagers with the job (Spark's closure, the spawn of a local process), never in
a message.
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from .ids import JobId, OperatorId, VertexId
from .job_status import JobStatus
from .registry import Plain, message


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
    formerly: tuple[str, ...] = ()
    """Names that it was stored under before."""
    beside: str = ""
    """Another state of the same operator, whose values mean something only to an operator that declares this one."""
    mode: str = ""
    """Of an OperatorListState; empty where it is not known, as in savepoints of before it was kept."""


@message
class OperatorDescription:
    """One operator of a vertex's chain, to show to users and for state restore."""

    operator_id: OperatorId
    name: str
    kind: str
    """"source", "operator" or "sink"."""
    states: tuple[StateDescription, ...] = ()
    emits_at_end: bool = True
    """Whether anything may come of it when its data, or event time, has ended."""
    rate_per_second: float | None = None
    """The calls that its subtasks may begin in a second, all of them together; None: it has no such limit."""
    has_coroutines: bool = False
    """Whether it keeps records in flight, and takes no input when there are many."""
    keys: tuple[str, ...] = ()
    """Of each input that has a key, the columns that it is made of, as text; empty where a function makes it."""


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
    says_idle: bool = False
    """Whether its subtasks say by themselves when they are idle, each for itself, whatever their inputs say."""


@message
class JobEdge:
    """Producer vertex to consumer vertex. `input_index` is 0, or 1 for the second input of a two-input operator."""

    source: VertexId
    target: VertexId
    partitioning: Partitioning
    input_index: int = 0
    output_tag: str = ""
    feedback: bool = False
    """Whether it leads back, from the tail of a loop to its head. Each cycle has one such edge at least."""
    by_round: bool = False
    """Of one that does: whether the loop goes in rounds, which are the event time inside."""


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
            case _:
                assert_never(self)


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
    incremental: bool = False
    """Whether periodic checkpoints may hold files of earlier ones, instead of what has not changed since."""
    encryption_key: str = ""
    """The id of the key that the job was submitted with, which every process that writes its state needs; empty: none.
    """
    scrub_interval_ms: int | None = None
    """How long after one reading of all that the job would restore from the next one begins; None: there is none."""


@message
class LocalState:
    """What TaskManagers keep on their own machine's disk, and what that may take of their memory."""

    directory: str = ""
    """A folder for it; empty: a temporary one, which goes when the job has ended."""
    memory_mb: int = 256
    """Of a slot, for state that does not stay on the heap."""
    copies: bool = False
    """Whether snapshots are kept there too, so that whoever comes back on the same machine reads them there."""


@message
class OwnedOutput:
    """A place that one job at a time writes to. Two names of one place are alike where that can be known."""

    sink: str
    """The sink's name."""
    place: str
    """A URL."""


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
    earlier_inlets: tuple[str, ...] = ()
    """Folders of inlets' logs, oldest first, of runs of this name after the checkpoint that it goes on from."""
    watermark_warn_ms: int | None = 10_000
    """Event time that stands still for so long while records come is logged; None: it is not."""
    local_state: LocalState = LocalState()
    outputs: tuple[OwnedOutput, ...] = ()
    """Where no other job may write as long as this one lives."""
