"""InFlightLog: what is in flight on the channels whose barrier an unaligned snapshot has overtaken.

Fed with each overtaken channel's elements, in order, from the first that the snapshot does not cover; a channel is
done when the barrier comes. States: logging -> complete, or given up when a barrier will not come any more. A value
machine that the InputGate owns; it reads no channel and writes no file.

Invariant: each element before the barrier of an overtaken channel is either in the snapshot's state or in this log,
never in both or in neither. So a log that cannot be completed is given up as a whole, and hands out nothing.

Batches are kept as bytes at once: operators may change records in place when they take them. Flink:
ChannelStateWriter, between start and finishInput.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

import pyarrow as pa

from ...messages import AbortReason, CheckpointId, MessageError
from ..flow.elements import (
    CancelCheckpointMarker,
    CheckpointBarrier,
    Element,
    EndOfData,
    EndOfPartition,
    KnownRows,
    NamedRows,
    NumberedRows,
    RoundMark,
    TimedBatch,
    Watermark,
    WatermarkStatus,
)
from .in_flight_elements import InFlight, pack_in_flight

MAX_IN_FLIGHT_BYTES = 256 * 1024 * 1024
"""A log that gets larger is given up. Credit bounds the batches in flight; this limit is for a barrier that does not
come, because its sender has not heard of the switch.
"""
MAX_IN_LOOP_BYTES = 16 * MAX_IN_FLIGHT_BYTES
"""The same where barriers come back round a loop, in which there may be any amount."""


class InFlightLog:
    """The log of one checkpoint."""

    def __init__(
        self, checkpoint_id: CheckpointId, overtaken: Iterable[int], *, max_bytes: int = MAX_IN_FLIGHT_BYTES
    ) -> None:
        self.checkpoint_id = checkpoint_id
        self.size_bytes = 0
        self.given_up: AbortReason | None = None
        self.failure: MessageError | pa.ArrowException | None = None
        """A record that cannot be written: the snapshot fails with it, though nothing more is logged."""
        self._max_bytes = max_bytes
        self._missing = set(overtaken)
        self._batches: dict[int, list[bytes]] = {}

    @property
    def missing(self) -> tuple[int, ...]:
        """The channels whose barrier has not come, in order."""
        return tuple(sorted(self._missing))

    @property
    def is_over(self) -> bool:
        """Complete or given up: there is no more to log."""
        return not self._missing

    @property
    def batches(self) -> Mapping[int, list[bytes]]:
        """By channel, packed, in order; channels that had nothing in flight are left out."""
        return self._batches

    def is_missing(self, channel: int) -> bool:
        return channel in self._missing

    def feed(self, channel: int, element: Element) -> None:
        """The channel's next element. Elements of channels that are done, or were never overtaken, do not count."""
        if channel not in self._missing:
            return
        match element:
            case pa.RecordBatch() | list() | TimedBatch() | KnownRows() | Watermark() | WatermarkStatus():
                self.add(channel, element)
            case CheckpointBarrier(checkpoint_id) if checkpoint_id == self.checkpoint_id:
                self._missing.discard(channel)
            case CheckpointBarrier(checkpoint_id) if checkpoint_id > self.checkpoint_id:
                self._give_up(AbortReason.SUBSUMED)
            case CancelCheckpointMarker(checkpoint_id) if checkpoint_id >= self.checkpoint_id:
                self._give_up(AbortReason.CANCELLED)
            case EndOfPartition():
                self._give_up(AbortReason.INPUT_ENDED)
            case CheckpointBarrier() | CancelCheckpointMarker():
                pass  # of an older checkpoint, which is over
            case EndOfData() | RoundMark():
                pass  # its producer says so again after a restore
            case NamedRows() | NumberedRows():
                raise AssertionError(f"the channel's end makes KnownRows of them, found {element}")
            case _:
                assert_never(element)

    def add(self, channel: int, element: InFlight) -> None:
        """What is known to be in flight, be its channel overtaken or not."""
        if self.failure is not None or self.given_up is not None:
            return
        try:
            packed = pack_in_flight(element)
        except (MessageError, pa.ArrowException) as error:
            self.failure = error
            self._missing.clear()
            return
        self._batches.setdefault(channel, []).append(packed)
        self.size_bytes += len(packed)
        if self.size_bytes > self._max_bytes:
            self._give_up(AbortReason.LIMIT_EXCEEDED)

    def _give_up(self, reason: AbortReason) -> None:
        self.given_up = reason
        self._missing.clear()
        self._batches.clear()
