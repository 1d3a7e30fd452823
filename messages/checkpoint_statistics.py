"""Statistics of a job's checkpoints, to show to users. Flink: CheckpointStatsTracker and its messages."""

from __future__ import annotations

from .checkpointing import SnapshotMetrics
from .ids import CheckpointId, JobId, OperatorId, SubtaskIndex, VertexId
from .registry import message


@message
class SubtaskStatistics:
    """One subtask's part in a checkpoint. Flink: SubtaskStateStats."""

    vertex_id: VertexId
    subtask_index: SubtaskIndex
    acknowledged_ms: int
    """From the trigger to its acknowledgement."""
    state_size_bytes: int
    metrics: SnapshotMetrics


@message
class CheckpointStatistics:
    """One checkpoint, as shown to users. Flink: AbstractCheckpointStats."""

    checkpoint_id: CheckpointId
    kind: str
    """"checkpoint", "savepoint" or "final"."""
    status: str
    """"in_progress", "completed" or "failed"."""
    timestamp_ms: int
    duration_ms: int
    """From the trigger to its end; until now as long as it is in progress."""
    state_size_bytes: int
    subtasks_total: int
    failure: str = ""
    path: str = ""
    """Of a completed one: of its metadata, below the job's checkpoint directory."""
    subtasks: tuple[SubtaskStatistics, ...] = ()
    """Those that have acknowledged, in the order in which they did."""
    discarded: bool = False
    """It completed, and its files are deleted: nothing can start from it any more."""
    awaited: tuple[str, ...] = ()
    """Of one in progress: the first three subtasks of the job graph that have not acknowledged, as "map -> sum [3]"."""


@message
class RequestCheckpointStatistics:
    """Client -> JobManager. Answered with CheckpointHistory."""

    job_id: JobId


@message
class CheckpointHistory:
    """Flink: CheckpointStatsSnapshot."""

    job_id: JobId
    triggered: int
    completed: int
    failed: int
    restored_checkpoint_id: CheckpointId
    """Where the job, or a region of it, last restored from; 0 for nowhere."""
    checkpoints: tuple[CheckpointStatistics, ...]
    """The last ones, newest first; those in progress always."""


@message
class RequestKeyGroups:
    """Client -> JobManager. Answered with KeyGroups."""

    job_id: JobId


@message
class KeyGroupSize:
    key_group: int
    subtask_index: SubtaskIndex
    """Which has it."""
    size_bytes: int


@message
class OperatorKeyGroups:
    """How an operator's keyed state spreads over its key groups."""

    operator_id: OperatorId
    max_parallelism: int
    """The number of key groups that there are."""
    occupied: int
    """The number of those that hold state."""
    size_bytes: int
    """Of them all."""
    largest: tuple[KeyGroupSize, ...]
    """The largest first."""


@message
class KeyGroups:
    """By the newest snapshot that the job would restore from. Operators whose snapshots do not say what belongs to
    which key group are left out: those in RocksDB, and incremental ones.
    """

    job_id: JobId
    checkpoint_id: CheckpointId
    """0 as long as there is none."""
    operators: tuple[OperatorKeyGroups, ...] = ()
