"""What is said between who sends records into a running job, and the inlet's subtask that takes them."""

from __future__ import annotations

from .ids import ExecutionAttemptId, JobId, SubtaskIndex
from .registry import message


@message
class SendToInlet:
    """Client -> JobManager: take these records, in this order. Answered with InletAnswer, once they last.

    May be repeated: what has its number already counts once. All senders belong to this subtask.
    """

    job_id: JobId
    inlet: str
    """The source's name or id."""
    subtask: SubtaskIndex
    records: bytes
    """One entry of the log: records of several senders, see `runtime/connectors/inlet/sent_records`."""


@message
class PutIntoInlet:
    """JobManager -> TaskManager: the same, for the attempt that runs the subtask."""

    attempt_id: ExecutionAttemptId
    sent: SendToInlet


@message
class InletAnswer:
    """Which records last: all that were sent, but for those of senders in `last_numbers`."""

    last_numbers: dict[str, int]
    """Of these senders all records up to this number last: those who asked, and those of whom not all was taken."""
    is_full: bool = False
    """Nothing more is taken before records have been emitted: ask again, without records."""
    is_ready: bool = True
    """If not, nothing was taken, and nothing is known."""
    has_ended: bool = False
    """Nothing more is taken at all: the job's data is being ended."""
    trouble: str = ""
    """Why it is not ready, where it knows."""
