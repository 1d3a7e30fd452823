"""ZmqDataPlane: how the tasks of one TaskManager exchange batches with each other and with other TaskManagers.

Channels between tasks of one TaskManager are in-process deques. All others are multiplexed over one ZeroMQ connection
per ordered pair of TaskManagers, against credit. Tasks encode and decode on their own threads; the poller thread only
moves frames. Over tcp:// every socket speaks CURVE; ipc:// goes without, in a folder that only its owner can enter.
"""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import Self

import zmq

from ...actors.flow.channels import InputChannel, OutputChannel
from ...messages import ChannelDescriptor
from ..system.remote.curve import CurveKeys
from .dealer import Dealer
from .in_process import LocalChannels, Wake
from .input_channels import InputChannels
from .limits import MAX_EARLY_CHANNELS, WINDOW_BYTES, ChannelLimits
from .payloads import MAX_PAYLOAD_BYTES
from .poller import Poller
from .router import Router
from .sockets import Socket, SocketOptions
from .stats import DataPlaneStats
from .zap import ZapResponder

_TICK_MS = 100


class ZmqDataPlane:
    """Started once and closed once. Nothing of ZeroMQ exists before `start`, so it may be made before a fork.

    A channel's consumer polls once after opening; from then on `wake` tells when there is something new.
    """

    def __init__(
        self,
        bind: str = "tcp://127.0.0.1:0",
        curve: CurveKeys | None = None,
        *,
        window_bytes: int = WINDOW_BYTES,
        max_early_channels: int = MAX_EARLY_CHANNELS,
        max_payload_bytes: int = MAX_PAYLOAD_BYTES,
        heartbeat_timeout_ms: int = 10_000,
    ) -> None:
        self.stats = DataPlaneStats()
        self._bind = bind
        self._options = SocketOptions(curve, heartbeat_timeout_ms)
        self._limits = ChannelLimits(window_bytes, max_early_channels, max_payload_bytes)
        self._local = LocalChannels(window_bytes, max_early_channels)
        self._remote: _Remote | None = None

    def start(self) -> None:
        """Bind and start the poller thread. Raises ZMQError when the endpoint cannot be bound."""
        if self._remote is not None:
            raise RuntimeError("the data plane has been started already")
        self._remote = _Remote(self._bind, self._options, self._limits, self.stats)

    def close(self) -> None:
        """Break all channels, let what was sent before leave, and end the thread. Idempotent."""
        if self._remote is not None:
            self._remote.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def endpoint(self) -> str:
        """Where other TaskManagers connect to; known once started."""
        return self._started().endpoint

    def open_output(self, descriptor: ChannelDescriptor, wake: Wake) -> OutputChannel:
        """The producer's end; its consumer may be there already, or come later."""
        remote = self._started()
        if descriptor.is_local:
            return self._local.open_output(descriptor.channel_id, wake)
        return remote.outputs.open(descriptor.channel_id, wake)

    def open_input(self, descriptor: ChannelDescriptor, wake: Wake, channels: int = 1) -> InputChannel:
        """The consumer's end; connects to the producer's TaskManager unless that is done already.

        `channels`: how many its task reads from; they share `window_bytes`.
        """
        window_bytes = self._limits.window_of_one(channels)
        remote = self._started()
        if descriptor.is_local:
            return self._local.open_input(descriptor.channel_id, wake, window_bytes)
        self._options.check(descriptor.producer_endpoint)
        return remote.inputs.open(descriptor.channel_id, descriptor.producer_endpoint, wake, window_bytes)

    def _started(self) -> _Remote:
        if self._remote is None:
            raise RuntimeError("the data plane has not been started")
        return self._remote


class _Remote:
    """What exists while the data plane runs: a ZeroMQ context, the poller, and the sockets that it owns."""

    def __init__(self, bind: str, options: SocketOptions, limits: ChannelLimits, stats: DataPlaneStats) -> None:
        self._context: zmq.Context[Socket] = zmq.Context()
        self._poller = Poller("data-plane", self._tick, _TICK_MS, self._finish)
        try:
            self._zap = None if options.keys is None else ZapResponder(self._context, options.keys)
            watched = options.listen(self._context, bind)
        except BaseException:
            self._poller.discard()
            self._context.destroy(linger=0)
            raise
        self.endpoint = str(watched.socket.get_string(zmq.LAST_ENDPOINT))
        self._router = Router(watched, self._poller, stats, limits)
        self.outputs = self._router.channels
        dealer = partial(Dealer, partial(options.connect, self._context), self._poller, stats)
        self.inputs = InputChannels(dealer, stats)
        if self._zap is not None:
            self._poller.register(self._zap.socket, self._zap.answer)
        self._poller.start()

    def close(self) -> None:
        self._poller.stop()
        self._context.term()

    def _tick(self) -> None:
        self._router.tick()

    def _finish(self, reason: str) -> None:
        self.inputs.close(reason)
        self._router.close(reason)
        if self._zap is not None:
            self._zap.socket.close()
