"""TaskOutputs: everything a task emits, dealt out to its channels.

One OutputEdge per out-edge of the vertex; batches go through the edge's partitioner, control elements to every
channel. Small batches are kept for a while, edge by edge, and dealt out together; a control element stays behind all
that was emitted before it. Nothing blocks: the task asks `is_available` before it takes input.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from ..context import Clock
from ..errors import ChannelBroken, RecordNotSent, UserCodeError
from .channels import OutputChannel
from .elements import NO_WATERMARK, AnyBatch, Control, RoundMark, Watermark, WatermarkStatus, copied
from .output_buffer import OutputBuffer
from .partitioner import Broadcast, Partitioner

log = logging.getLogger(__name__)

_SELDOM_READ = frozenset({"late", "late-right"})
"""Late records: they are counted, whoever reads them."""


@dataclass(frozen=True, slots=True)
class OutputEdge:
    """One out-edge: how it deals batches out, a channel per consumer subtask, and what is not dealt out yet.

    Whatever is wrong with a record is a UserCodeError of the operator that emitted it, and with its key one of the
    operator that is keyed by it.
    """

    partitioner: Partitioner
    channels: tuple[OutputChannel, ...]
    buffer: OutputBuffer
    producer: str = ""
    """The operator that emits, the last of its chain."""
    keyed: str = ""
    """The operator that takes the records, if it does so by key."""
    output_tag: str = ""
    """Which side output of the operator goes along this edge; empty: its main output."""
    local: frozenset[int] | None = None
    """The channels to tasks in this process, which get records as they are; others get them packed. None: all."""
    copies_local: bool = False
    """Other edges send the same records: those that go to this process are copied first."""
    in_loop: bool = False
    """Whether who takes the records is in the same loop."""
    feedback: bool = False
    """Whether they go back to the head of the loop, which need not have room for them: else a loop that is full would
    wait for itself.
    """

    @property
    def local_share(self) -> float:
        """Which part of what it sends goes to tasks in this process, as far as is known; 1 for a broadcast to any."""
        share = 1 if self.local is None else len(self.local) / len(self.channels)
        return 1 if share and isinstance(self.partitioner, Broadcast) else share

    def send(self, batches: Sequence[AnyBatch]) -> None:
        """Raises UserCodeError and ChannelBroken."""
        for batch in batches:
            try:
                parts = self.partitioner.split(batch)
            except Exception as error:
                raise UserCodeError(self.keyed or self.producer, None) from error
            for index, part in parts:
                own = self.copies_local and self.local is not None and index in self.local
                self._send(index, copied(part) if own else part)

    def _send(self, index: int, part: AnyBatch) -> None:
        try:
            self.channels[index].send(part)
        except ChannelBroken:
            raise
        except Exception as error:  # whatever encoding user objects raises
            raise RecordNotSent(self.producer, error) from error


class TaskOutputs:
    """All out-edges of one task. A task without out-edges (a sink) is always available."""

    def __init__(self, edges: Sequence[OutputEdge], clock: Clock) -> None:
        self._edges, self._get_copies = _apart(edges)
        self.channels = tuple(channel for edge in self._edges for channel in edge.channels)
        self._bounded = tuple(channel for edge in self._edges if not edge.feedback for channel in edge.channels)
        self._clock = clock
        self._held = [NO_WATERMARK] * len(self._edges)
        """By edge, the watermark that stays behind what the edge's buffer keeps."""
        self.records_out = 0
        self.watermark_ms, self.moved_ms = NO_WATERMARK, clock.now_ms()
        """The newest watermark that was to be sent, and since when it is the newest, by the clock."""
        self.is_idle = False
        self._filled: set[str] = set()
        """The side outputs that anything was emitted to in this attempt."""

    def is_available(self) -> bool:
        """Whether every channel takes more: one slow consumer holds the task back, as back-pressure should. The head
        of a loop does not.
        """
        return all(channel.is_available() for channel in self._bounded)

    @property
    def keeps_any(self) -> bool:
        """Whether there is anything that was emitted and not sent."""
        return any(edge.buffer.due_ms < inf for edge in self._edges)

    def emit(self, batch: AnyBatch, output_tag: str = "") -> None:
        """Send one batch along every edge of this output, or keep it until `flush`, `send_due` or the next control
        element. What goes to a side output that nobody reads goes nowhere, and neither does a batch without records.
        """
        if not len(batch):
            return
        self.records_out += len(batch)
        if output_tag:
            self._filled.add(output_tag)
        now_ms = self._clock.now_ms()
        for index, edge in enumerate(self._edges):
            if edge.output_tag == output_tag:
                edge.send(edge.buffer.add(copied(batch) if index in self._get_copies else batch, now_ms))
                if edge.buffer.due_ms == inf:
                    self._send_held(index)

    def send_due(self, now_ms: float) -> float | None:
        """Send what has been kept long enough; in how many ms there will be more of it, None: nothing is kept."""
        due_ms = inf
        for index, edge in enumerate(self._edges):
            if edge.buffer.due_ms <= now_ms:
                edge.send(edge.buffer.take())
                self._send_held(index)
            due_ms = min(due_ms, edge.buffer.due_ms)
        return None if due_ms == inf else due_ms - now_ms

    def flush(self) -> None:
        """Send all that is kept."""
        for index, edge in enumerate(self._edges):
            edge.send(edge.buffer.take())
            self._send_held(index)

    def send_watermark(self, element: Watermark | WatermarkStatus) -> None:
        """Send it down every channel, behind all that was emitted before it. Where a buffer keeps some of that a
        watermark waits, so that small batches still go together, and a newer one takes its place.
        """
        if isinstance(element, WatermarkStatus):
            self.is_idle = element.is_idle
            self.broadcast(element)
            return
        self.watermark_ms, self.moved_ms, self.is_idle = element.timestamp_ms, self._clock.now_ms(), False
        for index, edge in enumerate(self._edges):
            self._held[index] = element.timestamp_ms
            if edge.buffer.due_ms == inf:
                self._send_held(index)

    def _send_held(self, index: int) -> None:
        held, self._held[index] = self._held[index], NO_WATERMARK
        if held != NO_WATERMARK:
            for channel in self._edges[index].channels:
                channel.send(Watermark(held))

    def broadcast(self, control: Control) -> None:
        """Send a control element down every channel of every edge, behind all that was emitted before it."""
        self.flush()
        for channel in self.channels:
            channel.send(control)

    def send_mark(self, on_feedback: RoundMark) -> None:
        """Send it along the edges inside the loop, behind all that was emitted before it; what it says of records is
        for the head alone.
        """
        self.flush()
        for edge in self._edges:
            if edge.in_loop:
                mark = on_feedback if edge.feedback else RoundMark(on_feedback.number)
                for channel in edge.channels:
                    channel.send(mark)

    def say_misspelt(self) -> None:
        """At the end of the data: log it if a side output that is read has had nothing, and another one that is not
        read has.
        """
        read = {edge.output_tag for edge in self._edges if edge.output_tag}
        unread = self._filled - read - _SELDOM_READ
        for edge in self._edges:
            if edge.output_tag and edge.output_tag not in self._filled and unread:
                log.warning(
                    "nothing has come to the side output %r of operator %r, which is read; what went to %s nobody "
                    "reads: is it the same OutputTag?",
                    edge.output_tag,
                    edge.producer,
                    ", ".join(map(repr, sorted(unread))),
                )

    def close(self) -> None:
        """What is still kept goes nowhere: the attempt has not come to its end."""
        for edge in self._edges:
            edge.buffer.take()
        for channel in self.channels:
            channel.close()


def _apart(edges: Sequence[OutputEdge]) -> tuple[tuple[OutputEdge, ...], frozenset[int]]:
    """The edges, so that each reader in this process gets records of its own, and which of them are to get a copy of
    each batch. Buffers keep what was emitted: while they do, no reader may have the same to change it.
    """
    found, copies = list(edges), set[int]()
    for tag in {edge.output_tag for edge in edges}:
        readers = [index for index, edge in enumerate(edges) if edge.output_tag == tag]
        if sum(edges[index].local_share for index in readers) > len(readers) - 1:
            copies.update(readers[:-1])  # the last gets the batch itself
            continue
        for index in readers:  # none gets it itself but for readers elsewhere
            if edges[index].local_share == 1:
                copies.add(index)
            elif edges[index].local_share > 0:
                found[index] = replace(edges[index], copies_local=True)
    return tuple(found), frozenset(copies)
