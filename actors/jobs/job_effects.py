"""A JobMaster's events besides messages, and the effects that it requests. The JobManager carries the effects out.

The effects of the CheckpointCoordinator pass through as they are, except its sends, which are addressed to
TaskManagers here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ...messages import (
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointId,
    FailureCause,
    FirstBatchProcessed,
    Heartbeat,
    JobStatus,
    JobStatusChanged,
    Message,
    OperatorId,
    RegisterTaskManager,
    TaskManagerAwaited,
    TaskManagerChanged,
    TaskManagerExited,
    TaskManagerId,
    TaskReport,
)
from ..checkpoints.checkpoint_effects import (
    AnswerCheckpoint,
    AnswerSavepoint,
    CancelTimer,
    Discard,
    Publish,
    Schedule,
    StoreMetadata,
)
from ..checkpoints.checkpoint_events import CheckpointEvent, TimerEvent
from ..job_graph import Region

# ------------------------------------------------------------------------------------------------------ events


@dataclass(frozen=True, slots=True)
class RestartDue:
    """Timer: the restart strategy's delay for this region is over."""

    region: Region


@dataclass(frozen=True, slots=True)
class SlotsOverdue:
    """Timer: the job has waited long enough for its slots."""

    generation: int


@dataclass(frozen=True, slots=True)
class CancelOverdue:
    """Timer: tasks that got CancelTask have not answered; their TaskManagers are killed."""

    generation: int


@dataclass(frozen=True, slots=True)
class StartDue:
    """Timer: a TaskManager that ended before it registered may be started once more."""

    index: int


@dataclass(frozen=True, slots=True)
class RepeatFinalNotify:
    """Timer: tell tasks again that the final checkpoint is complete, in case the word was lost."""


@dataclass(frozen=True, slots=True)
class ExitOverdue:
    """Timer: a job that fails has waited long enough to hear how the process ended that it fails of."""


@dataclass(frozen=True, slots=True)
class PermitsDue:
    """Timer: this operator may have permits for those that wait for some."""

    operator_id: OperatorId


@dataclass(frozen=True, slots=True)
class TaskManagerLost:
    """This incarnation is gone: its process ended, it fell silent, or another one took its index."""

    task_manager_id: TaskManagerId
    reason: str
    process_ended: bool
    """False: its process may still be there, and must be ended before another takes its index."""


@dataclass(frozen=True, slots=True)
class JobDoomed:
    """Something beside its tasks ends the job: it fails, whatever its restart strategy."""

    failure: FailureCause


OwnTimerEvent: TypeAlias = RestartDue | SlotsOverdue | CancelOverdue | StartDue | RepeatFinalNotify | ExitOverdue
JobTimerEvent: TypeAlias = TimerEvent | OwnTimerEvent | PermitsDue

JobEvent: TypeAlias = (
    RegisterTaskManager
    | TaskManagerAwaited
    | TaskManagerExited
    | TaskManagerLost
    | Heartbeat
    | TaskReport
    | JobDoomed
    | OwnTimerEvent
    | PermitsDue
    | CheckpointEvent
)


# ----------------------------------------------------------------------------------------------------- effects


@dataclass(frozen=True, slots=True)
class Tell:
    """Send a message to a TaskManager, in the leader's envelope."""

    task_manager_id: TaskManagerId
    message: Message


@dataclass(frozen=True, slots=True)
class StartTaskManager:
    index: int


@dataclass(frozen=True, slots=True)
class KillTaskManager:
    """It does not obey: end its process by force."""

    index: int


@dataclass(frozen=True, slots=True)
class Restart:
    """What follows a failure: the region is deployed again."""

    delay_ms: float
    checkpoint_id: CheckpointId | None
    """The checkpoint it is restored from; None: it starts from the beginning."""


@dataclass(frozen=True, slots=True)
class FailureKnown:
    """For the log: a failure by its root, once each. No restart: the job ends. `count`: how often this same failure has
    come with no completed checkpoint in between.
    """

    failure: FailureCause
    restart: Restart | None
    count: int = 1


@dataclass(frozen=True, slots=True)
class ProcessEnded:
    """For the log: how the process of a TaskManager ended that was lost before, or had not registered yet."""

    index: int
    reason: str
    next_in_ms: float | None
    """When the next one is started in its place, if it had not registered."""


@dataclass(frozen=True, slots=True)
class JobEnded:
    """The job is over. TaskManagers are released, answers to those who wait are due."""

    status: JobStatus
    failure: FailureCause | None


JobNews: TypeAlias = (
    JobStatusChanged | TaskManagerChanged | FirstBatchProcessed | CheckpointCompleted | CheckpointAborted
)
"""The events of messages/job.py, which a job's listeners get."""

JobEffect: TypeAlias = (
    Tell
    | StartTaskManager
    | KillTaskManager
    | Schedule[JobTimerEvent]
    | CancelTimer
    | Publish[JobNews]
    | StoreMetadata
    | Discard
    | AnswerSavepoint
    | AnswerCheckpoint
    | FailureKnown
    | ProcessEnded
    | JobEnded
)
