"""OperatorContext: what an operator may know of where it runs. Flink: RuntimeContext."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...messages import ExecutionAttemptId, JobId, Message, OperatorId, SubtaskIndex
from ..context import Clock
from .metrics import MetricGroup
from .outlasting_threads import OtherThreads, no_threads
from .task_access import TaskAccess


def unheard(_report: Message) -> None:
    """Where there is no JobManager."""


@dataclass(slots=True)
class OperatorContext:
    """What an operator may know of where it runs. Set as `self.context` before `open`."""

    job_id: JobId
    operator_id: OperatorId
    name: str
    vertex_name: str
    subtask_index: SubtaskIndex
    parallelism: int
    max_parallelism: int
    attempt_id: ExecutionAttemptId
    attempt_number: int
    restored: bool
    """Whether state of an earlier attempt was restored."""
    clock: Clock
    wake: Callable[[], None]
    """From any thread: this operator has something to do; its task steps again."""
    resources: dict[str, Any]
    """What this TaskManager lends to operators by name: "spark-partition" is the feed of its Spark partition."""
    task: TaskAccess | None = None
    """For built-in operators; None without a task around them."""
    is_failover: bool = False
    """Whether that is the newest completed checkpoint of this very job, in which nothing has changed since: what comes
    now goes on where it ended. False for a fresh start, a savepoint, an older checkpoint, or one of another job.
    """
    metrics: MetricGroup = field(default_factory=MetricGroup)
    """What the operator measures."""
    report: Callable[[Message], None] = unheard
    """On the task's thread: says something to the job's JobManager, of the kinds that it knows."""
    threads: OtherThreads = no_threads
    """For warnings of those that outlast the data."""
