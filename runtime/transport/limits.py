"""ChannelLimits: how much a data plane holds, per channel and altogether."""

from __future__ import annotations

from dataclasses import dataclass

from .payloads import MAX_PAYLOAD_BYTES

INITIAL_CREDIT = 16
MAX_EARLY_CHANNELS = 4096


@dataclass(frozen=True, slots=True)
class ChannelLimits:
    """`max_early_channels`: opened by one end, while the other end's task is not deployed."""

    initial_credit: int = INITIAL_CREDIT
    max_early_channels: int = MAX_EARLY_CHANNELS
    max_payload_bytes: int = MAX_PAYLOAD_BYTES

    def __post_init__(self) -> None:
        if self.initial_credit < 1:
            raise ValueError(f"a channel's initial credit is at least 1, not {self.initial_credit}")
        if self.max_payload_bytes > MAX_PAYLOAD_BYTES:
            raise ValueError(f"a payload takes at most {MAX_PAYLOAD_BYTES} bytes, not {self.max_payload_bytes}")
