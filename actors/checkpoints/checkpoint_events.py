"""What the CheckpointCoordinator takes, besides the messages of tasks. Data only; the JobMaster hands it in.

Events that come back (timers, answers of storage) are made by the shell from the effect that asked for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ...messages import AcknowledgeCheckpoint, CheckpointId, DeclineCheckpoint, ExecutionAttemptId, JobStatus
from ..job_graph import SubtaskKey
from .savepoint_request import CheckpointRequest, SavepointRequest


@dataclass(frozen=True, slots=True)
class StartScheduler:
    """Trigger periodically from now on; a scheduler that runs is stopped first, and its pending checkpoints with it."""

    keep_pending: bool = False
    """They go on: somebody may have wanted a savepoint while not all tasks ran yet."""


@dataclass(frozen=True, slots=True)
class JobAdopted:
    """The job runs, begun by an earlier leader, which may not have said what became of its last checkpoints."""

    given_up: tuple[CheckpointId, ...]
    """They may have been under way, and none of them will be complete."""


@dataclass(frozen=True, slots=True)
class OrdersLost:
    """These attempts run on, but their TaskManager was without a leader: what was said to and by them may be lost."""

    attempts: tuple[ExecutionAttemptId, ...]


@dataclass(frozen=True, slots=True)
class StopScheduler:
    """No periodic checkpoints any more; all pending ones are given up."""


@dataclass(frozen=True, slots=True)
class PeriodicTick:
    """Timer: time for the next checkpoint. A tick with an older number was cancelled and does nothing."""

    number: int


@dataclass(frozen=True, slots=True)
class RetryFinal:
    """Timer: try the final checkpoint again, unless one is under way or done."""


@dataclass(frozen=True, slots=True)
class CheckpointExpired:
    """Timer: the checkpoint has had its time."""

    checkpoint_id: CheckpointId


@dataclass(frozen=True, slots=True)
class AlignmentOverdue:
    """Timer: the checkpoint's barriers have had their time to be aligned."""

    checkpoint_id: CheckpointId


@dataclass(frozen=True, slots=True)
class TriggerCheckpointNow:
    """A person wants a checkpoint; pause and concurrency limit hold for it too."""

    is_periodic: bool = False
    """Whether it is refused like a periodic one while the scheduler is off."""


@dataclass(frozen=True, slots=True)
class CheckpointRequested:
    """A client wants a checkpoint now. Answered by exactly one `AnswerCheckpoint(request, ...)`, at once or later."""

    request: CheckpointRequest


@dataclass(frozen=True, slots=True)
class TriggerSavepointNow:
    """A person wants a savepoint. Answered by exactly one `AnswerSavepoint(request, ...)`, at once or later."""

    request: SavepointRequest


@dataclass(frozen=True, slots=True)
class FinalSavepointWanted:
    """The final checkpoint, whenever it comes, is to be a savepoint too. Answered like TriggerSavepointNow; the promise
    stays open while that checkpoint is repeated, through restarts too.
    """

    request: SavepointRequest


@dataclass(frozen=True, slots=True)
class MetadataStored:
    """Answer to StoreMetadata: the file is durable at `path`, and so are the savepoints' pointers."""

    checkpoint_id: CheckpointId
    path: str
    savepoints: Mapping[str, str] = field(default_factory=dict)
    """Token -> path of its pointer, for each of StoreMetadata's."""


@dataclass(frozen=True, slots=True)
class MetadataFailed:
    """Answer to StoreMetadata: no one can rely on the metadata."""

    checkpoint_id: CheckpointId
    reason: str
    path: str = ""
    """Where the file may be all the same: it may have been put in place before something failed."""
    repeatable: bool = False
    """No other try will do better."""
    needs_full: bool = False
    """Files of earlier checkpoints are gone: only a full checkpoint can be stored, and is going to be asked for."""


@dataclass(frozen=True, slots=True)
class AttemptChanged:
    """This attempt stands for the subtask now, and is or is not RUNNING (not so any more from CANCELING on).

    Gives up no pending checkpoint by itself. Repeats are harmless.
    """

    subtask: SubtaskKey
    attempt_id: ExecutionAttemptId | None
    """None: no attempt does, the subtask is not deployed."""
    is_running: bool
    place: str = ""
    """The TaskManager that it runs on and its host, in words; empty: not known."""


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """It will acknowledge nothing more. Checkpoints that have its acknowledgement live on."""

    attempt_id: ExecutionAttemptId


@dataclass(frozen=True, slots=True)
class RegionRestarting:
    """Attempts are about to be replaced. Must come before the checkpoint to restore from is chosen.

    All pending checkpoints are given up, and data has not ended any more until AllDataEnded is said again. After the
    last checkpoint of a job nothing follows all the same, unless RegionRunsOn is said.
    """


@dataclass(frozen=True, slots=True)
class RegionRunsOn:
    """A region is deployed that takes data, from the start or from a checkpoint that is not the job's last."""


@dataclass(frozen=True, slots=True)
class JobStopping:
    """Sources are to end their data before its time. From now on only the final checkpoint can be a savepoint."""


@dataclass(frozen=True, slots=True)
class AllDataEnded:
    """Every task has taken all its input: take the final checkpoint, and repeat it until one completes."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The job ended with this status, or, if it is not terminal, is suspended: leadership was lost.

    Acknowledgements that come after it, and answers to StoreMetadata that are still out, must be handed in all the
    same: their state is discarded then.
    """

    status: JobStatus


TimerEvent: TypeAlias = PeriodicTick | RetryFinal | CheckpointExpired | AlignmentOverdue

RequestEvent: TypeAlias = (
    PeriodicTick
    | RetryFinal
    | TriggerCheckpointNow
    | CheckpointRequested
    | TriggerSavepointNow
    | FinalSavepointWanted
    | JobStopping
    | AllDataEnded
    | RegionRunsOn
)
"""They say that a checkpoint is wanted, or which ones can be."""

CheckpointEvent: TypeAlias = (
    RequestEvent
    | JobAdopted
    | OrdersLost
    | StartScheduler
    | StopScheduler
    | CheckpointExpired
    | AlignmentOverdue
    | AcknowledgeCheckpoint
    | DeclineCheckpoint
    | MetadataStored
    | MetadataFailed
    | AttemptChanged
    | AttemptFailed
    | RegionRestarting
    | Shutdown
)
