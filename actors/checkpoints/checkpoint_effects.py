"""What the CheckpointCoordinator wants done. Data only; the JobMaster carries it out, or hands it on.

A timer hands the very event back that stands in its `Schedule`.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from .checkpoint_reasons import Refusal
from .pending_checkpoint import AckResult, CheckpointKind
from .savepoint_request import CheckpointRequest, SavepointRequest


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
