"""BarrierTracker: counts barriers and never blocks, for at-least-once state.

Data behind a barrier passes before its checkpoint is taken, so it may be in the snapshot and be replayed as well.
Several incomplete checkpoints are counted side by side; completing one drops the older ones without notice, cancelling
one aborts the older ones too. With one channel nothing is counted: every barrier is a checkpoint, every cancel marker
an abort. Flink: BarrierTracker, CheckpointBarrierTracker (the classic one, for which an ended channel sends no more
barriers).
"""

from __future__ import annotations

from ...messages import AbortReason, CheckpointId
from ..flow.elements import CancelCheckpointMarker, CheckpointBarrier, Element
from .barrier_handler import NO_CHECKPOINT, Aborted, Aligned, GateEvent

MAX_CHECKPOINTS_TO_TRACK = 50
"""The oldest incomplete checkpoint is forgotten when there are more."""


class BarrierTracker:
    """The at-least-once BarrierHandler."""

    def __init__(self, channels: int) -> None:
        if channels < 1:
            raise ValueError(f"wanted at least one channel, found {channels}")
        self._channels = channels
        self._latest = NO_CHECKPOINT
        self._counts: dict[CheckpointId, int] = {}
        """How many channels have spoken about each incomplete checkpoint, oldest first: only newer ids are added."""
        self._aborted: set[CheckpointId] = set()

    @property
    def pending(self) -> tuple[CheckpointId, ...]:
        """The checkpoints that are still counted, aborted ones too; oldest first."""
        return tuple(self._counts)

    def is_blocked(self, channel: int) -> bool:
        return False

    def receive(self, channel: int, element: Element) -> list[GateEvent]:
        if isinstance(element, CheckpointBarrier | CancelCheckpointMarker):
            if self._channels == 1:
                return self._pass_on(element)
            if isinstance(element, CheckpointBarrier):
                return self._on_barrier(element)
            return self._on_cancel(element.checkpoint_id)
        return [(channel, element)]

    def abort(self, checkpoint_id: CheckpointId) -> list[GateEvent]:
        """Count on, but take no snapshot. Nothing is reported: no channel waits for it, here or downstream."""
        if checkpoint_id > self._latest or checkpoint_id in self._counts:
            self._aborted.add(checkpoint_id)
        return []

    def overtake(self, barrier: CheckpointBarrier) -> list[GateEvent]:
        """Nothing waits here, so nothing has to be overtaken."""
        return []

    def set_aside(self) -> tuple[tuple[int, Element], ...]:
        return ()

    def close(self) -> None:
        self._counts.clear()
        self._aborted.clear()

    def _pass_on(self, element: CheckpointBarrier | CancelCheckpointMarker) -> list[GateEvent]:
        """The only channel has spoken, so all have; unless the checkpoint was given up, which is no news then."""
        checkpoint_id = element.checkpoint_id
        self._latest = max(self._latest, checkpoint_id)
        is_aborted = checkpoint_id in self._aborted
        self._drop_until(checkpoint_id)
        if is_aborted:
            return []
        if isinstance(element, CheckpointBarrier):
            return [Aligned(element)]
        return [Aborted(checkpoint_id, AbortReason.CANCELLED)]

    def _on_barrier(self, barrier: CheckpointBarrier) -> list[GateEvent]:
        checkpoint_id = barrier.checkpoint_id
        if not self._count(checkpoint_id):
            return []
        is_aborted = checkpoint_id in self._aborted
        self._drop_until(checkpoint_id)
        return [] if is_aborted else [Aligned(barrier)]

    def _on_cancel(self, checkpoint_id: CheckpointId) -> list[GateEvent]:
        events: list[GateEvent] = []
        for older in self._counts:
            if older < checkpoint_id:
                self._report(older, events)
        self._drop_until(CheckpointId(checkpoint_id - 1))
        if checkpoint_id > self._latest or checkpoint_id in self._counts:
            self._report(checkpoint_id, events)
            if self._count(checkpoint_id):
                self._drop_until(checkpoint_id)
        return events

    def _count(self, checkpoint_id: CheckpointId) -> bool:
        """Count one channel; true when all have spoken. An id that is neither pending nor new can complete no more."""
        if checkpoint_id > self._latest:
            self._latest = checkpoint_id
            self._counts[checkpoint_id] = 0
            if len(self._counts) > MAX_CHECKPOINTS_TO_TRACK:
                self._drop_until(next(iter(self._counts)))
        elif checkpoint_id not in self._counts:
            return False
        self._counts[checkpoint_id] += 1
        return self._counts[checkpoint_id] == self._channels

    def _report(self, checkpoint_id: CheckpointId, events: list[GateEvent]) -> None:
        if checkpoint_id not in self._aborted:
            self._aborted.add(checkpoint_id)
            events.append(Aborted(checkpoint_id, AbortReason.CANCELLED))

    def _drop_until(self, checkpoint_id: CheckpointId) -> None:
        """Forget this checkpoint and all older ones."""
        self._counts = {pending: count for pending, count in self._counts.items() if pending > checkpoint_id}
        self._aborted = {aborted for aborted in self._aborted if aborted > checkpoint_id}
