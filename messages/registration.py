"""How TaskManagers come, stay and go, and the envelope that fences an old leader's words."""

from __future__ import annotations

from dataclasses import replace

from .errors import UnsupportedValue
from .ids import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    LeaderSessionId,
    SlotIndex,
    SubtaskIndex,
    TaskManagerId,
    VertexId,
)
from .job import TaskMetrics
from .registry import Message, message
from .tables import pack_table, unpack_table
from .tasks import ExecutionState, InputDescriptor, OutputDescriptor


@message
class LeaderSessionMessage:
    """A message that directs state, with the term it was meant for; one from another term is dropped and counted.

    Flink: JobManagerMessages.LeaderSessionMessage.
    """

    leader_session_id: LeaderSessionId
    message: Message


@message
class OfferedTask:
    """An attempt that an earlier leader has deployed, and that has not ended: where it runs, and how far it is."""

    vertex_id: VertexId
    subtask_index: SubtaskIndex
    attempt_id: ExecutionAttemptId
    attempt_number: int
    slot: SlotIndex
    inputs: tuple[InputDescriptor, ...]
    outputs: tuple[OutputDescriptor, ...]
    state: ExecutionState
    newest_checkpoint: CheckpointId
    """The newest that it has taken a snapshot for; 0: none."""
    data_ended: bool
    """It has taken and flushed all its input."""
    is_stopping: bool
    """It was ordered to stop, or took part in a stop with savepoint: that leader alone knew what comes next."""


@message
class RegisterTaskManager:
    """TaskManager -> JobManager: here I am, with these slots. Repeated until it is answered."""

    task_manager_id: TaskManagerId
    job_id: JobId
    index: int
    """Which of the job's TaskManagers this is: on Spark, the partition that it drives."""
    slots: int
    control_address: str
    """Address of the TaskManager actor, as in `tcp://127.0.0.1:4711/task-manager`."""
    data_endpoint: str
    """Where the data plane listens."""
    pid: int
    host: str
    tasks: tuple[OfferedTask, ...] = ()
    """What it runs still, when it has outlived the leader that it was registered with."""
    search: int = 0
    """Counts how often it has looked for a leader. Between searches it took no orders, and its reports were lost."""


@message
class FollowLeader:
    """TaskManager -> host: here I am, and I want to know who leads, now and whenever that changes.

    Flink: LeaderRetrievalService, of which each host has one for all its TaskManagers.
    """

    control_address: str
    """Of the TaskManager actor."""


@message
class LeaderIs:
    """Host -> TaskManager: who leads. A TaskManager that is registered with another one turns to this one."""

    address: str
    """Of its JobManager's actor."""
    leader_session_id: LeaderSessionId


@message
class AcknowledgeRegistration:
    leader_session_id: LeaderSessionId
    task_manager_id: TaskManagerId
    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int
    search: int = 0
    """Of the registration that this answers; 0: a JobManager of an earlier release, which does not say."""


@message
class RefuseRegistration:
    """JobManager -> TaskManager: not wanted here; the TaskManager ends itself."""

    task_manager_id: TaskManagerId
    reason: str
    leader_session_id: LeaderSessionId | None = None
    """Whose word that is: of a leader that another one has followed it counts no more."""


@message
class Heartbeat:
    """Both ways; a side that receives nothing for the timeout takes the other for dead."""

    sender: str
    sequence: int
    metrics: tuple[TaskMetrics, ...] = ()
    process: dict[str, float] | None = None
    """Figures of the sender's process, by name."""
    is_last_part: bool = True
    """A TaskManager with many tasks gives the figures of some with each beat, in turn; with this one all were heard."""
    metric_table: bytes = b""
    """The figures of more tasks, as a table of TaskMetrics: TaskManagers say them so, which is much sooner read."""

    def unpacked(self) -> Heartbeat:
        """The same with all figures in `metrics`. Raises MalformedMessage."""
        if not self.metric_table:
            return self
        metrics = (*self.metrics, *unpack_table(TaskMetrics, self.metric_table))
        return replace(self, metrics=metrics, metric_table=b"")


def packed_heartbeat(
    sender: str, sequence: int, metrics: tuple[TaskMetrics, ...], process: dict[str, float] | None, is_last_part: bool
) -> Heartbeat:
    """A heartbeat with its figures as a table, or, if they cannot be said so, as they are."""
    try:
        table = pack_table(TaskMetrics, metrics) if metrics else b""
    except UnsupportedValue:
        return Heartbeat(sender, sequence, metrics, process, is_last_part)
    return Heartbeat(sender, sequence, (), process, is_last_part, table)


@message
class ReleaseTaskManager:
    """JobManager -> TaskManager: the job is over (or restarts without you); stop all tasks and end."""

    task_manager_id: TaskManagerId
    reason: str


@message
class TaskManagerExited:
    """Launcher -> JobManager: the process behind this TaskManager is gone, whatever it may have said before."""

    job_id: JobId
    index: int
    reason: str
    """How it ended, as in "killed by SIGKILL"."""
    repeatable: bool = False
    """Whether what it was given to read ended it, so that the next one is likely to end of the same."""
    is_last: bool = False
    """Whether none can be started any more, ever: what they are started by is gone, as a stopped Spark session."""


@message
class TaskManagerAwaited:
    """Launcher -> JobManager: this TaskManager cannot be started yet; it will be, once that is possible."""

    job_id: JobId
    index: int
    why: str


@message
class TaskManagerFailing:
    """TaskManager -> JobManager: I cannot go on (the reason says why) and end myself now."""

    task_manager_id: TaskManagerId
    reason: str
