"""What is said between who sends records into a running job, and the inlet's subtask that takes them."""

from __future__ import annotations

from .ids import ExecutionAttemptId, JobId, SubtaskIndex
from .registry import message


@message
class SentRecords:
    """Records of one sender, numbered one by one from `first` on; without any it is a question for the last number.

    `data`: an Arrow stream of one batch if `columns`; else the records as plain data, one behind the other.
    """

    sender: str
    first: int
    count: int
    columns: bool
    data: bytes


@message
class SendToInlet:
    """Client -> JobManager: take these records, in this order. Answered with InletAnswer, once they last.

    May be repeated: what has its number already counts once. All senders belong to this subtask.
    """

    job_id: JobId
    inlet: str
    """The source's name or id."""
    subtask: SubtaskIndex
    records: tuple[SentRecords, ...]


@message
class PutIntoInlet:
    """JobManager -> TaskManager: the same, for the attempt that runs the subtask."""

    attempt_id: ExecutionAttemptId
    sent: SendToInlet


@message
class InletAnswer:
    """Which records last, of each sender in the request."""

    last_numbers: dict[str, int]
    """All records of this sender up to this number last. One that is lower than what was sent says that the rest was
    not taken.
    """
    is_full: bool = False
    """Nothing more is taken before records have been emitted: ask again, without records."""
    has_ended: bool = False
    """Nothing more is taken at all: the job's data is being ended."""
