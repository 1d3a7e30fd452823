"""ChannelLimits: how much a data plane holds, per channel and altogether."""

from __future__ import annotations

from dataclasses import dataclass

from ...state.columns.arrow_batches import Payload
from .payloads import MAX_PAYLOAD_BYTES

WINDOW_BYTES = 1024 * 1024
"""What may be under way to a task, in all its channels together: a barrier waits behind it, and memory holds it."""
MIN_WINDOW_BYTES = 16 * 1024
"""Of each channel, however many there are."""
WINDOW_BATCHES = 4
"""A channel's window grows until this number of its batches fits, …"""
MAX_WINDOW_BYTES = 8 * 1024 * 1024
"""… but no further than this: larger batches travel few at a time, or one by one."""
FRAME_BYTES = 1024
"""The assumed memory of a frame beside its payload: it bounds how many small ones there are."""
MAX_EARLY_CHANNELS = 4096


def cost_of(payload: Payload) -> int:
    """How many bytes of a channel's window a batch uses up."""
    return FRAME_BYTES + memoryview(payload).nbytes


def grown(window_bytes: int, cost: int) -> int:
    """The window of a channel whose consumer has taken a batch of this cost. With less than some batches under way
    neither side would have anything to do while the other one has.
    """
    return max(window_bytes, min(WINDOW_BATCHES * cost, MAX_WINDOW_BYTES))


@dataclass(frozen=True, slots=True)
class ChannelLimits:
    """`window_bytes`: of a task, which its input channels share. `max_early_channels`: opened by one end, while the
    other end's task is not deployed.
    """

    window_bytes: int = WINDOW_BYTES
    max_early_channels: int = MAX_EARLY_CHANNELS
    max_payload_bytes: int = MAX_PAYLOAD_BYTES

    def __post_init__(self) -> None:
        if self.window_bytes < 1:
            raise ValueError(f"window_bytes: wanted at least 1, found {self.window_bytes}")
        if self.max_payload_bytes > MAX_PAYLOAD_BYTES:
            raise ValueError(f"max_payload_bytes: wanted at most {MAX_PAYLOAD_BYTES}, found {self.max_payload_bytes}")

    def window_of_one(self, channels: int) -> int:
        """Of each of the channels that a task reads from."""
        return min(self.window_bytes, max(self.window_bytes // channels, MIN_WINDOW_BYTES))
