"""ConsumingSide: connections to the TaskManagers whose output channels are consumed here, one each.

A connection is never mended, for frames may have been lost with it: it is replaced when the next channel is opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock

import zmq

from ...actors.channels import InputChannel
from ...actors.errors import ChannelBroken
from ...messages import ChannelId, MalformedMessage
from .frames import FrameKind, unpack_header
from .in_process import Wake
from .poller import Poller
from .remote_input import RemoteInputChannel
from .sockets import Socket, WatchedSocket, events, messages
from .stats import DataPlaneStats

_log = logging.getLogger(__name__)


class ConsumingSide:
    """`open` may be called from any thread; everything else runs on the poller's."""

    def __init__(
        self, connect: Callable[[str], WatchedSocket], poller: Poller, stats: DataPlaneStats, initial_credit: int
    ) -> None:
        self._connect = connect
        self._poller = poller
        self._stats = stats
        self._initial_credit = initial_credit
        self._lock = Lock()
        self._connections: dict[str, _Connection] = {}
        self._over: str | None = None

    def open(self, channel_id: ChannelId, endpoint: str, wake: Wake) -> InputChannel:
        with self._lock:
            if self._over is not None:
                raise ChannelBroken(self._over)
            connection = self._connections.get(endpoint) or self._new_connection(endpoint)
            if channel_id in connection.channels:
                raise ValueError(f"input channel {channel_id} is open already")
            channel = RemoteInputChannel(
                channel_id, self._initial_credit, wake, connection.transmit, connection.release
            )
            connection.channels[channel_id] = channel
        channel.open()
        return channel

    def close(self, reason: str) -> None:
        with self._lock:
            self._over = reason
        for connection in list(self._connections.values()):
            connection.lose(reason)

    def _new_connection(self, endpoint: str) -> _Connection:
        connection = self._connections[endpoint] = _Connection(endpoint, self._poller, self._stats, self._forget)
        self._poller.submit(partial(connection.open, self._connect))
        return connection

    def _forget(self, connection: _Connection) -> list[RemoteInputChannel]:
        """No channel is added to the connection from now on; those that it has are returned."""
        with self._lock:
            del self._connections[connection.endpoint]
            return list(connection.channels.values())


class _Connection:
    """A DEALER to one producing TaskManager, and the channels on it."""

    def __init__(
        self,
        endpoint: str,
        poller: Poller,
        stats: DataPlaneStats,
        forget: Callable[[_Connection], list[RemoteInputChannel]],
    ) -> None:
        self.endpoint = endpoint
        self.channels: dict[ChannelId, RemoteInputChannel] = {}
        self._poller = poller
        self._stats = stats
        self._forget = forget
        self._dealer: WatchedSocket | None = None

    def open(self, connect: Callable[[str], WatchedSocket]) -> None:
        try:
            dealer = self._dealer = connect(self.endpoint)
        except (zmq.ZMQError, OSError, ValueError) as error:
            self.lose(f"cannot connect to {self.endpoint}: {error}")
            return
        self._poller.register(dealer.socket, partial(self._receive, dealer.socket))
        self._poller.register(dealer.monitor, partial(self._watch, dealer.monitor))

    def transmit(self, frame: tuple[bytes]) -> None:
        self._poller.submit(partial(self._send, frame))

    def release(self, channel_id: ChannelId) -> None:
        self.channels.pop(channel_id, None)

    def lose(self, reason: str) -> None:
        """Break the channels that have not ended, after what has arrived for them."""
        dealer, self._dealer = self._dealer, None
        if dealer is not None:
            while self._receive(dealer.socket):
                pass
            for source in dealer:
                self._poller.unregister(source)
            dealer.close(0)
        for channel in self._forget(self):
            channel.producer_lost(reason)

    def _send(self, frame: tuple[bytes]) -> None:
        if self._dealer is not None:
            self._dealer.socket.send_multipart(frame)
            self._stats.frames_sent += 1

    def _watch(self, monitor: Socket) -> None:
        for _ in events(monitor):
            self._stats.connections_lost += 1
            self.lose(f"the connection to the producer's TaskManager at {self.endpoint} is lost")
            return

    def _receive(self, socket: Socket) -> bool:
        """Deliver what has come; whether there was anything."""
        before = self._stats.frames_received
        for parts in messages(socket):
            self._stats.frames_received += 1
            try:
                self._take(parts)
            except MalformedMessage as error:
                self._stats.frames_malformed += 1
                _log.warning("a frame from %s was dropped: %s", self.endpoint, error)
        return self._stats.frames_received > before

    def _take(self, parts: Sequence[zmq.Frame]) -> None:
        if len(parts) > 2:
            raise MalformedMessage(f"a producer's frame has one or two parts, found {len(parts)}")
        header = unpack_header(parts[0].buffer)
        if header.kind is FrameKind.PING:
            return
        channel = self.channels.get(header.channel_id)
        payload = parts[1].buffer if len(parts) == 2 else None
        if channel is None or not channel.deliver(header, payload):
            self._stats.frames_dropped += 1
