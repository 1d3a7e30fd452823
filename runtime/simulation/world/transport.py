"""SimulatedTransport: what carries frames between actor systems, over the simulated network.

Unlike the real one it has no bound on the frames that wait for a connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from ...system.remote.transport import Receiver
from .network import End, ProcessNetwork

_PORT = 7000


def control_address(reached_as: str) -> str:
    return f"tcp://{reached_as}:{_PORT}"


class SimulatedTransport:
    """One-way connections, as ZmqTransport has them: one for each peer that something is sent to."""

    def __init__(self, network: ProcessNetwork) -> None:
        self._network = network
        self._address = control_address(network.process.reached_as)
        self._receiver: Receiver
        self._peers: dict[str, _Peer] = {}
        self._is_open = False

    @property
    def address(self) -> str:
        return self._address

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._network.listen(self._address, lambda _: _Incoming(receiver))
        self._is_open = True

    def send(self, peer: str, frame: bytes) -> bool:
        if not self._is_open:
            return False
        known = self._peers.get(peer)
        if known is None:
            known = self._peers[peer] = _Peer(peer, self)
            known.end = self._network.connect(peer, known)
        known.end.send((frame,))
        return True

    async def close(self, flush_ms: float) -> None:
        """Wait a little for connections that are being made, so that what was sent last gets out."""
        with suppress(TimeoutError):
            async with asyncio.timeout(flush_ms / 1000):
                for peer in list(self._peers.values()):
                    await peer.end.has_settled.wait()
        self._is_open = False
        for peer in self._peers.values():
            peer.end.close()
        self._peers.clear()

    def lost(self, peer: _Peer, reason: str) -> None:
        if self._peers.get(peer.address) is peer:
            del self._peers[peer.address]
            self._receiver.on_peer_lost(peer.address, reason, peer.end.unsent())


class _Peer:
    """The sending end of a connection."""

    end: End

    def __init__(self, address: str, owner: SimulatedTransport) -> None:
        self.address = address
        self._owner = owner

    def on_frame(self, parts: Sequence[bytes]) -> None:
        """Nobody answers on it."""

    def on_lost(self, reason: str) -> None:
        self._owner.lost(self, reason)


class _Incoming:
    """The receiving end of a connection."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def on_frame(self, parts: Sequence[bytes]) -> None:
        self._receiver.on_frame("a peer", parts[0])

    def on_lost(self, reason: str) -> None:
        """The sender notices by itself."""
