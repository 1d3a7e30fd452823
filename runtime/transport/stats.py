"""What a data plane has counted since it started."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class DataPlaneStats:
    """Counters, written by the poller thread only."""

    frames_sent: int = 0
    frames_received: int = 0
    frames_dropped: int = 0
    """For a channel that is unknown here, closed or broken: late, mostly, and harmless."""
    frames_malformed: int = 0
    """Not understood at all."""
    connections_ended: int = 0
    """Of consumers, and of strangers without the key; ZeroMQ's monitor does not say which."""
    connections_lost: int = 0
    channels_given_up: int = 0
    """Opened by a consumer, but no producer was deployed before too many others were waiting."""
