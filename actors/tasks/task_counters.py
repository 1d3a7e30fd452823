"""TaskCounters: what one attempt has done so far, and where its time went. Its thread writes, any other may read.

Its time is busy (in a step that did something, or with a message, as a sink that commits), back-pressured (held back by
its outputs) or idle (the rest). Tasks of one slot share a thread, so a task may also be held back by the work of those
behind it while no channel is full: of a wait between two of its steps in which these worked, what is longer than its
own last step counts as back-pressure. That is how long it would wait for them with a thread of its own. Flink:
TaskIOMetricGroup.
"""

from __future__ import annotations

from typing import Any, Protocol

from ...messages import (
    ExecutionState,
    FirstBatchProcessed,
    TaskDeployment,
    TaskEventTime,
    TaskMetrics,
)
from ..context import Clock


class Neighbours(Protocol):
    """The tasks on one thread."""

    changes: int
    """How often there was another one."""

    def behind(self, counters: TaskCounters) -> tuple[TaskCounters, ...]:
        """Those of the tasks that take what this one emits, also through others."""
        ...


class TaskCounters:
    """One attempt's."""

    __slots__ = (
        "_behind_ms",
        "_blocked_ms",
        "_blocked_since",
        "_busy_ms",
        "_changes",
        "_step_since",
        "_took_ms",
        "batches_in",
        "behind",
        "neighbours",
        "records_in",
    )

    def __init__(self) -> None:
        self.records_in = 0
        self.batches_in = 0
        self.behind: tuple[TaskCounters, ...] = ()
        """Of the tasks on the same thread that take what this one emits, also through others; as of its last step that
        wanted to go on.
        """
        self.neighbours: Neighbours | None = None
        self._changes = 0
        self._busy_ms = 0.0
        self._blocked_ms = 0.0
        self._blocked_since: float | None = None
        self._step_since: float | None = None
        self._took_ms = 0.0
        """Its last step, if it wanted to go on."""
        self._behind_ms: float | None = None
        """How long those behind it had worked by then; None: it does not wait for them."""

    def taken(self, records: int) -> bool:
        """A batch has been taken; whether it was the first."""
        self.records_in += records
        self.batches_in += 1
        return self.batches_in == 1

    def held_back(self, now_ms: float) -> None:
        """Its outputs take nothing: from now on, or still."""
        self._behind_ms = None
        if self._blocked_since is None:
            self._blocked_since = now_ms

    def begins(self, now_ms: float) -> None:
        """A step begins, and its outputs take more."""
        if self._blocked_since is not None:
            self._blocked_ms += now_ms - self._blocked_since
            self._blocked_since = None
        elif self._behind_ms is not None:
            waited_ms = self._done_behind() - self._behind_ms - self._took_ms
            if waited_ms > 0:
                self._blocked_ms += waited_ms
            self._behind_ms = None
        self._step_since = now_ms

    def worked(self, now_ms: float, is_more: bool) -> None:
        """The step ends that has begun, and has done something. `is_more`: it wants to go on at once."""
        since = self._step_since
        took_ms = 0.0 if since is None else now_ms - since
        self._busy_ms += took_ms
        self._step_since = None
        if is_more:
            neighbours = self.neighbours
            if neighbours is not None and neighbours.changes != self._changes:
                self._changes = neighbours.changes
                self.behind = neighbours.behind(self)
            if self.behind:
                self._took_ms = took_ms
                self._behind_ms = self._done_behind()

    def turns_to_message(self, now_ms: float) -> None:
        """Between two steps, a message keeps it. What holds it back meanwhile goes on to count as that."""
        if self._blocked_since is None:
            self._step_since = now_ms

    def back_from_message(self, now_ms: float) -> None:
        """It has done what the message wanted."""
        if self._step_since is not None:
            self._busy_ms += now_ms - self._step_since
            self._step_since = None

    def rests(self) -> None:
        """The step ends, and there was nothing to do."""
        self._step_since = self._behind_ms = None

    def ends(self, now_ms: float) -> None:
        """All ends, in a step or with a message: that was work, as the commit of a job's last checkpoint is."""
        self.back_from_message(now_ms)
        self.rests()

    @property
    def is_blocked(self) -> bool:
        """Whether its outputs take nothing."""
        return self._blocked_since is not None

    @property
    def is_in_step(self) -> bool:
        """Whether it works: in a step, or with a message."""
        return self._step_since is not None

    def is_held_back(self, now_ms: float) -> bool:
        """Whether those behind it hold it back just now: by a full channel, or because they use its thread."""
        if self._blocked_since is not None:
            return True
        return self._waited_ms(now_ms) > 0 and any(each.is_in_step for each in self.behind)

    def busy_ms(self, now_ms: float) -> float:
        """With the step that lasts."""
        busy_ms, since = self._busy_ms, self._step_since
        return busy_ms if since is None else busy_ms + max(0.0, now_ms - since)

    def back_pressured_ms(self, now_ms: float) -> float:
        """With what lasts."""
        blocked_ms, since = self._blocked_ms, self._blocked_since
        return blocked_ms + (self._waited_ms(now_ms) if since is None else max(0.0, now_ms - since))

    def _done_behind(self) -> float:
        """On their common thread, on which none of them is in a step now."""
        done_ms = 0.0
        for each in self.behind:
            done_ms += each._busy_ms
        return done_ms

    def _busy_behind(self, now_ms: float) -> float:
        return sum([each.busy_ms(now_ms) for each in self.behind])

    def _waited_ms(self, now_ms: float) -> float:
        behind_ms = self._behind_ms
        return 0.0 if behind_ms is None else max(0.0, self._busy_behind(now_ms) - behind_ms - self._took_ms)


def reported(
    counters: TaskCounters,
    deployment: TaskDeployment,
    state: ExecutionState,
    clock: Clock,
    event_time: TaskEventTime | None,
    **figures: Any,
) -> TaskMetrics:
    """What a heartbeat says of a task. Called from any thread: plain reads of counters."""
    now_ms, records_out = clock.now_ms(), figures.pop("records_out", 0)
    return TaskMetrics(
        attempt_id=deployment.attempt_id,
        vertex_id=deployment.vertex_id,
        vertex_name=deployment.vertex_name,
        subtask_index=deployment.subtask_index,
        records_in=counters.records_in,
        records_out=records_out,
        batches_in=counters.batches_in,
        backpressured_ms=int(counters.back_pressured_ms(now_ms)),
        busy_ms=int(counters.busy_ms(now_ms)),
        status=state.value,
        event_time=event_time,
        clock_ms=now_ms,
        **figures,
    )


def first_batch_processed(where: TaskDeployment, wall_ms: int) -> FirstBatchProcessed:
    """The attempt has taken its first batch now."""
    return FirstBatchProcessed(
        where.job_id, where.attempt_id, where.vertex_id, where.subtask_index, where.attempt_number, wall_ms
    )
