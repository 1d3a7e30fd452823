"""Checkpoint ids: strictly increasing within a job, never handed out twice. Flink: CheckpointIDCounter.

One counter belongs to one job's CheckpointCoordinator. The standalone counter lives and dies with its process.
"""

from __future__ import annotations

from typing import Protocol

from ...messages import CheckpointId

FIRST_CHECKPOINT_ID = CheckpointId(1)


class CheckpointIdCounter(Protocol):
    """Where ids come from. It is open when it is handed out; HighAvailability opens and removes it."""

    def get_and_increment(self) -> CheckpointId:
        """Must not block: a counter behind a service reserves ids ahead."""
        ...

    def set_count(self, next_id: CheckpointId) -> None:
        """The next id is at least `next_id`: after a restore, one more than the restored id. Must not block."""
        ...


class StandaloneCheckpointIdCounter:
    """A number in memory. Flink: StandaloneCheckpointIDCounter."""

    def __init__(self, first_id: CheckpointId = FIRST_CHECKPOINT_ID) -> None:
        self._next = first_id

    def get_and_increment(self) -> CheckpointId:
        drawn = self._next
        self._next = CheckpointId(drawn + 1)
        return drawn

    def set_count(self, next_id: CheckpointId) -> None:
        self._next = max(self._next, next_id)
