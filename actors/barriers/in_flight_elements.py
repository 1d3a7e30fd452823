"""In-flight elements: a channel's part of an unaligned snapshot, batches and watermarks. To bytes and back.

Barriers are not, since the restored job makes new ones, and the end of data is not: its producer says so again.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, TypeAlias

import pyarrow as pa

from ...messages import MalformedMessage
from ...state import pack_batch, unpack_batch
from ..flow.elements import AnyBatch, KnownRows, TimedBatch, Watermark, WatermarkStatus

InFlight: TypeAlias = "AnyBatch | KnownRows | Watermark | WatermarkStatus"
IN_FLIGHT: Final = (pa.RecordBatch, list, TimedBatch, KnownRows, Watermark, WatermarkStatus)

_CONTROL = Struct("<Bq")
_WATERMARK, _STATUS = 1, 2
"""First bytes, as the formats of batches are, which begin with 20."""


def pack_in_flight(element: InFlight) -> bytes:
    """Raises UnsupportedValue for a record that cannot be written."""
    match element:
        case Watermark(timestamp_ms):
            return _CONTROL.pack(_WATERMARK, timestamp_ms)
        case WatermarkStatus(is_idle):
            return _CONTROL.pack(_STATUS, is_idle)
        case KnownRows():
            return pack_batch(element.expanded())  # a restored attempt has channels that know no keys
        case _:
            return pack_batch(element)


def is_batch(packed: bytes) -> bool:
    """Whether `pack_in_flight` has packed a batch."""
    return packed[:1] not in (bytes((_WATERMARK,)), bytes((_STATUS,)))


def unpack_in_flight(data: bytes) -> InFlight:
    """What `pack_in_flight` packed. Raises MalformedMessage."""
    if is_batch(data):
        return unpack_batch(data)
    if len(data) != _CONTROL.size:
        raise MalformedMessage(f"wanted a watermark of {_CONTROL.size} bytes, found {len(data)}")
    kind, value = _CONTROL.unpack(data)
    return Watermark(value) if kind == _WATERMARK else WatermarkStatus(bool(value))
