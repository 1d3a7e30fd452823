"""TaskCounters: what one attempt has done so far, for metrics. The task's thread writes, any other may read."""

from __future__ import annotations

from ...messages import ExecutionState, FirstBatchProcessed, TaskDeployment, TaskEventTime, TaskMetrics
from ..context import Clock


class TaskCounters:
    """One attempt's."""

    def __init__(self) -> None:
        self.records_in = 0
        self.batches_in = 0
        self._busy_ms = 0.0
        self._blocked_ms = 0.0
        self._blocked_since: float | None = None

    def taken(self, records: int) -> bool:
        """A batch has been taken; whether it was the first."""
        self.records_in += records
        self.batches_in += 1
        return self.batches_in == 1

    def held_back(self, now_ms: float) -> None:
        """Its outputs take nothing: from now on, or still."""
        if self._blocked_since is None:
            self._blocked_since = now_ms

    def goes_on(self, now_ms: float) -> None:
        """Its outputs take more."""
        if self._blocked_since is not None:
            self._blocked_ms += now_ms - self._blocked_since
            self._blocked_since = None

    def worked(self, ms: float) -> None:
        self._busy_ms += ms

    @property
    def is_held_back(self) -> bool:
        return self._blocked_since is not None

    def metrics(
        self,
        deployment: TaskDeployment,
        state: ExecutionState,
        records_out: int,
        clock: Clock,
        event_time: TaskEventTime | None,
    ) -> TaskMetrics:
        """Called from any thread: plain reads of counters."""
        blocked_ms = self._blocked_ms
        if (since := self._blocked_since) is not None:
            blocked_ms += clock.now_ms() - since
        return TaskMetrics(
            attempt_id=deployment.attempt_id,
            vertex_id=deployment.vertex_id,
            vertex_name=deployment.vertex_name,
            subtask_index=deployment.subtask_index,
            records_in=self.records_in,
            records_out=records_out,
            batches_in=self.batches_in,
            backpressured_ms=int(blocked_ms),
            busy_ms=int(self._busy_ms),
            status=state.value,
            event_time=event_time,
        )


def first_batch_processed(where: TaskDeployment, wall_ms: int) -> FirstBatchProcessed:
    """The attempt has taken its first batch now."""
    return FirstBatchProcessed(
        where.job_id, where.attempt_id, where.vertex_id, where.subtask_index, where.attempt_number, wall_ms
    )
