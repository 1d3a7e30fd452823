"""InputGate: merges a task's input channels and runs them through its barrier handler.

Channels are polled in turn, so that no busy channel starves another. A channel that an alignment has set aside is not
polled: its data waits where it is, under its own credit, instead of in memory here. Flink: InputGate,
CheckpointedInputGate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from ..messages import CheckpointId
from .barrier_handler import BarrierHandler, GateEvent
from .channels import InputChannel


@dataclass(frozen=True, slots=True)
class GateChannel:
    """One input channel, and which of the operator's inputs it belongs to."""

    channel: InputChannel
    input_index: int


class InputGate:
    """Hands out one gate event at a time, in each channel's order. A source's gate has no channels and no handler."""

    def __init__(self, channels: Sequence[GateChannel], handler: BarrierHandler | None) -> None:
        self.channels = tuple(channels)
        self._handler = handler
        self._ready: deque[GateEvent] = deque()
        self._next = 0

    def next(self) -> GateEvent | None:
        """The next event, or None when no channel has one. Raises ChannelBroken."""
        while not self._ready:
            if not self._take_one():
                return None
        return self._ready.popleft()

    def _take_one(self) -> bool:
        """Run one element through the handler, which may keep it; False when no channel that may be read has one."""
        handler, count = self._handler, len(self.channels)
        if handler is None:
            return False
        for turn in range(self._next, self._next + count):
            index = turn % count
            if handler.is_blocked(index):
                continue
            element = self.channels[index].channel.poll()
            if element is not None:
                self._next = index + 1
                self._ready.extend(handler.receive(index, element))
                return True
        return False

    def abort(self, checkpoint_id: CheckpointId) -> None:
        """The JobManager gave this checkpoint up: stop aligning for it."""
        if self._handler is not None:
            self._ready.extend(self._handler.abort(checkpoint_id))

    def close(self) -> None:
        if self._handler is not None:
            self._handler.close()
        for gate_channel in self.channels:
            gate_channel.channel.close()
