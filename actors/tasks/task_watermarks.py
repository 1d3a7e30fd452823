"""TaskWatermarks: how far event time has come in one task, by what its input channels have said.

Keeps the newest watermark of each channel and the least of all: before that time no record comes any more, on any
channel. A channel whose data has ended holds nothing back: its watermark is infinite. One that has said nothing yet
holds everything back.

It only keeps: nothing is emitted to the tasks behind this one, no operator is called and no timer fires, since no
operator reads event time yet. Watermarks are no state: after a restore each channel says again how far it is. Flink:
StatusWatermarkValve, without idle channels.
"""

from __future__ import annotations

import math
from typing import Final

UNKNOWN: Final = -math.inf
"""Before the first watermark."""
ENDED: Final = math.inf
"""No record comes any more at all."""


class TaskWatermarks:
    """One attempt's, with one watermark for each of its input channels; a source has none, and no event time here."""

    def __init__(self, channels: int) -> None:
        self._by_channel: list[float] = [UNKNOWN] * channels
        self.current_ms: float = UNKNOWN
        """The least of all channels. It never goes back."""

    def receive(self, channel: int, timestamp_ms: float) -> bool:
        """A channel says how far it is; returns whether the task is further than before.

        What is not newer than the channel's last one changes nothing: event time never goes back.
        """
        if timestamp_ms <= self._by_channel[channel]:
            return False
        self._by_channel[channel] = timestamp_ms
        before, self.current_ms = self.current_ms, min(self._by_channel)
        return self.current_ms > before

    def end(self, channel: int) -> bool:
        """The channel's data has ended; returns whether the task is further than before."""
        return self.receive(channel, ENDED)
