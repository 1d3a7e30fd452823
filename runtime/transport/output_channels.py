"""OutputChannels: the producers' ends of one TaskManager's channels to others, whatever carries their frames.

It finds the channel of each frame, and holds channels whose consumer comes before their producer. It touches no socket
and no clock: frames leave through `send`, and the owner of the connections passes in frames and losses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Lock

from ...actors.errors import ChannelBroken
from ...actors.flow.channels import OutputChannel
from ...messages import ChannelId, MalformedMessage
from .frames import FrameKind, Header, pack_header, unpack_header
from .in_process import Wake
from .limits import ChannelLimits
from .remote_output import Consumer, Frame, RemoteOutputChannel
from .stats import DataPlaneStats

_log = logging.getLogger(__name__)


class OutputChannels:
    """`open` may be called from any thread; everything else on the one that owns the connections.

    `send` is called from any thread, under a lock: it neither blocks nor calls back. A frame to a consumer that is gone
    goes nowhere.
    """

    def __init__(self, send: Callable[[Consumer, Frame], None], stats: DataPlaneStats, limits: ChannelLimits) -> None:
        self._send = send
        self._stats = stats
        self._limits = limits
        self._lock = Lock()
        self._channels: dict[ChannelId, RemoteOutputChannel] = {}
        self._early: dict[ChannelId, RemoteOutputChannel] = {}  # no producer yet; oldest first
        self._consumers: set[Consumer] = set()
        self._over: str | None = None

    def open(self, channel_id: ChannelId, wake: Wake) -> OutputChannel:
        """The producer's end. Raises ChannelBroken after `close`, and ValueError when it is open already."""
        with self._lock:
            if self._over is not None:
                raise ChannelBroken(self._over)
            if channel_id in self._channels:
                raise ValueError(f"output channel {channel_id} is open already")
            channel = self._early.pop(channel_id, None) or self._new_channel(channel_id)
            self._channels[channel_id] = channel
        channel.attach(wake)
        return channel

    def take(self, consumer: Consumer, parts: Sequence[bytes | memoryview]) -> None:
        """A frame has come from a consumer. One that cannot be read may be what a channel waits for, so with it all of
        the consumer's channels end.
        """
        self._stats.frames_received += 1
        try:
            self._take(consumer, parts)
        except MalformedMessage as error:
            self._stats.frames_malformed += 1
            _log.warning("the channels to a consumer end: a frame of it cannot be read: %s", error)
            self._send(consumer, (pack_header(Header(FrameKind.NOT_UNDERSTOOD, ChannelId(0), 0)),))
            for channel in self._all_channels():
                channel.consumer_lost(consumer, f"the consumer's TaskManager sent a frame that cannot be read: {error}")

    def consumers(self) -> tuple[Consumer, ...]:
        """All that have been heard of and are not known to be lost."""
        return tuple(self._consumers)

    def lose(self, consumer: Consumer, reason: str) -> None:
        """The connection of a consumer is gone, and all its channels break. Idempotent."""
        if consumer not in self._consumers:
            return
        self._consumers.discard(consumer)
        self._stats.connections_lost += 1
        for channel in self._all_channels():
            channel.consumer_lost(consumer, reason)

    def close(self, reason: str) -> None:
        """Break every channel, and open none from now on."""
        with self._lock:
            self._over = reason
        for channel in self._all_channels():
            channel.consumer_lost(None, reason)

    def _take(self, consumer: Consumer, parts: Sequence[bytes | memoryview]) -> None:
        if len(parts) != 1:
            raise MalformedMessage(f"a consumer's frame has one part, found {len(parts)}")
        header = unpack_header(parts[0])
        self._consumers.add(consumer)
        channel = self._find(header)
        if channel is not None and channel.receive(consumer, header):
            return
        self._stats.frames_dropped += 1
        if header.kind is FrameKind.OPEN:  # it is another's, or given up: let this one not wait for ever
            self._send(consumer, (pack_header(Header(FrameKind.ABORT, header.channel_id, 0)),))

    def _find(self, header: Header) -> RemoteOutputChannel | None:
        with self._lock:
            channel = self._channels.get(header.channel_id) or self._early.get(header.channel_id)
            if channel is not None or header.kind is not FrameKind.OPEN:
                return channel
            channel = self._early[header.channel_id] = self._new_channel(header.channel_id)
            oldest = None
            if len(self._early) > self._limits.max_early_channels:
                oldest = self._early.pop(next(iter(self._early)))
        if oldest is not None:
            self._stats.channels_given_up += 1
            oldest.abort("no producer was deployed in time")
        return channel

    def _new_channel(self, channel_id: ChannelId) -> RemoteOutputChannel:
        return RemoteOutputChannel(channel_id, self._send, self._release, self._limits.max_payload_bytes)

    def _all_channels(self) -> list[RemoteOutputChannel]:
        with self._lock:
            return [*self._channels.values(), *self._early.values()]

    def _release(self, channel_id: ChannelId) -> None:
        with self._lock:
            self._channels.pop(channel_id, None)
