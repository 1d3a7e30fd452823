"""What is said to see the threads of a process. Flink: ThreadDumpInfo."""

from __future__ import annotations

from .ids import TaskManagerId
from .registry import message


@message
class RequestThreadDump:
    """Client -> JobManager, which hands one for a TaskManager on to it. Answered with ThreadDump; fails with ValueError
    for a TaskManager that there is not.
    """

    task_manager_id: TaskManagerId | None = None
    """None: of the JobManager's own process."""


@message
class ThreadStack:
    """One thread, at one moment."""

    name: str
    stack: str
    """As in a traceback: the outermost call first, the one that runs last."""


@message
class ThreadDump:
    threads: tuple[ThreadStack, ...]
    """By name."""
