"""FinishedCheckpoints: the record of checkpoints that completed or were given up.

It separates a late acknowledgement from a repeated one: no checkpoint owns the state of the first, so it has to be
discarded, that of the second may stand in a live checkpoint. Flink: CheckpointCoordinator.recentPendingCheckpoints.
"""

from __future__ import annotations

from ...messages import AcknowledgeCheckpoint, CheckpointId, ExecutionAttemptId
from ...state.checkpoints.completed_checkpoints import CompletedCheckpointStore
from .pending_checkpoint import PendingCheckpoint

REMEMBERED_CHECKPOINTS = 16


class FinishedCheckpoints:
    """The last 16 of one job, and the last 16 cut off; of older ones only whether somebody may still restore from them.

    A checkpoint is cut off when all pending ones are given up together, or when it could not be stored: nobody hears
    about it any more, as in Flink, but its states must still be discarded once only.
    """

    def __init__(self, store: CompletedCheckpointStore) -> None:
        self._store = store
        self._savepoints: set[CheckpointId] = set()
        self._settled: dict[CheckpointId, set[ExecutionAttemptId]] = {}
        self._cut_off: dict[CheckpointId, set[ExecutionAttemptId]] = {}

    def __contains__(self, checkpoint_id: CheckpointId) -> bool:
        """Whether it is one of the last 16, cut off or not."""
        return checkpoint_id in self._settled or checkpoint_id in self._cut_off

    def is_known(self, checkpoint_id: CheckpointId) -> bool:
        """Whether it is one of the last 16 that were not cut off."""
        return checkpoint_id in self._settled

    def add(self, pending: PendingCheckpoint, *, is_cut_off: bool = False) -> None:
        into = self._cut_off if is_cut_off else self._settled
        into[pending.checkpoint_id] = set(pending.acknowledged)
        if len(into) > REMEMBERED_CHECKPOINTS:
            del into[next(iter(into))]

    def keep(self, savepoint_id: CheckpointId) -> None:
        """It lives as long as its user wants."""
        self._savepoints.add(savepoint_id)

    def settle(self, ack: AcknowledgeCheckpoint) -> bool:
        """Whether no checkpoint owns the state of this late acknowledgement; it is settled from now on."""
        settled = self._settled.get(ack.checkpoint_id, self._cut_off.get(ack.checkpoint_id))
        if settled is None:
            return not self._is_live(ack.checkpoint_id)
        is_new = ack.attempt_id not in settled
        settled.add(ack.attempt_id)
        return is_new

    def _is_live(self, checkpoint_id: CheckpointId) -> bool:
        """A live checkpoint has all its acknowledgements: one more can but repeat."""
        restorable = (completed.checkpoint_id for completed in self._store.restorable())
        return checkpoint_id in self._savepoints or checkpoint_id in restorable
