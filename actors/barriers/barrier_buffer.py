"""BarrierBuffer: aligns barriers, for exactly-once state.

A channel whose barrier has come is blocked until all channels have delivered theirs. The gate need not read a blocked
channel; elements fed from one nevertheless are set aside, and replayed as soon as the alignment ends, before anything
new is taken. A replay can start the next alignment: what that one sets aside goes in front of the rest of the older
replay.

Invariants. From a channel's barrier until Aligned no element of that channel is emitted: so at Aligned, unless it
overtakes, the operator has had exactly the elements before the barrier, of every channel. Each channel's elements are
emitted in their order. A checkpoint gets at most one Aligned or Aborted; its later barriers are dropped.

At the head of a loop a feedback channel's barrier comes back after this head, or another one, has sent it on. Such
channels are never waited for: Aligned names as overtaken those whose barrier has not come. A barrier that comes before,
round another head, blocks its channel as any other does. Source: section 4.3 of the paper below, cyclic graphs.

States: idle (no channel is blocked) and aligning (for `current_checkpoint_id`). Flink: BarrierBuffer, and from 1.9 on
CheckpointBarrierAligner with CachedBufferStorage; algorithm 1 of Carbone et al., "Lightweight Asynchronous Snapshots"
(2015).
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from ...messages import AbortReason, CheckpointId
from ..flow.elements import CancelCheckpointMarker, CheckpointBarrier, Element, EndOfPartition
from .barrier_handler import NO_CHECKPOINT, Aborted, Aligned, GateEvent

_ACTED_ON = frozenset({CheckpointBarrier, CancelCheckpointMarker, EndOfPartition})
"""All other elements pass an open channel untouched."""


_Sequence: TypeAlias = deque[tuple[int, Element]]
"""What one alignment set aside, in arrival order."""


class BarrierBuffer:
    """The exactly-once BarrierHandler."""

    def __init__(self, channels: int, feedback: frozenset[int] = frozenset()) -> None:
        """`feedback`: the channels on which a barrier comes back round a loop, behind the snapshot."""
        if channels - len(feedback) < 1:
            raise ValueError(f"wanted at least one channel, found {channels - len(feedback)}")
        self._channels = channels
        self._feedback = feedback
        self._current = NO_CHECKPOINT
        self._blocked: set[int] = set()
        self._ended: set[int] = set()
        self._given_up: set[CheckpointId] = set()
        self._set_aside = _Sequence()
        self._replays: list[_Sequence] = []

    @property
    def current_checkpoint_id(self) -> CheckpointId:
        """The newest checkpoint that a barrier or a cancel marker has named; -1 before the first."""
        return self._current

    def is_blocked(self, channel: int) -> bool:
        return channel in self._blocked

    def receive(self, channel: int, element: Element) -> list[GateEvent]:
        if not self._blocked and type(element) not in _ACTED_ON:
            return [(channel, element)]
        events: list[GateEvent] = []
        self._take(channel, element, events)
        self._replay(events)
        return events

    def abort(self, checkpoint_id: CheckpointId) -> list[GateEvent]:
        """End the alignment for this checkpoint; one that has not begun here is aborted when its first barrier comes.

        Aborting that one at once would let a cancel marker overtake the barriers of older checkpoints on the way
        downstream.
        """
        events: list[GateEvent] = []
        if checkpoint_id > self._current:
            self._given_up.add(checkpoint_id)
        else:
            self._cancel(checkpoint_id, AbortReason.GIVEN_UP, events)
            self._replay(events)
        return events

    def overtake(self, barrier: CheckpointBarrier) -> list[GateEvent]:
        """Aligned comes first but for the end of an older alignment; then what was set aside.

        The barriers that are still missing are ignored when they come.
        """
        events: list[GateEvent] = []
        checkpoint_id = barrier.checkpoint_id
        if checkpoint_id in self._given_up or self._is_over(checkpoint_id):
            return events
        # The state covers all elements emitted up to now. In flight, and so part of the checkpoint, are those set aside
        # by an older alignment, and those that come on the missing channels before their barrier.
        here = self._ended | (self._blocked if checkpoint_id == self._current else set())
        missing = frozenset(range(self._channels)) - here
        if checkpoint_id > self._current:
            self._give_way(AbortReason.SUBSUMED, events)
            self._advance(checkpoint_id)
        events.append(Aligned(barrier, missing))
        self._release()
        self._replay(events)
        return events

    def set_aside(self) -> tuple[tuple[int, Element], ...]:
        return tuple(self._set_aside)

    def close(self) -> None:
        self._blocked.clear()
        self._given_up.clear()
        self._replays.clear()
        self._set_aside = _Sequence()

    def _replay(self, events: list[GateEvent]) -> None:
        # A stack, oldest elements on top: an alignment that begins within a replay sets aside elements that are older
        # than the rest of that replay, so they have to come before it.
        while self._replays:
            if elements := self._replays[-1]:
                self._take(*elements.popleft(), events)
            else:
                self._replays.pop()

    def _take(self, channel: int, element: Element, events: list[GateEvent]) -> None:
        if channel in self._blocked:
            self._set_aside.append((channel, element))
        elif channel in self._feedback:
            if isinstance(element, CheckpointBarrier):
                self._on_barrier_back(channel, element, events)
            elif not isinstance(element, CancelCheckpointMarker):
                events.append((channel, element))
        elif isinstance(element, CheckpointBarrier):
            self._on_barrier(channel, element, events)
        elif isinstance(element, CancelCheckpointMarker):
            self._cancel(element.checkpoint_id, AbortReason.CANCELLED, events)
        else:
            if isinstance(element, EndOfPartition):
                self._on_end(channel, events)
            events.append((channel, element))

    def _on_barrier(self, channel: int, barrier: CheckpointBarrier, events: list[GateEvent]) -> None:
        checkpoint_id = barrier.checkpoint_id
        if checkpoint_id in self._given_up:
            self._cancel(checkpoint_id, AbortReason.GIVEN_UP, events)
            return
        if self._is_over(checkpoint_id):
            return
        self._block(channel, checkpoint_id, events)
        if len((self._blocked | self._ended) - self._feedback) + len(self._feedback) == self._channels:
            events.append(Aligned(barrier, self._feedback - self._blocked))
            self._release()

    def _on_barrier_back(self, channel: int, barrier: CheckpointBarrier, events: list[GateEvent]) -> None:
        """It is never the last: those of the input are waited for."""
        checkpoint_id = barrier.checkpoint_id
        if checkpoint_id not in self._given_up and not self._is_over(checkpoint_id):
            self._block(channel, checkpoint_id, events)

    def _block(self, channel: int, checkpoint_id: CheckpointId, events: list[GateEvent]) -> None:
        if checkpoint_id > self._current:
            self._give_way(AbortReason.SUBSUMED, events)
            self._advance(checkpoint_id)
        self._blocked.add(channel)

    def _cancel(self, checkpoint_id: CheckpointId, reason: AbortReason, events: list[GateEvent]) -> None:
        """Report this id only: an older alignment that it overtakes ends without a notice, as in Flink."""
        if not self._is_over(checkpoint_id):
            self._release()
            self._advance(checkpoint_id)
            events.append(Aborted(checkpoint_id, reason))

    def _on_end(self, channel: int, events: list[GateEvent]) -> None:
        """A channel that ends counts as aligned in later checkpoints; the running one lacks its barrier permanently."""
        self._ended.add(channel)
        self._give_way(AbortReason.INPUT_ENDED, events)

    def _is_over(self, checkpoint_id: CheckpointId) -> bool:
        """Whether this checkpoint was aligned, aborted or overtaken before."""
        return checkpoint_id < self._current or (checkpoint_id == self._current and not self._blocked)

    def _give_way(self, reason: AbortReason, events: list[GateEvent]) -> None:
        """Abort the running alignment, if there is one."""
        if self._blocked:
            events.append(Aborted(self._current, reason))
            self._release()

    def _advance(self, checkpoint_id: CheckpointId) -> None:
        self._current = checkpoint_id
        if self._given_up:
            self._given_up = {given_up for given_up in self._given_up if given_up > checkpoint_id}

    def _release(self) -> None:
        """Open all channels; elements set aside are replayed next."""
        self._blocked.clear()
        if self._set_aside:
            self._replays.append(self._set_aside)
            self._set_aside = _Sequence()
