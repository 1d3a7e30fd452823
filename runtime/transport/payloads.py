"""Elements to frame contents and back. No state, and no pickle.

A record batch travels as `arrow_payloads` has it. Records of one shape travel as columns, which is ten times faster
than record by record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, assert_never

import pyarrow as pa

from ...actors.elements import (
    Batch,
    CancelCheckpointMarker,
    CheckpointBarrier,
    Control,
    Element,
    EndOfData,
    EndOfPartition,
    Watermark,
)
from ...messages import CheckpointId, MalformedMessage, Row, UnsupportedValue, pack_plain, row_type, unpack_plain
from .arrow_payloads import Payload, decode_batch, encode_batch
from .frames import FrameKind, Header

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
    if isinstance(element, (pa.RecordBatch, list)):
        return _encode_batch(element, max_bytes)
    content = _encode_control(element)
    if not all(-(2**63) <= number < 2**63 for number in content[1:3]):
        raise UnsupportedValue(f"{element} holds an integer of more than 64 bits")
    return iter((content,))


def decode_element(header: Header, payload: Payload | None) -> Element:
    """The element of a producer's frame. Raises MalformedMessage."""
    if (payload is not None) is not header.kind.is_batch:
        raise MalformedMessage(f"{header.kind.name} {'without' if payload is None else 'with'} a payload")
    decode = _DECODE.get(header.kind)
    if decode is None:
        raise MalformedMessage(f"{header.kind.name} is not an element")
    return decode(header, payload)


def _encode_batch(batch: Batch, max_bytes: int) -> Iterator[Content]:
    if isinstance(batch, pa.RecordBatch):
        content = Content(FrameKind.ARROW, payload=encode_batch(batch))
    else:
        content = _encode_records(batch)
    if content.payload is None or memoryview(content.payload).nbytes <= max_bytes:
        yield content
    elif len(batch) == 1:
        raise UnsupportedValue(f"one record takes more than {max_bytes} bytes; a channel carries no more")
    else:
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            yield from _encode_batch(half, max_bytes)


def _encode_records(records: list[Any]) -> Content:
    kinds = set(map(type, records))
    kind: Any = kinds.pop() if len(kinds) == 1 else object
    if (kind is tuple or issubclass(kind, Row)) and all(records):
        try:
            columns = list(map(list, zip(*records, strict=True)))
        except ValueError:  # tuples of several lengths
            return Content(FrameKind.RECORDS, payload=pack_plain(records))
        if kind is tuple:
            return Content(FrameKind.TUPLES, payload=pack_plain(columns))
        return Content(FrameKind.ROWS, payload=pack_plain([list(kind._columns), columns]))
    return Content(FrameKind.RECORDS, payload=pack_plain(records))


def _encode_control(control: Control) -> Content:
    match control:
        case CheckpointBarrier(checkpoint_id, timestamp_ms):
            return Content(FrameKind.BARRIER, checkpoint_id, timestamp_ms)
        case CancelCheckpointMarker(checkpoint_id):
            return Content(FrameKind.CANCEL_MARKER, checkpoint_id)
        case Watermark(timestamp_ms):
            return Content(FrameKind.WATERMARK, timestamp_ms)
        case EndOfData():
            return Content(FrameKind.END_OF_DATA)
        case EndOfPartition():
            return Content(FrameKind.END_OF_PARTITION)
        case _:
            assert_never(control)


def _decode_arrow(_: Header, payload: Payload) -> pa.RecordBatch:
    return decode_batch(payload)


def _decode_records(_: Header, payload: Any) -> list[Any]:
    return _not_empty(unpack_plain(bytes(payload)))


def _decode_tuples(_: Header, payload: Any) -> list[Any]:
    return list(_transpose(unpack_plain(bytes(payload))))


def _decode_rows(_: Header, payload: Any) -> list[Any]:
    match unpack_plain(bytes(payload)):
        case [[*names], columns] if all(type(name) is str for name in names):
            records = _transpose(columns)
            if len(names) == len(columns):
                return list(map(row_type(tuple(names))._make, records))
    raise MalformedMessage("wanted the names and the columns of rows")


def _transpose(columns: Any) -> list[tuple[Any, ...]]:
    if not (isinstance(columns, list) and columns and all(isinstance(column, list) for column in columns)):
        raise MalformedMessage("wanted a list of columns")
    try:
        return _not_empty(list(zip(*columns, strict=True)))
    except ValueError:
        raise MalformedMessage("columns of unequal length") from None


def _not_empty(records: Any) -> list[Any]:
    if not (isinstance(records, list) and records):
        raise MalformedMessage("wanted a list of records that is not empty")
    return records


_DECODE: dict[FrameKind, Callable[[Header, Any], Element]] = {
    FrameKind.ARROW: _decode_arrow,
    FrameKind.RECORDS: _decode_records,
    FrameKind.TUPLES: _decode_tuples,
    FrameKind.ROWS: _decode_rows,
    FrameKind.BARRIER: lambda header, _: CheckpointBarrier(CheckpointId(header.first), header.second),
    FrameKind.CANCEL_MARKER: lambda header, _: CancelCheckpointMarker(CheckpointId(header.first)),
    FrameKind.WATERMARK: lambda header, _: Watermark(header.first),
    FrameKind.END_OF_DATA: lambda header, _: EndOfData(),
    FrameKind.END_OF_PARTITION: lambda header, _: EndOfPartition(),
}
