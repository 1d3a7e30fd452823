"""What is said about tasks: deployment, cancellation, state changes."""

from __future__ import annotations

from enum import Enum

from .failures import FailureCause
from .ids import (
    ChannelId,
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    SlotIndex,
    SubtaskIndex,
    TaskManagerId,
    VertexId,
)
from .job_graph import OperatorDescription, Partitioning
from .registry import message
from .state_handles import SubtaskState


class ExecutionState(Enum):
    """Flink's ExecutionState; the transitions stand in actors/jobs/execution.py."""

    CREATED = "created"
    SCHEDULED = "scheduled"
    DEPLOYING = "deploying"
    INITIALIZING = "initializing"
    RUNNING = "running"
    FINISHED = "finished"
    CANCELING = "canceling"
    CANCELED = "canceled"
    FAILED = "failed"

    @property
    def is_terminal(self) -> bool:
        return self in (ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED)


@message
class ChannelDescriptor:
    """One channel of a deployment, the same to the producer's and the consumer's TaskManager."""

    channel_id: ChannelId
    edge: int
    """Index of the JobEdge in the graph."""
    producer_subtask: SubtaskIndex
    consumer_subtask: SubtaskIndex
    producer_task_manager: TaskManagerId
    consumer_task_manager: TaskManagerId
    producer_endpoint: str
    """Data endpoint of the producer's TaskManager; the consumer connects to it."""
    feedback: bool = False
    """Whether it leads back, from a tail to the head of a loop."""

    @property
    def is_local(self) -> bool:
        """Whether both ends are in one TaskManager."""
        return self.producer_task_manager == self.consumer_task_manager


@message
class OutputDescriptor:
    """One out-edge of a task: its partitioner and a channel per consumer subtask, in subtask order."""

    edge: int
    partitioning: Partitioning
    channels: tuple[ChannelDescriptor, ...]
    output_tag: str = ""
    keyed_operator: str = ""
    """The name of the operator that takes the records by key, for errors."""
    in_loop: bool = False
    """Whether both ends of the edge are in one loop."""


@message
class InputDescriptor:
    """One in-edge of a task, a channel per producer subtask that feeds it, in subtask order."""

    edge: int
    input_index: int
    channels: tuple[ChannelDescriptor, ...]
    producer: str = ""
    """The name of the vertex that it comes from, for texts."""
    in_loop: bool = False
    """Whether both ends of the edge are in one loop."""
    idle_groups: tuple[int, ...] = ()
    """For each channel the number of its producer's group: those of one group are idle together. Empty: not known."""


@message
class TaskDeployment:
    """All a TaskManager needs, beside the job's code, to run one attempt of one subtask."""

    job_id: JobId
    vertex_id: VertexId
    vertex_name: str
    subtask_index: SubtaskIndex
    parallelism: int
    max_parallelism: int
    attempt_id: ExecutionAttemptId
    attempt_number: int
    slot: SlotIndex
    inputs: tuple[InputDescriptor, ...]
    outputs: tuple[OutputDescriptor, ...]
    operators: tuple[OperatorDescription, ...] = ()
    """The chain, in order, as in the JobVertex."""
    restored_checkpoint_id: CheckpointId | None = None
    restored: tuple[SubtaskState, ...] = ()
    """This subtask's state; after a rescale, the states of all subtasks that hold a share of it."""
    restored_root: str = ""
    """The URL that the paths in `restored` are relative to; empty: the job's own checkpoint directory."""
    restored_savepoint: bool = False
    """Whether `restored` is a savepoint of another job, which may run on beside this one."""
    is_failover: bool = False
    """Whether `restored` is the newest checkpoint that this very job has completed."""
    earlier_inlets: tuple[str, ...] = ()
    """Folders of inlets' logs that come behind what is restored: see JobGraph."""
    in_rounds: bool = False
    """Whether it is inside a loop that goes in rounds: then records that it emits without a time are of its round."""
    finishing: bool = False
    """It is restored from the job's last checkpoint: take no input, emit nothing, wait for
    NotifyCheckpointComplete(final=True), commit and finish.
    """


@message
class SubmitTask:
    """JobManager -> TaskManager: run this attempt. What becomes of it comes as UpdateTaskExecutionState; repeats are
    harmless.
    """

    deployment: TaskDeployment


@message
class CancelTask:
    """JobManager -> TaskManager: end this attempt; answered by UpdateTaskExecutionState(CANCELED). Idempotent."""

    job_id: JobId
    attempt_id: ExecutionAttemptId


@message
class StopTask:
    """JobManager -> TaskManager, for a source: take no more input, as if the data had ended here. Idempotent."""

    job_id: JobId
    attempt_id: ExecutionAttemptId


@message
class UpdateTaskExecutionState:
    """TaskManager -> JobManager: this attempt is in this state now. Repeats are harmless."""

    job_id: JobId
    attempt_id: ExecutionAttemptId
    state: ExecutionState
    failure: FailureCause | None = None


@message
class NotifyEndOfData:
    """TaskManager -> JobManager: this attempt has taken and flushed all its input; it waits for the final checkpoint.

    Flink: FLIP-147, `notifyEndOfData`.
    """

    job_id: JobId
    attempt_id: ExecutionAttemptId
