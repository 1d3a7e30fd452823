"""Router: the ROUTER to which the consumers of this TaskManager's output channels connect.

Besides carrying the frames of `OutputChannels`, it notices when a consumer's TaskManager is gone.
"""

from __future__ import annotations

import time
from functools import partial

import zmq

from ...messages import ChannelId
from ..system.remote.strangers import Strangers
from .frames import FrameKind, Header, pack_header
from .limits import ChannelLimits
from .output_channels import OutputChannels
from .poller import Poller
from .remote_output import Consumer, Frame
from .sockets import WatchedSocket, events, messages
from .stats import DataPlaneStats

_PROBE_EVERY_S = 0.5
_PROBE_SOON_S = 0.02
"""After a disconnect was reported, which does not say whose: ZeroMQ forgets the route a moment later."""

_PING = (pack_header(Header(FrameKind.PING, ChannelId(0), 0)),)


class Router:
    """Owns the `channels` whose frames it carries. All of it runs on the poller's thread."""

    def __init__(self, watched: WatchedSocket, poller: Poller, stats: DataPlaneStats, limits: ChannelLimits) -> None:
        self._watched = watched
        self._poller = poller
        self._stats = stats
        self._strangers = Strangers("the data plane")
        self._next_probe = 0.0
        self.channels = OutputChannels(self._transmit, stats, limits)
        poller.register(watched.socket, self._receive)
        poller.register(watched.monitor, self._watch)

    def tick(self) -> None:
        """Find out whether consumers are gone: sending fails then, and only then."""
        now = time.monotonic()
        if now >= self._next_probe and (consumers := self.channels.consumers()):
            self._next_probe = now + _PROBE_EVERY_S
            for consumer in consumers:
                self._send(consumer, _PING)

    def close(self, reason: str) -> None:
        """Break the channels; what was sent before still leaves."""
        self.channels.close(reason)
        self._watched.close()

    def _transmit(self, consumer: Consumer, frame: Frame) -> None:
        """From any thread."""
        self._poller.submit(partial(self._send, consumer, frame))

    def _send(self, consumer: Consumer, frame: Frame) -> None:
        try:
            self._watched.socket.send_multipart((consumer, *frame), copy=len(frame) == 1)  # no payload is copied
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            self.channels.lose(consumer, "the connection from the consumer's TaskManager is lost")
        else:
            self._stats.frames_sent += 1

    def _receive(self) -> None:
        for consumer, *parts in messages(self._watched.socket):
            self.channels.take(consumer.bytes, [part.buffer for part in parts])

    def _watch(self) -> None:
        for event, connection in events(self._watched.monitor):
            self._strangers.on(event, connection)
            if event == zmq.EVENT_DISCONNECTED:
                self._stats.connections_ended += 1
                self._next_probe = min(self._next_probe, time.monotonic() + _PROBE_SOON_S)
