"""CheckpointFailures: how many checkpoints in a row have failed, and when that fails the job.

Flink: CheckpointFailureManager. Each checkpoint counts once at most; a completed one begins the count anew. Savepoints
do not count: whoever asked for one is told.
"""

from __future__ import annotations

from collections import deque

from ..messages import CheckpointId, DeclineCheckpoint, FailureCause
from .barrier_handler import AbortReason
from .checkpoint_effects import CheckpointFailure, FailJob
from .finished_checkpoints import REMEMBERED_CHECKPOINTS
from .pending_checkpoint import CheckpointKind, PendingCheckpoint

_COUNTED = frozenset({CheckpointFailure.DECLINED, CheckpointFailure.EXPIRED, CheckpointFailure.METADATA_FAILED})
"""The others have their cause outside the checkpoint."""

_SECONDHAND = frozenset(
    reason.value for reason in (AbortReason.SUBSUMED, AbortReason.CANCELLED, AbortReason.INPUT_ENDED)
)
"""Declines that pass on what happened elsewhere: they end the checkpoint, but the one that began it is counted."""


class CheckpointFailures:
    """The count of one job."""

    def __init__(self, tolerable: int) -> None:
        self._tolerable = tolerable
        self._in_a_row = 0
        self._uncounted: deque[CheckpointId] = deque(maxlen=REMEMBERED_CHECKPOINTS)

    def completed(self) -> None:
        self._in_a_row = 0

    def gave_up(self, pending: PendingCheckpoint, failure: CheckpointFailure) -> None:
        """It may be counted from now on: when it expired, say, or as soon as a firsthand decline has come."""
        if failure in _COUNTED and pending.kind is not CheckpointKind.SAVEPOINT:
            self._uncounted.append(pending.checkpoint_id)

    def forget_uncounted(self) -> None:
        """The tasks restart: what comes in about earlier checkpoints is an echo of that."""
        self._uncounted.clear()

    def count_decline(self, message: DeclineCheckpoint) -> list[FailJob]:
        if message.reason in _SECONDHAND:
            return []
        return self.count(message.checkpoint_id, f"was declined by {message.attempt_id}: {message.reason}")

    def count(self, checkpoint_id: CheckpointId, what: str) -> list[FailJob]:
        """The job's failure when this was one too many; the count begins anew then."""
        if checkpoint_id not in self._uncounted:
            return []
        self._uncounted.remove(checkpoint_id)
        self._in_a_row += 1
        if self._in_a_row <= self._tolerable:
            return []
        self._in_a_row = 0
        text = f"checkpoint {checkpoint_id} {what} (tolerable_failures={self._tolerable})"
        return [FailJob(FailureCause("CheckpointFailed", text))]
