"""Elements to frame contents and back. No state, and no pickle.

A batch travels as state/columns/batch_codec.py has it, in a frame whose kind is the batch's format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, assert_never

import pyarrow as pa

from ...actors.flow.elements import (
    AnyBatch,
    Batch,
    CancelCheckpointMarker,
    CheckpointBarrier,
    Control,
    Element,
    EndOfData,
    EndOfPartition,
    KnownRows,
    Numbered,
    RoundMark,
    TimedBatch,
    Watermark,
    WatermarkStatus,
)
from ...messages import CheckpointId, MalformedMessage, UnsupportedValue
from ...state.columns.arrow_batches import Payload
from ...state.columns.batch_codec import BatchFormat, decode, encode
from ...state.columns.numbered_rows import NamedRows, NumberedRows, decode_numbered, encode_numbered
from .frames import FrameKind, Header
from .record_sizes import are_huge

MAX_PAYLOAD_BYTES = 64 * 1024 * 1024
"""Larger batches are halved until they fit; a larger frame closes the connection it came from."""


class Content(NamedTuple):
    """A frame without its place in a channel."""

    kind: FrameKind
    first: int = 0
    second: int = 0
    payload: Payload | None = None


def encode_element(element: Element, max_bytes: int = MAX_PAYLOAD_BYTES) -> Iterator[Content]:
    """The frames of one element, in order: one, or several for a batch too large for one.

    Raises UnsupportedValue for a record that cannot travel, by its type or by its size.
    """
    if isinstance(element, (pa.RecordBatch, list, TimedBatch, NamedRows, NumberedRows)):
        return _encode_batch(element, max_bytes)
    assert not isinstance(element, KnownRows), "they have come out of a channel"
    content = _encode_control(element)
    if not all(-(2**63) <= number < 2**63 for number in content[1:3]):
        raise UnsupportedValue(f"{element} holds an integer of more than 64 bits")
    return iter((content,))


def decode_element(header: Header, payload: Payload | None) -> Element:
    """The element of a producer's frame. Raises MalformedMessage."""
    if (payload is not None) is not header.kind.is_batch:
        raise MalformedMessage(f"{header.kind.name} {'without' if payload is None else 'with'} a payload")
    read = _DECODE.get(header.kind)
    if read is None:
        raise MalformedMessage(f"{header.kind.name} is not an element")
    return read(header, payload)


def _encode_batch(batch: AnyBatch | Numbered, max_bytes: int) -> Iterator[Content]:
    """A batch that begins with a huge record is refused before it is encoded: where there is one, most are. Of others
    all records are looked at after one encoding. The bytes of a batch are given back before its halves are encoded.
    """
    records = batch.records if isinstance(batch, TimedBatch) else batch
    if isinstance(records, list) and are_huge(records[:1], max_bytes):
        raise _too_large(max_bytes)
    content = _content_of(batch)
    if _fits(content, max_bytes):
        yield content
        return
    del content
    if isinstance(records, list) and are_huge(records, max_bytes):
        raise _too_large(max_bytes)
    yield from _encode_halves(batch, max_bytes)


def _encode_halves(batch: AnyBatch | Numbered, max_bytes: int) -> Iterator[Content]:
    if len(batch) == 1:
        raise _too_large(max_bytes)
    for half in _halves(batch, len(batch) // 2):
        if _fits(content := _content_of(half), max_bytes):
            yield content
            continue
        del content
        yield from _encode_halves(half, max_bytes)


def _fits(content: Content, max_bytes: int) -> bool:
    return memoryview(content.payload or b"").nbytes <= max_bytes


def _too_large(max_bytes: int) -> UnsupportedValue:
    return UnsupportedValue(
        f"one record takes more than {max_bytes} bytes, the most that a channel carries: emit smaller records, or "
        "store the bulk elsewhere and emit where it is"
    )


def _content_of(batch: AnyBatch | Numbered) -> Content:
    if isinstance(batch, NamedRows):
        return Content(FrameKind.NAMED, batch.first, payload=encode(batch.records).payload)
    if isinstance(batch, NumberedRows):
        first, packed = encode_numbered(batch)
        return Content(FrameKind.NUMBERED, first, payload=packed)
    format, payload = encode(batch)
    return Content(FrameKind(format), payload=payload)


def _halves(batch: AnyBatch | Numbered, middle: int) -> tuple[AnyBatch | Numbered, AnyBatch | Numbered]:
    if isinstance(batch, NamedRows | NumberedRows):
        return batch.cut(0, middle), batch.cut(middle, len(batch))
    if isinstance(batch, TimedBatch):
        return batch.slice(0, middle), batch.slice(middle, len(batch))
    return batch[:middle], batch[middle:]


def _encode_control(control: Control) -> Content:
    match control:
        case CheckpointBarrier(checkpoint_id, timestamp_ms, stop, whole):
            kind = FrameKind.STOP_BARRIER if stop else FrameKind.WHOLE_BARRIER if whole else FrameKind.BARRIER
            return Content(kind, checkpoint_id, timestamp_ms)
        case CancelCheckpointMarker(checkpoint_id):
            return Content(FrameKind.CANCEL_MARKER, checkpoint_id)
        case Watermark(timestamp_ms):
            return Content(FrameKind.WATERMARK, timestamp_ms)
        case WatermarkStatus(is_idle):
            return Content(FrameKind.IDLE, int(is_idle))
        case RoundMark(number, records, wanting):
            assert not (records and wanting), "a tail sends records back, or asks for a round"
            kind = FrameKind.CRITERION_MARK if wanting else FrameKind.ROUND_MARK
            return Content(kind, number, records or wanting)
        case EndOfData():
            return Content(FrameKind.END_OF_DATA)
        case EndOfPartition():
            return Content(FrameKind.END_OF_PARTITION)
        case _:
            assert_never(control)


def _decode_batch(format: BatchFormat, _: Header, payload: Payload) -> Batch | TimedBatch:
    return decode(format, payload)


def _decode_named(header: Header, payload: Payload) -> NamedRows:
    records = decode(BatchFormat.ARROW, payload)
    if header.first < 0 or not isinstance(records, pa.RecordBatch):
        raise MalformedMessage(f"keys are named from {header.first} on")
    return NamedRows(header.first, records)


def _decode_barrier(header: Header, _: Payload | None, *, stop: bool = False, whole: bool = False) -> CheckpointBarrier:
    return CheckpointBarrier(CheckpointId(header.first), header.second, stop, whole)


_DECODE: dict[FrameKind, Callable[[Header, Any], Element]] = {
    **{FrameKind(each): partial(_decode_batch, each) for each in BatchFormat},
    FrameKind.NAMED: _decode_named,
    FrameKind.NUMBERED: lambda header, payload: decode_numbered(header.first, payload),
    FrameKind.BARRIER: _decode_barrier,
    FrameKind.STOP_BARRIER: partial(_decode_barrier, stop=True),
    FrameKind.WHOLE_BARRIER: partial(_decode_barrier, whole=True),
    FrameKind.CANCEL_MARKER: lambda header, _: CancelCheckpointMarker(CheckpointId(header.first)),
    FrameKind.WATERMARK: lambda header, _: Watermark(header.first),
    FrameKind.IDLE: lambda header, _: WatermarkStatus(bool(header.first)),
    FrameKind.ROUND_MARK: lambda header, _: RoundMark(header.first, header.second),
    FrameKind.CRITERION_MARK: lambda header, _: RoundMark(header.first, 0, header.second),
    FrameKind.END_OF_DATA: lambda header, _: EndOfData(),
    FrameKind.END_OF_PARTITION: lambda header, _: EndOfPartition(),
}
