"""What the user code of a TaskManager logs and prints, on its way to the user's process. Text stays text."""

from __future__ import annotations

from .ids import JobId, SubtaskIndex, TaskManagerId
from .registry import Plain, message


@message
class LoggedRecord:
    """One `logging.LogRecord`, formatted as far as only its own process can."""

    logger: str
    level: int
    created_s: float
    """Unix time."""
    text: str
    path: str = ""
    line: int = 0
    function: str = ""
    thread: str = ""
    error: str = ""
    """The traceback, as text."""
    stack: str = ""
    operator: str = ""
    """The operator whose code has logged it; "" when it was none's."""
    subtask_index: SubtaskIndex = SubtaskIndex(-1)
    """-1 when it was none's; so is the attempt."""
    attempt_number: int = -1
    extra: dict[str, Plain] | None = None
    """Further attributes, by name: None, bool, int, float or str each."""


@message
class LogRecords:
    """TaskManager -> JobManager -> the user's `logging`, in the order in which they were logged."""

    task_manager_id: TaskManagerId
    job_id: JobId
    job_name: str
    pid: int
    records: tuple[LoggedRecord, ...]
    dropped: int = 0
    """How many more were logged than may be sent in this time."""


@message
class RequestLogs:
    """Client -> JobManager. Answered with JobLogs."""

    job_id: JobId
    after: int = 0
    """Of an earlier answer, its `next_after`: only what came since then."""


@message
class JobLogs:
    """What a job's TaskManagers have logged lately, in the order in which it came, and from which of them."""

    job_id: JobId
    records: tuple[LogRecords, ...]
    next_after: int
    missed: int = 0
    """How many messages after `after` are not kept any more."""


@message
class PrintedText:
    """TaskManager -> JobManager -> the user's `sys.stdout` or `sys.stderr`, where no pipe leads there."""

    task_manager_id: TaskManagerId
    job_id: JobId
    stream: str
    """ "stdout" or "stderr"."""
    text: str
    dropped_lines: int = 0
    """How many lines are missing before this text."""
