"""AlignmentClock: how long a task's checkpoints have been aligned, from the first barrier that came. Belongs to the
InputGate. Flink: CheckpointBarrierHandler.getAlignmentDurationNanos.
"""

from __future__ import annotations

from collections.abc import Callable

from ...messages import CheckpointId


class AlignmentClock:
    """`now_ms`: the actor's clock; without one, all takes no time."""

    def __init__(self, now_ms: Callable[[], float] = lambda: 0.0) -> None:
        self._now_ms = now_ms
        self._first_ms: dict[CheckpointId, float] = {}

    def barrier_came(self, checkpoint_id: CheckpointId) -> None:
        """Only the first one of a checkpoint counts."""
        self._first_ms.setdefault(checkpoint_id, self._now_ms())

    def stop(self, checkpoint_id: CheckpointId) -> float:
        """The snapshot is taken: how long ago the first barrier came, in ms; 0 if none has. Older ones are over too."""
        first_ms = self._first_ms.get(checkpoint_id)
        self.forget(checkpoint_id)
        return 0.0 if first_ms is None else self._now_ms() - first_ms

    def forget(self, checkpoint_id: CheckpointId) -> None:
        self._first_ms = {each: first_ms for each, first_ms in self._first_ms.items() if each > checkpoint_id}
