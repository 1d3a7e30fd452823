"""What is said about checkpoints between JobManager and TaskManagers. The names and meanings are Flink's."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from .ids import CheckpointId, ExecutionAttemptId, JobId
from .registry import message
from .state_handles import SubtaskState


@message
class TriggerCheckpoint:
    """JobManager -> TaskManager, for each source subtask: record your offset and emit barrier `checkpoint_id`.

    `stop`: emit nothing after that barrier until the outcome of the checkpoint is known. Completed, it is final and the
    task finishes; aborted, the source goes on where it was. Flink: stop-with-savepoint without drain.
    `whole`: nothing in it may lie in files of earlier checkpoints. Snapshots with which a job stops are
    whole in any case.
    """

    job_id: JobId
    attempt_id: ExecutionAttemptId
    checkpoint_id: CheckpointId
    timestamp_ms: int
    stop: bool = False
    whole: bool = False


@message
class ExpectBarrier:
    """JobManager -> TaskManager, for each subtask that keeps records in flight: a checkpoint has been triggered. Of one
    whose barrier sources may hold back (a savepoint, a stop): all of them have passed it.

    Until its barrier has come, take input even where as much is in flight as may be: so the barrier waits for none of
    it. Channels bound the input that is taken beyond that.
    """

    job_id: JobId
    attempt_id: ExecutionAttemptId
    checkpoint_id: CheckpointId


@message
class SwitchToUnaligned:
    """JobManager -> TaskManager, for each subtask that has not acknowledged: the alignment takes too long.

    Take the snapshot now, let the barriers that are missing be overtaken, and make what was in flight before them part
    of it. A subtask that has taken this snapshot, or a newer one, ignores it. Flink: the aligned checkpoint timeout.
    """

    job_id: JobId
    attempt_id: ExecutionAttemptId
    checkpoint_id: CheckpointId
    timestamp_ms: int


@message
class SnapshotMetrics:
    """How one subtask took its snapshot. Flink: CheckpointMetrics."""

    sync_ms: float = 0.0
    """How long the task's step stood still."""
    async_ms: float = 0.0
    """From the end of that until all was written."""
    alignment_ms: float = 0.0
    """From the first barrier to the last, or to the switch; 0 for a source."""
    in_flight_bytes: int = 0
    """Elements of channels that are part of an unaligned snapshot."""
    unaligned: bool = False


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
    metrics: SnapshotMetrics = SnapshotMetrics()


@message
class AcknowledgeTogether:
    """TaskManager -> JobManager: acknowledgements of several of its tasks, in their order. Each means what it does
    alone.
    """

    acknowledgements: tuple[AcknowledgeCheckpoint, ...]


class AbortReason(Enum):
    """Why a task does not take part in a checkpoint. Flink: CheckpointFailureReason."""

    SUBSUMED = "subsumed_by_newer_barrier"
    CANCELLED = "cancellation_barrier"
    INPUT_ENDED = "input_end_of_stream"
    LIMIT_EXCEEDED = "alignment_limit_exceeded"
    GIVEN_UP = "checkpoint_given_up"
    """The JobManager gave it up before this task had all its barriers."""
    NOT_RUNNING = "task_not_running"
    NOT_A_SOURCE = "not_a_source"
    """Checkpoints are triggered at sources only."""
    SNAPSHOT_FAILED = "snapshot_failed"
    """The snapshot could not be taken or written."""
    NOT_STORABLE = "state_not_storable"
    """As its state holds what no state can: the next snapshot has it, too."""

    @property
    def is_secondhand(self) -> bool:
        """Whether the decline passes on what happened elsewhere: another task's decline, or the JobManager itself, has
        the cause.
        """
        return self in _SECONDHAND


_SECONDHAND = frozenset({AbortReason.SUBSUMED, AbortReason.CANCELLED, AbortReason.INPUT_ENDED, AbortReason.GIVEN_UP})


@message
class DeclineCheckpoint:
    """TaskManager -> JobManager: this subtask could not take the snapshot."""

    job_id: JobId
    attempt_id: ExecutionAttemptId
    checkpoint_id: CheckpointId
    reason: AbortReason
    detail: str = ""
    """To show to users: what went wrong in the task, if more is known than the reason."""
    repeatable: bool = False
    """As of a FailureCause: whether the program is to blame, so that the next one is likely to be declined too."""

    @property
    def text(self) -> str:
        """Why, to show to users."""
        return self.detail or self.reason.value


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
    oldest_needed: CheckpointId | None = None
    """No task of the job will be restored from an older one; None: nothing is said about that."""


@message
class NotifyCheckpointAborted:
    """JobManager -> TaskManager: this checkpoint will not complete; forget its alignment and its snapshot."""

    job_id: JobId
    attempt_id: ExecutionAttemptId
    checkpoint_id: CheckpointId
    reason: str


CheckpointOrder: TypeAlias = (
    TriggerCheckpoint | ExpectBarrier | SwitchToUnaligned | NotifyCheckpointComplete | NotifyCheckpointAborted
)
"""What the JobManager orders a task to do about a checkpoint."""


@message
class OrderTogether:
    """JobManager -> TaskManager: orders about checkpoints for several of its tasks, in order. Each means what it does
    alone.
    """

    orders: tuple[CheckpointOrder, ...]
