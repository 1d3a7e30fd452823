"""BarrierHandler: what turns a task's channels, read in arrival order, into a stream with checkpoints in it.

Elements go in with the channel they came on; gate events come out, in the order in which the task must take them. A
handler is a value machine that its InputGate owns: it polls no channel, takes no snapshot and tells nobody.
BarrierBuffer aligns (exactly once), BarrierTracker counts (at least once). Flink: CheckpointBarrierHandler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ...messages import AbortReason, CheckpointId
from ..flow.elements import CheckpointBarrier, Element

NO_CHECKPOINT = CheckpointId(-1)
"""Older than any checkpoint."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """Take the snapshot now, before the next event: all barriers are here, or need not be waited for.

    `barrier` is the one that came last.
    """

    barrier: CheckpointBarrier
    overtaken: frozenset[int] = frozenset()
    """The channels whose barrier is not here: what comes on them before it is in flight, and part of the snapshot."""


@dataclass(frozen=True, slots=True)
class Aborted:
    """This checkpoint gets no snapshot here: tell downstream and the JobManager."""

    checkpoint_id: CheckpointId
    reason: AbortReason


GateEvent: TypeAlias = "tuple[int, Element] | Aligned | Aborted"
"""A tuple is an element let through, with its channel: a batch, a watermark, EndOfData or EndOfPartition."""


class BarrierHandler(Protocol):
    """One task's view of the barriers on all its input channels.

    Each channel's elements leave in the order in which they came. Ids of Aligned events strictly grow, and no
    checkpoint is both aligned and aborted.
    """

    def receive(self, channel: int, element: Element) -> list[GateEvent]:
        """Take the next element of `channel`; returns what the task must take now."""
        ...

    def is_blocked(self, channel: int) -> bool:
        """Whether the channel had better not be read now: what it delivers would only be set aside."""
        ...

    def abort(self, checkpoint_id: CheckpointId) -> list[GateEvent]:
        """The JobManager gave this checkpoint up: its barriers may be here, on their way, or never come. Idempotent."""
        ...

    def overtake(self, barrier: CheckpointBarrier) -> list[GateEvent]:
        """The JobManager will not wait for this checkpoint's alignment: end it, and take the snapshot now.

        Nothing comes of it if the checkpoint is over here, or was given up, or if this handler aligns nothing.
        """
        ...

    def set_aside(self) -> tuple[tuple[int, Element], ...]:
        """What waits here for the end of an alignment, with its channels, in the order in which it came."""
        ...

    def close(self) -> None:
        """Forget everything that is set aside or counted."""
        ...
