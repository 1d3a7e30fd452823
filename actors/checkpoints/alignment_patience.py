"""AlignmentPatience: how long checkpoints may be aligned, and who is told when one has taken too long.

Only the oldest checkpoint that is still being acknowledged is switched: a switch lets its barrier overtake those of
older ones, which would end them, be they promised savepoints. A younger one that is overdue waits for its turn.
Belongs to the CheckpointCoordinator, whose effects it adds its timers to. Flink: the aligned checkpoint timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ...messages import CheckpointConfig, CheckpointId, ExecutionAttemptId
from .checkpoint_effects import CancelTimer, Schedule, Send
from .checkpoint_events import AlignmentOverdue, TimerEvent
from .checkpoint_tasks import CheckpointTasks
from .pending_checkpoint import CheckpointKind, PendingCheckpoint


class AlignmentPatience:
    """Savepoints, final checkpoints, and all of a job that is not exactly-once, are aligned as long as it takes."""

    def __init__(self, config: CheckpointConfig, emit: Callable[[Schedule[TimerEvent] | CancelTimer], None]) -> None:
        self._timeout_ms = config.alignment_timeout_ms if config.exactly_once else None
        self._emit = emit
        self._told: dict[CheckpointId, set[ExecutionAttemptId]] = {}
        """Of each checkpoint that is overdue and not over, who has been told."""

    def begin(self, pending: PendingCheckpoint) -> None:
        if self._timeout_ms is not None and pending.kind is CheckpointKind.CHECKPOINT:
            self._emit(Schedule(self._timeout_ms, AlignmentOverdue(pending.checkpoint_id)))

    def overdue(self, checkpoint_id: CheckpointId) -> None:
        """Its time is over, and it is still pending."""
        self._told.setdefault(checkpoint_id, set())

    def end(self, pending: PendingCheckpoint) -> None:
        if self._timeout_ms is not None and pending.kind is CheckpointKind.CHECKPOINT:
            self._told.pop(pending.checkpoint_id, None)
            self._emit(CancelTimer(AlignmentOverdue(pending.checkpoint_id)))

    def switches(self, pending: Iterable[PendingCheckpoint], tasks: CheckpointTasks) -> Iterator[Send]:
        """What is to be told now, to attempts that run and have not been told. `pending`: oldest first."""
        oldest = next((each for each in pending if not each.is_storing), None) if self._told else None
        told = None if oldest is None else self._told.get(oldest.checkpoint_id)
        if oldest is None or told is None:
            return
        for send in tasks.switch_to_unaligned(oldest):
            if send.attempt_id not in told:
                told.add(send.attempt_id)
                yield send
