"""Acknowledgements: those of one TaskManager's tasks wait for each other, and are sent together.

A checkpoint is complete when all tasks have acknowledged. So nothing is lost while one of this TaskManager has not: the
others wait for it, for as long as their owner lets them, and the last one takes them along at once. A value machine
without a clock or a message of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...messages import AcknowledgeCheckpoint, AcknowledgeTogether, CheckpointId, ExecutionAttemptId


class Acknowledgements:
    """Those that wait; none at first. Whatever else is said to the JobManager comes after `take`."""

    def __init__(self) -> None:
        self._waiting: list[AcknowledgeCheckpoint] = []
        self._checkpoint_id: CheckpointId | None = None
        self._missing: set[ExecutionAttemptId] = set()
        """Who runs and has not acknowledged this checkpoint."""

    @property
    def are_any(self) -> bool:
        return bool(self._waiting)

    def add(self, ack: AcknowledgeCheckpoint, running: Iterable[ExecutionAttemptId]) -> bool:
        """Whether all that wait should be sent now: no task that runs here is missing. `running`: the tasks that do; it
        is read at the first acknowledgement of a checkpoint only.
        """
        if ack.checkpoint_id != self._checkpoint_id:
            self._checkpoint_id, self._missing = ack.checkpoint_id, set(running)
        self._missing.discard(ack.attempt_id)
        self._waiting.append(ack)
        return not self._missing

    def take(self) -> AcknowledgeCheckpoint | AcknowledgeTogether:
        """All that wait, in their order; none do any more."""
        waiting, self._waiting = self._waiting, []
        return waiting[0] if len(waiting) == 1 else AcknowledgeTogether(tuple(waiting))
