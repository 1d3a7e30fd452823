"""What the CheckpointCoordinator wants done. Data only; the JobMaster carries it out, or hands it on.

A timer hands the very event back that stands in its `Schedule`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeAlias, TypeVar

from ...messages import (
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointId,
    CheckpointNotTaken,
    CheckpointOrder,
    CheckpointTaken,
    ExecutionAttemptId,
    FailureCause,
    SubtaskState,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
)
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from .checkpoint_events import TimerEvent
from .pending_checkpoint import AckResult, CheckpointKind
from .savepoint_request import CheckpointRequest, SavepointRequest


class Refusal(Enum):
    """Why no checkpoint was triggered. Flink: CheckpointDeclineReason."""

    COORDINATOR_SHUT_DOWN = "coordinator_shut_down"
    PERIODIC_SCHEDULER_OFF = "periodic_scheduler_off"
    ALREADY_QUEUED = "already_queued"
    TOO_MANY_CONCURRENT = "too_many_concurrent"
    MIN_PAUSE = "min_pause"
    TASKS_NOT_READY = "tasks_not_ready"
    STOP_UNDER_WAY = "stop_with_savepoint_under_way"
    JOB_IS_STOPPING = "job_is_stopping"
    """Its sources end their data because somebody wants that: from a savepoint of now the rest would never be read."""
    JOB_IS_ENDING = "job_is_ending"
    """Its last checkpoint is stored, or is just being."""


class CheckpointFailure(Enum):
    """Why a pending checkpoint was given up. Flink: CheckpointFailureReason."""

    DECLINED = "declined"
    EXPIRED = "expired"
    SUBSUMED = "subsumed"
    TASK_FAILED = "task_failed"
    JOB_IS_ENDING = "job_is_ending"
    """A task ended before it had acknowledged, as tasks do once the final checkpoint is complete."""
    REGION_RESTARTING = "region_restarting"
    METADATA_FAILED = "metadata_failed"
    ORDERS_LOST = "orders_lost"
    """A TaskManager was without a leader while it was under way, so its trigger may be lost."""
    SCHEDULER_STOPPED = "scheduler_stopped"
    COORDINATOR_SHUT_DOWN = "coordinator_shut_down"


@dataclass(frozen=True, slots=True)
class Send:
    """Tell the TaskManager of this attempt. It may be gone by now: then the message is lost."""

    attempt_id: ExecutionAttemptId
    message: CheckpointOrder


E_co = TypeVar("E_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Schedule(Generic[E_co]):
    """After `delay_ms`, hand `event` back. The event is the timer's name, too."""

    delay_ms: float
    event: E_co


@dataclass(frozen=True, slots=True)
class CancelTimer:
    event: TimerEvent


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """Write the metadata file of `draft`, and then a pointer to it for each savepoint that it is to be; all or nothing.

    Answered by one MetadataStored or MetadataFailed, always.
    """

    draft: CompletedCheckpoint
    savepoints: tuple[SavepointRequest, ...] = ()
    """Those that it is to be."""


@dataclass(frozen=True, slots=True)
class Discard:
    """Delete these savepoints' pointers, the metadata file, and then these states: nobody will restore from them.

    In this order, so that nothing points at what is deleted; a missing file is no error.
    """

    states: tuple[SubtaskState, ...]
    metadata_path: str = ""
    kept: frozenset[str] = frozenset()
    """Files of these states that somebody else needs."""
    savepoints: tuple[str, ...] = ()
    """Paths of pointers that were never announced."""


@dataclass(frozen=True, slots=True)
class Publish(Generic[E_co]):
    """For the job's listeners."""

    message: E_co


@dataclass(frozen=True, slots=True)
class AnswerSavepoint:
    """The promise behind a SavepointRequest is kept or broken."""

    request: SavepointRequest
    answer: TriggerSavepointSuccess | TriggerSavepointFailure


@dataclass(frozen=True, slots=True)
class AnswerCheckpoint:
    """The promise behind a CheckpointRequest is kept or broken."""

    request: CheckpointRequest
    answer: CheckpointTaken | CheckpointNotTaken
    """Taken: its path is that of its metadata, below the job's storage."""


@dataclass(frozen=True, slots=True)
class FailJob:
    """More checkpoints in a row have failed than are tolerated."""

    cause: FailureCause


@dataclass(frozen=True, slots=True)
class Refused:
    """No checkpoint was triggered. For logs and counters; a refused savepoint is answered besides."""

    kind: CheckpointKind
    reason: Refusal


@dataclass(frozen=True, slots=True)
class AckIgnored:
    """An acknowledgement did not count. For logs and counters."""

    attempt_id: ExecutionAttemptId
    checkpoint_id: CheckpointId
    result: AckResult


CheckpointEffect: TypeAlias = (
    Send
    | Schedule[TimerEvent]
    | CancelTimer
    | StoreMetadata
    | Discard
    | Publish[CheckpointCompleted | CheckpointAborted]
    | AnswerSavepoint
    | AnswerCheckpoint
    | FailJob
    | Refused
    | AckIgnored
)
