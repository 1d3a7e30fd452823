"""FailureCause: one failure for clients, listeners and logs; and its kind, by which the JobManager decides."""

from __future__ import annotations

from enum import Enum

from .ids import SubtaskIndex
from .registry import message


class FailureKind(Enum):
    """Kinds of failure, for those who decide by them. The error's type and message are to be shown to users."""

    OTHER = "other"
    USER_CODE = "user_code"
    """A wrapper that says in which operator; its cause is what was raised."""
    CHANNEL_BROKEN = "channel_broken"
    """Secondhand: it came to this task from another one, which can say why."""
    UNREADABLE_STATE = "unreadable_state"
    """A file of a checkpoint is gone, or is not what was written."""
    NOT_STORABLE = "state_not_storable"
    """The state of an operator holds what no state can."""
    TASK_MANAGER_LOST = "task_manager_lost"
    REPEATED = "repeated"
    """A wrapper that ends the job; its cause is what came too often."""
    NO_RESTORABLE_CHECKPOINT = "no_restorable_checkpoint"


@message
class FailureCause:
    """One failure, as shown to users: what, where, and the original traceback, with what caused it."""

    error_type: str
    error_message: str
    traceback: str = ""
    job_name: str = ""
    vertex_name: str = ""
    operator_name: str = ""
    subtask_index: SubtaskIndex = SubtaskIndex(-1)
    attempt_number: int = -1
    record_position: int = -1
    """For user code: how many records this subtask's operator had taken in this attempt before the one that raised."""
    record_key: str = ""
    """Of a record that was in flight: its idempotency key, which it keeps from checkpoint to checkpoint and restart to
    restart. Empty where its failure may pass: a connection, or a timeout where no other record was answered, either.
    """
    task_manager: str = ""
    cause: FailureCause | None = None
    repeatable: bool = False
    """Whether it comes of the program, its data or its place on the disk, so that it is likely to come again. A
    connection, a timeout or a disk that is full for now may pass by itself.
    """
    kind: FailureKind = FailureKind.OTHER
    record_origin: str = ""
    """What its sender calls the record that raised, or the records among which it is; empty where that is not known."""

    @property
    def is_secondhand(self) -> bool:
        """Whether the failure came to this task from another one."""
        return self.kind is FailureKind.CHANNEL_BROKEN
