"""Connection: two ends, each held by a process, and the links that they go over.

An end is CONNECTING (the one that was asked for) -> CONNECTED -> closed, lost, or gone with its process. What is sent
while it connects waits at the sender's, as a handshake must come first. Who decides what arrives is network.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .frame_text import FrameText
from .process import Event, Process

if TYPE_CHECKING:
    from .wires import Listener

Frame = Sequence[bytes]
Arrival = Callable[[float], None]
"""What happens when something arrives, at this time."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the ends of one kind of connections wait for each other."""

    connect_timeout_ms: float
    heartbeat_timeout_ms: float
    """An end that receives nothing for this time takes the other for lost."""
    tries_again: bool
    """Connecting: where nobody listens, until the timeout is over; else it fails at once."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    extra_latency_ms: float
    bytes_per_ms: float


class Link:
    """One direction between two hosts, whatever connections use it."""

    def __init__(self) -> None:
        self.slowdowns: list[Slowdown] = []
        self.blocks = 0
        """By how many faults it is blocked just now."""
        self.blocked_since_ms = 0.0
        self.held: list[tuple[End, Arrival, int]] = []
        """Sent while it was blocked: by which end, what happens when it arrives, and its size in bytes."""

    @property
    def extra_latency_ms(self) -> float:
        return sum(slowdown.extra_latency_ms for slowdown in self.slowdowns)

    def transfer_ms(self, size_bytes: int) -> float:
        """How long so much takes to go through."""
        if not self.slowdowns:
            return 0.0
        return size_bytes / min(slowdown.bytes_per_ms for slowdown in self.slowdowns)


class Carrier(Protocol):
    """The network, as an end sees it: it takes frames, and is informed when an end is no more."""

    def transmit(self, end: End, parts: Frame) -> None: ...

    def closed(self, end: End) -> None: ...

    def forget(self, end: End) -> None: ...


class End:
    """One end of one connection, as its process holds it."""

    def __init__(self, network: Carrier, process: Process, patience: Patience, listener: Listener | None) -> None:
        self.process = process
        self.patience = patience
        self.listener = listener
        self.other: End | None = None
        """None as long as nobody was found to connect to."""
        self.is_open = True
        self.is_connected = False
        self.waiting: list[Frame] = []
        """Sent while it connects."""
        self.has_settled = asyncio.Event()
        """It has connected, or never will."""
        self.deadline: Event | None = None
        """Of connecting."""
        self.connected_ms = 0.0
        self.free_ms = 0.0
        """When what was sent from here before has gone through the link."""
        self.arrives_ms = 0.0
        """When the last thing that was sent from here arrives."""
        self.lost_from_ms: float | None = None
        """A frame that would arrive at this end later than this does not."""
        self._network = network

    @property
    def peer(self) -> str:
        return self.other.process.name if self.other is not None else "nobody"

    # ---- for its process

    def send(self, parts: Frame) -> None:
        """Raises ProcessKilled when the process is dead."""
        self.process.operate()
        if self.is_open:
            frame = [bytes(part) for part in parts]
            if self.is_connected:
                self._network.transmit(self, frame)
            else:
                self.waiting.append(frame)

    def unsent(self) -> list[bytes]:
        """The first parts of the frames that never left, because the connection never came to be."""
        return [frame[0] for frame in self.waiting]

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._network.closed(self)

    # ---- on behalf of its process

    def connected(self) -> None:
        """The other end is there: what waited leaves."""
        if self.is_open and not self.is_connected:
            self.is_connected = True
            self.has_settled.set()
            self.connected_ms = self.process.world.now_ms
            if self.deadline is not None:
                self.deadline.cancel()
            waiting, self.waiting = self.waiting, []
            for frame in waiting:
                self._network.transmit(self, frame)

    def deliver(self, parts: Frame, when_ms: float) -> None:
        """A frame has come; the process may have been frozen when it did."""
        if self.is_open and self.listener is not None and (self.lost_from_ms is None or when_ms <= self.lost_from_ms):
            self.process.world.trace.add(self.process.name, "received", FrameText(self.peer, parts))
            self.listener.on_frame(parts)

    def lose(self, reason: str) -> None:
        """Nothing comes any more."""
        if self.is_open:
            self.is_open = False
            self.has_settled.set()
            self._network.forget(self)
            if self.deadline is not None:
                self.deadline.cancel()
            if self.listener is not None:
                self.listener.on_lost(reason)
