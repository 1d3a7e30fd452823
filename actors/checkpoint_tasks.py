"""CheckpointTasks: which attempts stand for a plan's subtasks now, and what they are told about checkpoints.

Belongs to the CheckpointCoordinator, which hears of every change from the JobMaster.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..messages import (
    ExecutionAttemptId,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    TriggerCheckpoint,
)
from ..state.completed_checkpoints import CompletedCheckpoint
from .checkpoint_effects import Send
from .checkpoint_plan import CheckpointPlan
from .job_graph import SubtaskKey
from .pending_checkpoint import PendingCheckpoint


class CheckpointTasks:
    """The current attempts of one job."""

    def __init__(self, plan: CheckpointPlan) -> None:
        self._plan = plan
        self._attempts: dict[SubtaskKey, ExecutionAttemptId] = {}
        self._running: set[ExecutionAttemptId] = set()

    @property
    def are_ready(self) -> bool:
        """Whether all that take part are RUNNING; otherwise a barrier would wait for a task that is not there yet."""
        needed = (*self._plan.trigger, *self._plan.acknowledge)
        return all(self._attempts.get(subtask) in self._running for subtask in needed)

    def to_acknowledge(self) -> dict[ExecutionAttemptId, SubtaskKey]:
        return {self._attempts[subtask]: subtask for subtask in self._plan.acknowledge}

    def change(self, subtask: SubtaskKey, attempt_id: ExecutionAttemptId, is_running: bool) -> None:
        replaced = self._attempts.get(subtask)
        if replaced is not None:
            self._running.discard(replaced)
        self._attempts[subtask] = attempt_id
        if is_running:
            self._running.add(attempt_id)

    def fail(self, attempt_id: ExecutionAttemptId) -> None:
        self._running.discard(attempt_id)

    def trigger(self, pending: PendingCheckpoint) -> Iterator[Send]:
        for subtask in self._plan.trigger:
            attempt_id = self._attempts[subtask]
            message = TriggerCheckpoint(pending.job_id, attempt_id, pending.checkpoint_id, pending.timestamp_ms)
            yield Send(attempt_id, message)

    def notify_complete(self, done: CompletedCheckpoint) -> Iterator[Send]:
        """To the attempts of now, running or about to be."""
        for subtask in self._plan.notify:
            attempt_id = self._attempts.get(subtask)
            if attempt_id is not None:
                message = NotifyCheckpointComplete(
                    done.job_id, attempt_id, done.checkpoint_id, done.timestamp_ms, done.is_final
                )
                yield Send(attempt_id, message)

    def notify_aborted(self, pending: PendingCheckpoint, reason: str) -> Iterator[Send]:
        """To the attempts that took part, as far as they still run."""
        for attempt_id in pending.attempts:
            if attempt_id in self._running:
                message = NotifyCheckpointAborted(pending.job_id, attempt_id, pending.checkpoint_id, reason)
                yield Send(attempt_id, message)
