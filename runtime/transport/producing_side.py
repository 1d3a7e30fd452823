"""ProducingSide: the ROUTER to which the consumers of this TaskManager's output channels connect.

It finds the channel of each frame, holds channels whose consumer comes before their producer, and notices when a
consumer's TaskManager is gone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from threading import Lock

import zmq

from ...actors.channels import OutputChannel
from ...actors.errors import ChannelBroken
from ...messages import ChannelId, MalformedMessage
from .frames import FrameKind, Header, pack_header, unpack_header
from .in_process import Wake
from .poller import Poller
from .remote_output import Consumer, Frame, RemoteOutputChannel
from .sockets import WatchedSocket, events, messages
from .stats import DataPlaneStats

_log = logging.getLogger(__name__)

_PROBE_EVERY_S = 0.5
_PROBE_SOON_S = 0.02
"""After a disconnect was reported, which does not say whose: ZeroMQ forgets the route a moment later."""


class ProducingSide:
    """`open` may be called from any thread; everything else runs on the poller's."""

    def __init__(
        self,
        router: WatchedSocket,
        poller: Poller,
        stats: DataPlaneStats,
        max_early_channels: int,
        max_payload_bytes: int,
    ) -> None:
        self._router = router
        self._poller = poller
        self._stats = stats
        self._max_early_channels = max_early_channels
        self._max_payload_bytes = max_payload_bytes
        self._lock = Lock()
        self._channels: dict[ChannelId, RemoteOutputChannel] = {}
        self._early: dict[ChannelId, RemoteOutputChannel] = {}  # no producer yet; oldest first
        self._consumers: set[Consumer] = set()
        self._admitted: set[int] = set()  # connections by descriptor, which is how the monitor names them
        self._next_probe = 0.0
        self._over: str | None = None
        poller.register(router.socket, self._receive)
        poller.register(router.monitor, self._watch)

    def open(self, channel_id: ChannelId, wake: Wake) -> OutputChannel:
        with self._lock:
            if self._over is not None:
                raise ChannelBroken(self._over)
            if channel_id in self._channels:
                raise ValueError(f"output channel {channel_id} is open already")
            channel = self._early.pop(channel_id, None) or self._new_channel(channel_id)
            self._channels[channel_id] = channel
        channel.attach(wake)
        return channel

    def tick(self) -> None:
        """Find out whether consumers are gone: sending fails then, and only then."""
        now = time.monotonic()
        if self._consumers and now >= self._next_probe:
            self._next_probe = now + _PROBE_EVERY_S
            ping = (pack_header(Header(FrameKind.PING, ChannelId(0), 0)),)
            for consumer in tuple(self._consumers):
                self._send(consumer, ping)

    def close(self, reason: str) -> None:
        with self._lock:
            self._over = reason
        for channel in self._all_channels():
            channel.consumer_lost(None, reason)
        self._router.close()

    def _new_channel(self, channel_id: ChannelId) -> RemoteOutputChannel:
        return RemoteOutputChannel(channel_id, self._transmit, self._release, self._max_payload_bytes)

    def _all_channels(self) -> list[RemoteOutputChannel]:
        with self._lock:
            return [*self._channels.values(), *self._early.values()]

    def _transmit(self, consumer: Consumer, frame: Frame) -> None:
        self._poller.submit(partial(self._send, consumer, frame))

    def _release(self, channel_id: ChannelId) -> None:
        with self._lock:
            self._channels.pop(channel_id, None)

    def _send(self, consumer: Consumer, frame: Frame) -> None:
        try:
            self._router.socket.send_multipart((consumer, *frame))
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            self._lose(consumer)
        else:
            self._stats.frames_sent += 1

    def _lose(self, consumer: Consumer) -> None:
        if consumer not in self._consumers:
            return
        self._consumers.discard(consumer)
        self._stats.connections_lost += 1
        for channel in self._all_channels():
            channel.consumer_lost(consumer, "the connection from the consumer's TaskManager is lost")

    def _receive(self) -> None:
        for consumer, *parts in messages(self._router.socket):
            self._stats.frames_received += 1
            try:
                self._take(consumer.bytes, parts)
            except MalformedMessage as error:
                self._stats.frames_malformed += 1
                _log.warning("a frame of a consumer was dropped: %s", error)

    def _take(self, consumer: Consumer, parts: Sequence[zmq.Frame]) -> None:
        if len(parts) != 1:
            raise MalformedMessage(f"a consumer's frame has one part, found {len(parts)}")
        header = unpack_header(parts[0].buffer)
        self._consumers.add(consumer)
        channel = self._find(header)
        if channel is not None and channel.receive(consumer, header):
            return
        self._stats.frames_dropped += 1
        if header.kind is FrameKind.OPEN:  # it is another's, or given up: let this one not wait for ever
            self._transmit(consumer, (pack_header(Header(FrameKind.ABORT, header.channel_id, 0)),))

    def _find(self, header: Header) -> RemoteOutputChannel | None:
        with self._lock:
            channel = self._channels.get(header.channel_id) or self._early.get(header.channel_id)
            if channel is None and header.kind is FrameKind.OPEN:
                channel = self._early[header.channel_id] = self._new_channel(header.channel_id)
        self._give_up_the_oldest()
        return channel

    def _give_up_the_oldest(self) -> None:
        with self._lock:
            if len(self._early) <= self._max_early_channels:
                return
            channel = self._early.pop(next(iter(self._early)))
        self._stats.channels_given_up += 1
        channel.abort("no producer was deployed in time")

    def _watch(self) -> None:
        for event, connection in events(self._router.monitor):
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._admitted.add(connection)
            elif connection in self._admitted:
                self._admitted.discard(connection)
                self._next_probe = min(self._next_probe, time.monotonic() + _PROBE_SOON_S)
            else:
                self._stats.connections_refused += 1
