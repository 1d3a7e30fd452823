"""EndedAttempts: what a TaskManager keeps of its tasks once they have ended: their last figures, and nothing else.

Operators, their context and their state refer to each other: these are reference cycles. Several attempts of a job that
restarts would lie in memory beside the one that runs, each with all of its state, until Python looks for garbage. That
goes by the number of new objects, and state may be few that are large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ...messages import ExecutionAttemptId, TaskMetrics
from ..context import ActorContext

REPORTS_KEPT = 64
"""When a new attempt begins, this many of those that have ended stay in heartbeats, in case the report of their end was
lost.
"""
GARBAGE_DELAY_MS = 1000
"""While other tasks run here, garbage waits this long, so that one collection, which stops every thread, serves several
ended tasks.
"""


@dataclass(frozen=True, slots=True)
class GarbageDue:
    """A message of the TaskManager to itself."""


class EndedAttempts:
    """See the module. `collect_garbage` returns when unreachable objects are freed; their finalizers run in it."""

    def __init__(self, collect_garbage: Callable[[], object]) -> None:
        self._metrics: dict[ExecutionAttemptId, TaskMetrics] = {}
        self._collect_garbage = collect_garbage
        self._garbage_is_due = False

    def __contains__(self, attempt_id: ExecutionAttemptId) -> bool:
        return attempt_id in self._metrics

    def __iter__(self) -> Iterator[ExecutionAttemptId]:
        """In the order in which they ended."""
        return iter(self._metrics)

    def metrics(self, attempt_id: ExecutionAttemptId, now_ms: float) -> TaskMetrics | None:
        """Its last figures, as they are at this moment: rates go down to 0."""
        last = self._metrics.get(attempt_id)
        return None if last is None else replace(last, clock_ms=now_ms)

    def add(self, attempt_id: ExecutionAttemptId, metrics: TaskMetrics) -> None:
        self._metrics[attempt_id] = metrics

    def forget_old(self) -> None:
        for attempt_id in list(self._metrics)[:-REPORTS_KEPT]:
            del self._metrics[attempt_id]

    def leave_garbage(self, context: ActorContext, *, others_run: bool) -> None:
        """A task has left its thread. With no other task here its garbage goes at once: the next attempt will need as
        much memory again.
        """
        if not others_run:
            self._collect()
        elif not self._garbage_is_due:
            self._garbage_is_due = True
            context.schedule(GARBAGE_DELAY_MS, GarbageDue())

    def delay_is_over(self) -> None:
        if self._garbage_is_due:
            self._collect()

    def _collect(self) -> None:
        self._garbage_is_due = False
        self._collect_garbage()
