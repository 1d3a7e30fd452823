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


LONGEST_LINE = 600
_LONGEST_END = 250
"""Of a line that is longer: our texts end with what to do."""

_WRAPPERS = (FailureKind.REPEATED, FailureKind.USER_CODE)
"""Kinds of errors that only wrap the one that was raised."""


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

    def __str__(self) -> str:
        """In one line: what was raised, and where."""
        return tell_line(self)

    @property
    def headline(self) -> str:
        """Type and text; the type alone where there is no text, as of a bare `assert`."""
        return f"{self.error_type}: {self.error_message}" if self.error_message else self.error_type

    @property
    def is_secondhand(self) -> bool:
        """Whether the failure came to this task from another one."""
        return self.kind is FailureKind.CHANNEL_BROKEN


def raised(failure: FailureCause) -> FailureCause:
    """What was raised first of all, as the user sees it: without what this package has put around it."""
    step = failure
    while step.kind in _WRAPPERS and step.cause is not None:
        step = step.cause
    return step


def tell_line(failure: FailureCause) -> str:
    """The failure in one line: what was raised, and where."""
    error = raised(failure)
    text = " ".join(error.headline.split())
    if len(text) > LONGEST_LINE:
        text = f"{text[: LONGEST_LINE - _LONGEST_END]}…{text[-_LONGEST_END:]}"
    where = tell_place(failure)
    return f"{text} (in {where})" if where else text


def tell_place(failure: FailureCause) -> str:
    """Operator, subtask, attempt and record, as far as they are known."""
    if not (name := failure.operator_name or failure.vertex_name):
        return ""
    numbers = (("subtask", failure.subtask_index), ("attempt", failure.attempt_number))
    told = [f"{'operator' if failure.operator_name else 'vertex'} {name!r}"]
    told += [f"{what} {number}" for what, number in numbers if number >= 0]
    told += [f"record {failure.record_position}"] if failure.record_position >= 0 else []
    return ", ".join([*told, failure.record_origin] if failure.record_origin else told)
