"""TaskOutputs: everything a task emits, dealt out to its channels.

One OutputEdge per out-edge of the vertex; batches go through the edge's partitioner, control elements to every
channel. Nothing blocks: the task asks `is_available` before it takes input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .channels import OutputChannel
from .elements import Batch, Control
from .partitioner import Partitioner


@dataclass(frozen=True, slots=True)
class OutputEdge:
    """One out-edge: how it deals batches out, and a channel per consumer subtask."""

    partitioner: Partitioner
    channels: tuple[OutputChannel, ...]


class TaskOutputs:
    """All out-edges of one task. A task without out-edges (a sink) is always available."""

    def __init__(self, edges: Sequence[OutputEdge]) -> None:
        self._edges = tuple(edges)
        self._channels = tuple(channel for edge in self._edges for channel in edge.channels)
        self.records_out = 0

    def is_available(self) -> bool:
        """Whether every channel takes more: one slow consumer holds the task back, as back-pressure should."""
        return all(channel.is_available() for channel in self._channels)

    def emit(self, batch: Batch) -> None:
        """Send one batch along every edge."""
        self.records_out += len(batch)
        for edge in self._edges:
            for index, part in edge.partitioner.split(batch):
                edge.channels[index].send(part)

    def broadcast(self, control: Control) -> None:
        """Send a control element down every channel of every edge."""
        for channel in self._channels:
            channel.send(control)

    def close(self) -> None:
        for channel in self._channels:
            channel.close()
