"""FinishedCheckpoints: what is remembered of checkpoints that completed or were given up.

It tells an acknowledgement that comes late from one that comes again: the state of the first is nobody's and has to be
discarded, that of the second may stand in a live checkpoint. Flink: CheckpointCoordinator.recentPendingCheckpoints.
"""

from __future__ import annotations

from ..messages import AcknowledgeCheckpoint, CheckpointId, ExecutionAttemptId
from ..state.completed_checkpoints import CompletedCheckpointStore
from .pending_checkpoint import PendingCheckpoint

REMEMBERED_CHECKPOINTS = 16


class FinishedCheckpoints:
    """The last 16 of one job; of older ones only whether somebody may still restore from them."""

    def __init__(self, store: CompletedCheckpointStore) -> None:
        self._store = store
        self._savepoints: set[CheckpointId] = set()
        self._settled: dict[CheckpointId, set[ExecutionAttemptId]] = {}

    def __contains__(self, checkpoint_id: CheckpointId) -> bool:
        """Whether it is one of the last 16."""
        return checkpoint_id in self._settled

    def add(self, pending: PendingCheckpoint) -> None:
        self._settled[pending.checkpoint_id] = set(pending.acknowledged)
        if len(self._settled) > REMEMBERED_CHECKPOINTS:
            del self._settled[next(iter(self._settled))]

    def keep(self, savepoint_id: CheckpointId) -> None:
        """It lives as long as its user wants."""
        self._savepoints.add(savepoint_id)

    def settle(self, ack: AcknowledgeCheckpoint) -> bool:
        """Whether the state of this late acknowledgement is nobody's; it is settled from now on."""
        settled = self._settled.get(ack.checkpoint_id)
        if settled is None:
            return not self._is_live(ack.checkpoint_id)
        is_new = ack.attempt_id not in settled
        settled.add(ack.attempt_id)
        return is_new

    def _is_live(self, checkpoint_id: CheckpointId) -> bool:
        """A live checkpoint has all its acknowledgements: one more can but repeat."""
        restorable = (completed.checkpoint_id for completed in self._store.restorable())
        return checkpoint_id in self._savepoints or checkpoint_id in restorable
