"""Dealer: the line to one producing TaskManager, over a ZeroMQ socket of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import zmq

from .input_channels import ProducerConnection
from .poller import Poller
from .sockets import WatchedSocket, events, messages
from .stats import DataPlaneStats


class Dealer:
    """Made on any thread; `send` may be called from any too, and all else is done on the poller's.

    Nothing of ZeroMQ exists before the poller gets to it.
    """

    def __init__(
        self,
        connect: Callable[[str], WatchedSocket],
        poller: Poller,
        stats: DataPlaneStats,
        endpoint: str,
        connection: ProducerConnection,
    ) -> None:
        self._poller = poller
        self._stats = stats
        self._endpoint = endpoint
        self._connection = connection
        self._watched: WatchedSocket | None = None
        poller.submit(partial(self._open, connect))

    def send(self, frame: tuple[bytes], /) -> None:
        self._poller.submit(partial(self._send, frame))

    def close(self) -> None:
        """Frames that have come already are handed over."""
        watched, self._watched = self._watched, None
        if watched is not None:
            while self._receive(watched):
                pass
            for source in watched:
                self._poller.unregister(source)
            watched.close(0)

    def _open(self, connect: Callable[[str], WatchedSocket]) -> None:
        try:
            watched = self._watched = connect(self._endpoint)
        except (zmq.ZMQError, OSError, ValueError) as error:
            self._connection.on_lost(f"cannot connect: {error}")
            return
        self._poller.register(watched.socket, partial(self._receive, watched))
        self._poller.register(watched.monitor, partial(self._watch, watched))

    def _send(self, frame: tuple[bytes]) -> None:
        if self._watched is not None:
            self._watched.socket.send_multipart(frame)
            self._stats.frames_sent += 1

    def _watch(self, watched: WatchedSocket) -> None:
        for event, _ in events(watched.monitor):
            self.close()
            failed = event == zmq.EVENT_CLOSED
            self._connection.on_lost("nobody answers there" if failed else "the other end hung up or fell silent")
            return

    def _receive(self, watched: WatchedSocket) -> bool:
        """Hand over what has come; whether there was anything."""
        was_open, parts = self._watched is watched, None
        for parts in messages(watched.socket):
            self._connection.on_frame([part.buffer for part in parts])
            if was_open and self._watched is not watched:  # what came has ended it
                break
        return parts is not None
