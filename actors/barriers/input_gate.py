"""InputGate: merges a task's input channels and runs them through its barrier handler.

Channels are polled in turn, so that no busy channel starves another. A channel that an alignment has set aside is not
polled: its data waits where it is, under its own credit, instead of in memory here.

When a checkpoint overtakes the barriers that are missing, what comes on their channels before them is logged, and the
gate reads ahead on these channels, whether or not the task takes anything: that gives credit back, so the barriers come
soon. It hands out the elements read ahead later, in order, before anything new. So is what a restored attempt had in
flight. Flink: InputGate, CheckpointedInputGate, RecoveredInputChannel.

Every checkpoint overtakes what is on its way on feedback channels. The gate reads them first: a loop works off what it
has before it takes more in, unless a barrier is waited for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...messages import CheckpointId, SubtaskIndex
from ..errors import UnknownChannel
from ..flow.channels import InputChannel
from ..flow.elements import CheckpointBarrier, Element
from .barrier_handler import Aborted, Aligned, BarrierHandler, GateEvent
from .in_flight_elements import IN_FLIGHT, InFlight
from .in_flight_log import MAX_IN_FLIGHT_BYTES, MAX_IN_LOOP_BYTES, InFlightLog


@dataclass(frozen=True, slots=True)
class GateChannel:
    """One input channel, and which of the operator's inputs it belongs to."""

    channel: InputChannel
    input_index: int
    edge: int
    producer_subtask: SubtaskIndex
    in_loop: bool = False
    """Whether what sends on it is in the same loop."""
    feedback: bool = False
    """Whether it leads back, from a tail of the loop to its head."""
    idle_group: int | None = None
    """Channels of one group are idle together; None: it is in none."""


class AlignmentClock:
    """How long a task's checkpoints have been aligned, from the first barrier that came.

    `now_ms`: the actor's clock; without one, all takes no time. Flink:
    CheckpointBarrierHandler.getAlignmentDurationNanos.
    """

    def __init__(self, now_ms: Callable[[], float] = lambda: 0.0) -> None:
        self._now_ms = now_ms
        self._first_ms: dict[CheckpointId, float] = {}
        self.last_ms = 0.0
        """Of the newest snapshot."""

    def barrier_came(self, checkpoint_id: CheckpointId) -> None:
        """Only the first one of a checkpoint counts."""
        self._first_ms.setdefault(checkpoint_id, self._now_ms())

    def stop(self, checkpoint_id: CheckpointId) -> float:
        """The snapshot is taken: how long ago the first barrier came, in ms; 0 if none has. Older ones are over too."""
        first_ms = self._first_ms.get(checkpoint_id)
        self.forget(checkpoint_id)
        self.last_ms = 0.0 if first_ms is None else self._now_ms() - first_ms
        return self.last_ms

    def forget(self, checkpoint_id: CheckpointId) -> None:
        self._first_ms = {each: first_ms for each, first_ms in self._first_ms.items() if each > checkpoint_id}


class _Turns:
    """Channels that are read in turn: the first after the one that was read last comes first."""

    __slots__ = ("indexes", "next")

    def __init__(self, indexes: Iterable[int]) -> None:
        self.indexes = tuple(indexes)
        self.next = 0


class InputGate:
    """Hands out one gate event at a time, in each channel's order. A source's gate has no channels and no handler."""

    def __init__(
        self, channels: Sequence[GateChannel], handler: BarrierHandler | None, clock: AlignmentClock | None = None
    ) -> None:
        self.channels = tuple(channels)
        self.alignment = clock or AlignmentClock()
        self._handler = handler
        self._ready: deque[GateEvent] = deque()
        self._ahead: dict[int, deque[Element]] = {}
        """By channel, what was read ahead or restored; never empty."""
        self._log: InFlightLog | None = None
        self._feedback = _Turns(index for index, each in enumerate(self.channels) if each.feedback)
        self._inputs = _Turns(index for index, each in enumerate(self.channels) if not each.feedback)
        self._all = _Turns(range(len(self.channels)))
        self._max_log_bytes = MAX_IN_LOOP_BYTES if self._feedback.indexes else MAX_IN_FLIGHT_BYTES
        self.reads_all = False
        """Whether input is read in turn with what comes back."""

    def restore(self, in_flight: Mapping[tuple[int, SubtaskIndex], Sequence[InFlight]]) -> None:
        """By edge and producer subtask, what is to be handed out before anything that is read.

        Raises UnknownChannel for a channel that this gate does not have.
        """
        known = {(channel.edge, channel.producer_subtask): index for index, channel in enumerate(self.channels)}
        for key, elements in in_flight.items():
            if key not in known:
                raise UnknownChannel(*key, list(known))
            if elements:
                self._ahead[known[key]] = deque(elements)

    def restore_loop(self, batches: Iterable[InFlight]) -> None:
        """What had been on its way back round the loop: it is handed out as if it had just come."""
        if came := deque[Element](batches):
            self._ahead[self._feedback.indexes[0]] = came

    def next(self) -> GateEvent | None:
        """The next event, or None when no channel has one. Raises ChannelBroken."""
        while not self._ready:
            if not self._take_one():
                return None
        return self._taken_out(self._ready.popleft())

    def next_checkpoint(self) -> Aligned | Aborted | None:
        """The next event, if it is about a checkpoint; everything else stays for `next`. At most one element is read
        for it. Raises ChannelBroken.
        """
        if not self._ready:
            self._take_one()
        if self._ready and isinstance(self._ready[0], (Aligned, Aborted)):
            event = self._taken_out(self._ready.popleft())
            assert isinstance(event, (Aligned, Aborted))
            return event
        return None

    def _taken_out(self, event: GateEvent) -> GateEvent:
        """The task takes its snapshot now: what comes on feedback channels from here on is in flight."""
        if isinstance(event, Aligned) and event.overtaken:
            self._log = _log_of(event, (), self._read_and_waiting(), self._max_log_bytes)
        return event

    def _take_one(self) -> bool:
        """Run one element through the handler, which may keep it; False when no channel that may be read has one."""
        if self._handler is None:
            return False
        if self._feedback.indexes and not self.reads_all:
            return self._take_of(self._handler, self._feedback) or self._take_of(self._handler, self._inputs)
        return self._take_of(self._handler, self._all)

    def _take_of(self, handler: BarrierHandler, turns: _Turns) -> bool:
        indexes, first = turns.indexes, turns.next
        count = len(indexes)
        for turn in range(first, first + count):
            index = indexes[turn % count]
            if handler.is_blocked(index):
                continue
            element = self._poll_ahead(index) if self._ahead else None
            if element is None:
                element = self._poll(index)
            if element is not None:
                turns.next = turn % count + 1
                self._ready.extend(handler.receive(index, element))
                return True
        return False

    def _poll(self, index: int) -> Element | None:
        element = self.channels[index].channel.poll()
        if type(element) is CheckpointBarrier and not self.channels[index].feedback:
            self.alignment.barrier_came(element.checkpoint_id)
        if self._log is not None and element is not None:
            self._log.feed(index, element)
        return element

    def _poll_ahead(self, index: int) -> Element | None:
        ahead = self._ahead.get(index)
        if ahead is None:
            return None
        element = ahead.popleft()
        if not ahead:
            del self._ahead[index]
        return element

    # -- checkpoints that overtake barriers

    def overtake(self, barrier: CheckpointBarrier) -> list[Aligned | Aborted]:
        """Do not wait for this checkpoint's barriers; returns what the task must take at once.

        After an Aligned `read_ahead` tells when all that is in flight is known. An older log is dropped: its checkpoint
        is given up in favour of this one.
        """
        if self._handler is None:
            return []
        ready, behind = list(self._ready), self._read_and_waiting()
        now: list[Aligned | Aborted] = []
        events = iter(self._handler.overtake(barrier))
        for event in events:
            assert isinstance(event, (Aligned, Aborted)), "nothing comes before the snapshot"
            now.append(event)
            if isinstance(event, Aligned):
                self._log = _log_of(event, ready, behind, self._max_log_bytes)
                break
        self._ready.extend(events)
        return now

    def _read_and_waiting(self) -> list[tuple[int, Element]]:
        """What has been read and may still be behind a barrier that comes, in each channel's order."""
        assert self._handler is not None
        return [
            *self._handler.set_aside(),
            *((channel, element) for channel, ahead in self._ahead.items() for element in ahead),
        ]

    def read_ahead(self) -> InFlightLog | None:
        """Read all that is there on the overtaken channels; the log, once, when it is over. Raises ChannelBroken."""
        log = self._log
        if log is None:
            return None
        for channel in log.missing:
            while log.is_missing(channel) and (element := self._poll(channel)) is not None:
                self._ahead.setdefault(channel, deque()).append(element)
        if not log.is_over:
            return None
        self._log = None
        return log

    def abort(self, checkpoint_id: CheckpointId) -> None:
        """The JobManager gave this checkpoint up: stop aligning, or logging, for it. Nothing that was read is lost."""
        if self._log is not None and self._log.checkpoint_id == checkpoint_id:
            self._log = None
        self.alignment.forget(checkpoint_id)
        if self._handler is not None:
            self._ready.extend(self._handler.abort(checkpoint_id))

    def close(self) -> None:
        self._log = None
        self._ahead.clear()
        if self._handler is not None:
            self._handler.close()
        for gate_channel in self.channels:
            gate_channel.channel.close()


def _log_of(
    aligned: Aligned, ready: Iterable[GateEvent], waiting: Iterable[tuple[int, Element]], max_bytes: int
) -> InFlightLog:
    """A log that has begun. What is `ready` has passed the handler before the barrier, on any channel."""
    log = InFlightLog(aligned.barrier.checkpoint_id, aligned.overtaken, max_bytes=max_bytes)
    for event in ready:
        if isinstance(event, tuple) and isinstance(event[1], IN_FLIGHT):
            log.add(event[0], event[1])
    for channel, element in waiting:
        log.feed(channel, element)
    return log
