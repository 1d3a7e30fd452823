"""SimulatedDataPlane: the real channels and frames of a data plane, over a simulated network instead of ZeroMQ.

Channels within one TaskManager are the same in-process deques, all others the same `OutputChannels` and `InputChannels`
that run in production; only the connections beneath them differ. No thread, no clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....actors.flow.channels import InputChannel, OutputChannel
from ....messages import ChannelDescriptor
from ...transport.in_process import LocalChannels, Wake
from ...transport.input_channels import InputChannels
from ...transport.limits import MAX_EARLY_CHANNELS, WINDOW_BYTES, ChannelLimits
from ...transport.output_channels import OutputChannels
from ...transport.payloads import MAX_PAYLOAD_BYTES
from ...transport.remote_output import Consumer, Frame
from ...transport.stats import DataPlaneStats
from .wires import Connection, Network


class SimulatedDataPlane:
    """One per simulated TaskManager; it listens at `endpoint` from the start. See actors/flow/channels.py, DataPlane.

    A channel's consumer polls once after opening; from then on `wake` tells when there is something new.
    """

    def __init__(
        self,
        endpoint: str,
        network: Network,
        *,
        window_bytes: int = WINDOW_BYTES,
        max_early_channels: int = MAX_EARLY_CHANNELS,
        max_payload_bytes: int = MAX_PAYLOAD_BYTES,
    ) -> None:
        limits = self._limits = ChannelLimits(window_bytes, max_early_channels, max_payload_bytes)
        stats = DataPlaneStats()
        self._endpoint = endpoint
        self._local = LocalChannels(window_bytes, max_early_channels)
        self._consumers = _Consumers(stats, limits)
        self._inputs = InputChannels(network.connect, stats)
        network.listen(endpoint, self._consumers.accept)

    @property
    def endpoint(self) -> str:
        """Where other TaskManagers connect to."""
        return self._endpoint

    def open_output(self, descriptor: ChannelDescriptor, wake: Wake) -> OutputChannel:
        """The producer's end; its consumer may be there already, or come later."""
        if descriptor.is_local:
            return self._local.open_output(descriptor.channel_id, wake)
        return self._consumers.channels.open(descriptor.channel_id, wake)

    def open_input(self, descriptor: ChannelDescriptor, wake: Wake, channels: int = 1) -> InputChannel:
        """The consumer's end; connects to the producer's TaskManager unless that is done already.

        `channels`: how many its task reads from; they share `window_bytes`.
        """
        window_bytes = self._limits.window_of_one(channels)
        if descriptor.is_local:
            return self._local.open_input(descriptor.channel_id, wake, window_bytes)
        return self._inputs.open(descriptor.channel_id, descriptor.producer_endpoint, wake, window_bytes)

    def close(self) -> None:
        """Break all channels to others, after what was sent before. Idempotent."""
        reason = "the data plane was closed"
        self._inputs.close(reason)
        self._consumers.close(reason)


class _Consumers:
    """The connections of consumers' TaskManagers, in the ROUTER's place, and the channels whose frames they carry."""

    def __init__(self, stats: DataPlaneStats, limits: ChannelLimits) -> None:
        self.channels = OutputChannels(self._send, stats, limits)
        self._connections: dict[Consumer, Connection] = {}
        self._accepted = 0
        self._over = False

    def accept(self, connection: Connection) -> _ConsumerListener:
        consumer = b"consumer %d" % self._accepted
        self._accepted += 1
        if self._over:
            connection.close()
        else:
            self._connections[consumer] = connection
        return _ConsumerListener(consumer, self)

    def lose(self, consumer: Consumer, reason: str) -> None:
        del self._connections[consumer]
        self.channels.lose(consumer, f"the connection from the consumer's TaskManager is lost: {reason}")

    def close(self, reason: str) -> None:
        self._over = True
        self.channels.close(reason)
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _send(self, consumer: Consumer, frame: Frame) -> None:
        """As a wire does, take a payload as it is now: its buffer may change or go once this returns."""
        connection = self._connections.get(consumer)
        if connection is not None:
            connection.send([bytes(part) for part in frame])


class _ConsumerListener:
    """What comes from one of the consumers' TaskManagers."""

    def __init__(self, consumer: Consumer, consumers: _Consumers) -> None:
        self._consumer = consumer
        self._consumers = consumers

    def on_frame(self, parts: Sequence[bytes]) -> None:
        self._consumers.channels.take(self._consumer, parts)

    def on_lost(self, reason: str) -> None:
        self._consumers.lose(self._consumer, reason)
