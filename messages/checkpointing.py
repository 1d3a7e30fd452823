"""What is said about checkpoints and savepoints. The names and meanings are Flink's."""

from __future__ import annotations

from .ids import CheckpointId, ExecutionAttemptId, JobId
from .registry import message
from .state_handles import SubtaskState


@message
class TriggerCheckpoint:
    """JobManager -> TaskManager, for each source subtask: record your offset and emit barrier `checkpoint_id`."""

    job_id: JobId
    attempt_id: ExecutionAttemptId
    checkpoint_id: CheckpointId
    timestamp_ms: int


@message
class AcknowledgeCheckpoint:
    """TaskManager -> JobManager: one subtask's snapshot is durable.

    Sent once per subtask and checkpoint; it may arrive late, twice or never.
    """

    job_id: JobId
    attempt_id: ExecutionAttemptId
    checkpoint_id: CheckpointId
    state: SubtaskState | None
    state_size_bytes: int


@message
class DeclineCheckpoint:
    """TaskManager -> JobManager: this subtask could not take the snapshot; `reason` says why."""

    job_id: JobId
    attempt_id: ExecutionAttemptId
    checkpoint_id: CheckpointId
    reason: str


@message
class NotifyCheckpointComplete:
    """JobManager -> TaskManager, to every subtask: the checkpoint is stored; commit what it covers.

    `final`: nothing comes after it, the task finishes.
    """

    job_id: JobId
    attempt_id: ExecutionAttemptId
    checkpoint_id: CheckpointId
    timestamp_ms: int
    final: bool = False


@message
class NotifyCheckpointAborted:
    """JobManager -> TaskManager: this checkpoint will not complete; forget its alignment and its snapshot."""

    job_id: JobId
    attempt_id: ExecutionAttemptId
    checkpoint_id: CheckpointId
    reason: str


@message
class TriggerSavepoint:
    """Client -> JobManager. Answered with TriggerSavepointSuccess or TriggerSavepointFailure."""

    job_id: JobId


@message
class TriggerSavepointSuccess:
    job_id: JobId
    savepoint_path: str


@message
class TriggerSavepointFailure:
    job_id: JobId
    cause: str


@message
class DisposeSavepoint:
    """Client -> JobManager. Answered with DisposeSavepointSuccess or DisposeSavepointFailure."""

    savepoint_path: str


@message
class DisposeSavepointSuccess:
    savepoint_path: str


@message
class DisposeSavepointFailure:
    cause: str
