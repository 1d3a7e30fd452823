"""AlignmentPatience: how long checkpoints may be aligned, and who is ordered to overtake when one takes too long.

Only the oldest checkpoint that is still being acknowledged is switched: a switch lets its barrier overtake those of
older ones, which would end them, be they promised savepoints. A younger one that is overdue waits for its turn.
Belongs to the CheckpointCoordinator. Flink: the aligned checkpoint timeout.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...messages import CheckpointConfig, CheckpointId, ExecutionAttemptId
from .checkpoint_effects import CancelTimer, Schedule, Send
from .checkpoint_events import AlignmentOverdue, TimerEvent
from .checkpoint_tasks import CheckpointTasks
from .pending_checkpoint import CheckpointKind, PendingCheckpoint


class AlignmentPatience:
    """Savepoints, final checkpoints, and all of a job that is not exactly-once, are aligned as long as it takes."""

    def __init__(self, config: CheckpointConfig) -> None:
        self._timeout_ms = config.alignment_timeout_ms if config.exactly_once else None
        self._told: dict[CheckpointId, set[ExecutionAttemptId]] = {}
        """For each overdue, pending checkpoint: the attempts that have their order."""

    def begin(self, pending: PendingCheckpoint) -> list[Schedule[TimerEvent]]:
        if self._timeout_ms is None or pending.kind is not CheckpointKind.CHECKPOINT:
            return []
        return [Schedule(self._timeout_ms, AlignmentOverdue(pending.checkpoint_id))]

    def overdue(self, checkpoint_id: CheckpointId) -> None:
        """Its time is over, and it is still pending."""
        self._told.setdefault(checkpoint_id, set())

    def end(self, pending: PendingCheckpoint) -> list[CancelTimer]:
        if self._timeout_ms is None or pending.kind is not CheckpointKind.CHECKPOINT:
            return []
        self._told.pop(pending.checkpoint_id, None)
        return [CancelTimer(AlignmentOverdue(pending.checkpoint_id))]

    def switches(self, pending: Iterable[PendingCheckpoint], tasks: CheckpointTasks) -> list[Send]:
        """Messages to send now, to attempts that run and have not got theirs yet. `pending`: oldest first."""
        oldest = next((each for each in pending if not each.is_storing), None) if self._told else None
        told = None if oldest is None else self._told.get(oldest.checkpoint_id)
        if oldest is None or told is None:
            return []
        sends = [send for send in tasks.switch_to_unaligned(oldest) if send.attempt_id not in told]
        told.update(send.attempt_id for send in sends)
        return sends
