"""What carries frames between actor systems. ZeroMQ does (zmq_transport.py); the simulator's network is another one.

A peer is named by its base address. Frames to one peer keep their order, and may be lost only as a suffix, which
`on_peer_lost` then tells: after it, the next `send` begins a new connection. All of it happens on the system's loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Receiver(Protocol):
    """Whom a transport tells."""

    def on_frame(self, peer: str, frame: bytes) -> None:
        """A frame came from somebody who calls itself `peer`. Must not raise, whatever the frame holds."""
        ...

    def on_peer_lost(self, peer: str, reason: str, unsent: Sequence[bytes], *, is_refused: bool = False) -> None:
        """The connection to `peer` broke or never came to be. `unsent` never left; what did may have been lost too.

        `is_refused`: the peer is there, and does not accept this system's key.
        """
        ...


class Transport(Protocol):
    @property
    def address(self) -> str:
        """The base address at which this system is reached; known once it is open."""
        ...

    async def open(self, receiver: Receiver) -> None: ...

    def send(self, peer: str, frame: bytes) -> bool:
        """Queue a frame, connecting if need be. Never blocks; False when too much is queued already."""
        ...

    async def close(self, flush_ms: float) -> None:
        """Give queued frames `flush_ms` to leave, then close everything."""
        ...
