"""Wires: connections as a simulated process sees them, between endpoints that are mere names.

Everything happens on one thread. A frame arrives later, at a virtual time of its own and on behalf of the receiving
process, never from within `send`, `connect` or `close`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol


class Listener(Protocol):
    """One end's view of one connection: its callbacks."""

    def on_frame(self, parts: Sequence[bytes]) -> None:
        """A frame has come. Those of one direction come in the order in which they were sent, each once."""
        ...

    def on_lost(self, reason: str) -> None:
        """The connection is gone, and with it a suffix of what was under way. Called once, last of all."""
        ...


class Connection(Protocol):
    """One end of one connection: what it can do."""

    def send(self, parts: Sequence[bytes]) -> None:
        """Deliver a frame to the other end. After a loss it goes nowhere."""
        ...

    def close(self) -> None:
        """The other end is notified of a loss, after earlier frames; this end receives nothing more."""
        ...


class Network(Protocol):
    """What one process can do on the network."""

    def listen(self, endpoint: str, accept: Callable[[Connection], Listener]) -> None:
        """Take every connection made to `endpoint`, from now on."""
        ...

    def connect(self, endpoint: str, listener: Listener) -> Connection:
        """A new connection, at once; when `endpoint` cannot be reached, its loss is reported later."""
        ...
