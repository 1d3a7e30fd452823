"""InputChannels: the consumers' ends of one TaskManager's channels from others, whatever carries their frames.

There is one connection to each TaskManager whose output channels are consumed here. It is never mended, for frames may
have been lost with it: it is replaced when the next channel is opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Protocol

from ...actors.errors import ChannelBroken
from ...actors.flow.channels import InputChannel
from ...messages import ChannelId, MalformedMessage
from .frames import FrameKind, unpack_header
from .in_process import Wake
from .remote_input import RemoteInputChannel
from .stats import DataPlaneStats

_log = logging.getLogger(__name__)


class Line(Protocol):
    """What carries the frames to one producing TaskManager."""

    def send(self, frame: tuple[bytes], /) -> None:
        """From any thread, under a lock: neither blocks nor calls back. After a loss it goes nowhere."""
        ...

    def close(self) -> None:
        """Hand over, perhaps, what has come already; then nothing more, a loss neither."""
        ...


Connect = Callable[[str, "ProducerConnection"], Line]
"""Makes a line to an endpoint, which tells the connection what comes, later and on one thread. It does not fail: where
nobody can be reached, the loss is reported later too."""


class InputChannels:
    """`open` may be called from any thread, `close` on the one that owns the lines."""

    def __init__(self, connect: Connect, stats: DataPlaneStats) -> None:
        self._connect = connect
        self._stats = stats
        self._lock = Lock()
        self._connections: dict[str, ProducerConnection] = {}
        self._over: str | None = None

    def open(self, channel_id: ChannelId, endpoint: str, wake: Wake, window_bytes: int) -> InputChannel:
        """The consumer's end. Raises ChannelBroken after `close`, and ValueError when it is open already."""
        with self._lock:
            if self._over is not None:
                raise ChannelBroken(self._over)
            connection = self._connections.get(endpoint) or self._new_connection(endpoint)
            if channel_id in connection.channels:
                raise ValueError(f"input channel {channel_id} is open already")
            channel = connection.add(channel_id, window_bytes, wake)
        channel.open()
        return channel

    def close(self, reason: str) -> None:
        """Break every channel, after what has come for it, and open none from now on."""
        with self._lock:
            self._over = reason
            connections = list(self._connections.values())
        for connection in connections:
            connection.close(reason)

    def _new_connection(self, endpoint: str) -> ProducerConnection:
        connection = ProducerConnection(endpoint, self._stats, self._forget)
        connection.line = self._connect(endpoint, connection)
        self._connections[endpoint] = connection
        return connection

    def _forget(self, connection: ProducerConnection) -> list[RemoteInputChannel]:
        """No channel is added to the connection from now on; those that it has are returned."""
        with self._lock:
            if self._connections.get(connection.endpoint) is connection:
                del self._connections[connection.endpoint]
            return list(connection.channels.values())


class ProducerConnection:
    """The channels that come from one producing TaskManager. The owner of the line calls the two `on_` methods."""

    line: Line

    def __init__(
        self, endpoint: str, stats: DataPlaneStats, forget: Callable[[ProducerConnection], list[RemoteInputChannel]]
    ) -> None:
        self.endpoint = endpoint
        self.channels: dict[ChannelId, RemoteInputChannel] = {}
        self._stats = stats
        self._forget = forget

    def add(self, channel_id: ChannelId, window_bytes: int, wake: Wake) -> RemoteInputChannel:
        channel = RemoteInputChannel(channel_id, window_bytes, wake, self.line.send, self._release)
        self.channels[channel_id] = channel
        return channel

    def on_frame(self, parts: Sequence[bytes | memoryview]) -> None:
        """A frame has come. One that cannot be read may be the last of its channel, so with it the connection ends."""
        self._stats.frames_received += 1
        try:
            self._take(parts)
        except MalformedMessage as error:
            self._stats.frames_malformed += 1
            _log.warning("the connection to %s ends: a frame cannot be read: %s", self.endpoint, error)
            self._give_up(f"the producer's TaskManager at {self.endpoint} sent a frame that cannot be read: {error}")

    def on_lost(self, reason: str) -> None:
        """Break the channels that have not ended, behind the frames that have come. Nothing is delivered after it."""
        self._stats.connections_lost += 1
        self._lose(f"the connection to the producer's TaskManager at {self.endpoint} is lost: {reason}")

    def close(self, reason: str) -> None:
        """The same, from this side."""
        self.line.close()
        self._lose(reason)

    def _give_up(self, reason: str) -> None:
        self._lose(reason)
        self.line.close()

    def _lose(self, reason: str) -> None:
        for channel in self._forget(self):
            channel.producer_lost(reason)

    def _take(self, parts: Sequence[bytes | memoryview]) -> None:
        if not 1 <= len(parts) <= 2:
            raise MalformedMessage(f"a producer's frame has one or two parts, found {len(parts)}")
        header = unpack_header(parts[0])
        if header.kind is FrameKind.PING:
            return
        if header.kind is FrameKind.NOT_UNDERSTOOD:
            self._give_up(f"the producer's TaskManager at {self.endpoint} could not read a frame of this one")
            return
        channel = self.channels.get(header.channel_id)
        payload = parts[1] if len(parts) == 2 else None
        if channel is None or not channel.deliver(header, payload):
            self._stats.frames_dropped += 1

    def _release(self, channel_id: ChannelId) -> None:
        self.channels.pop(channel_id, None)
