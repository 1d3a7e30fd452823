"""Batches to bytes and back, for channels and for state. No state of its own, and no pickle.

A record batch is written as `arrow_batches` has it. Records of one shape are written as columns, which is faster than
record by record: ten times for tuples and Rows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from ...messages import DictRow, MalformedMessage, Row, UnsupportedValue, pack_plain, refusal_of, row_type, unpack_plain
from .arrow_batches import Payload, decode_batch, encode_batch
from .timed_batch import TimedBatch

Batch: TypeAlias = "pa.RecordBatch | list[Any]"
"""As in actors/flow/elements.py: never empty."""


class BatchFormat(IntEnum):
    """How a batch's bytes are to be read. The numbers stand in frames and in files."""

    ARROW = 20  # an Arrow IPC stream of one record batch
    RECORDS = 21  # a list of plain records
    TUPLES = 22  # tuples of one length, as a list of columns
    ROWS = 23  # Rows of one type, as [names, columns]
    DICTS = 24  # dicts of the same keys in the same order, as [names, columns]
    DICT_ROWS = 25  # DictRows, the same
    MIXED_DICT_ROWS = 26  # DictRows of several shapes, as a list of dicts
    TIMED = 27  # a TimedBatch: see `_encode_timed`


class EncodedBatch(NamedTuple):
    format: BatchFormat
    payload: Payload


_TIMED_HEADER = struct.Struct("<BBxxIQ")
"""Format of the records, whether they have watermarks, length of the name of the time column in bytes (0: there is
none), number of records.
"""

_ALIGNMENT = 64
"""Arrow's: the records begin at a multiple of it, so that nothing of them is copied when they are read."""


def encode(batch: Batch | TimedBatch) -> EncodedBatch:
    """Raises UnsupportedValue for a record of a type that cannot be written."""
    if isinstance(batch, TimedBatch):
        return EncodedBatch(BatchFormat.TIMED, _encode_timed(batch))
    if isinstance(batch, pa.RecordBatch):
        return EncodedBatch(BatchFormat.ARROW, encode_batch(batch))
    try:
        return _encode_records(batch)
    except UnsupportedValue as error:
        raise UnsupportedValue(_blamed(batch) or str(error)) from None


def _blamed(records: list[Any]) -> str | None:
    """Which record cannot be written, and why."""
    for position, record in enumerate(records):
        if why := refusal_of(record):
            return f"record {position} of a batch of {len(records)}: {why}"
    return None


def decode(format: BatchFormat, payload: Payload) -> Batch | TimedBatch:
    """The batch of a payload, which may be a view of it. Raises MalformedMessage."""
    return _DECODE[format](payload)


def pack_batch(batch: Batch | TimedBatch) -> bytes:
    """A batch as one run of bytes, its format first. Raises UnsupportedValue."""
    format, payload = encode(batch)
    return b"".join((bytes((format,)), payload))


def unpack_batch(data: bytes) -> Batch | TimedBatch:
    """What `pack_batch` packed. Raises MalformedMessage."""
    try:
        format = BatchFormat(data[0])
    except (IndexError, ValueError):
        raise MalformedMessage(f"wanted a batch with its format first, found {bytes(data[:1])!r}") from None
    return decode(format, data[1:])


def _encode_timed(batch: TimedBatch) -> bytes:
    """Header, times, watermarks if there are any, name of the time column, padding, records."""
    format, payload = encode(batch.records)
    name = (batch.column or "").encode()
    times = batch.times.astype("<i8", copy=False).tobytes()
    watermarks = b"" if batch.watermarks is None else batch.watermarks.astype("<i8", copy=False).tobytes()
    head = _TIMED_HEADER.pack(format, batch.watermarks is not None, len(name), len(batch))
    padding = bytes(-(len(head) + len(times) + len(watermarks) + len(name)) % _ALIGNMENT)
    return b"".join((head, times, watermarks, name, padding, payload))


def _decode_timed(payload: Any) -> TimedBatch:
    view = memoryview(payload)
    try:
        kind, has_watermarks, name_length, count = _TIMED_HEADER.unpack_from(view)
        start, length = _TIMED_HEADER.size, 8 * count
        name_start = start + length * (1 + bool(has_watermarks))
        end = name_start + name_length
        times = np.frombuffer(view[start : start + length], "<i8").astype(np.int64, copy=False)
        watermarks = np.frombuffer(view[start + length : name_start], "<i8").astype(np.int64, copy=False)
        name = bytes(view[name_start:end]).decode()
        records = _DECODE[BatchFormat(kind)](pa.py_buffer(view[end + -end % _ALIGNMENT :]))
    except (struct.error, ValueError, LookupError) as error:
        raise MalformedMessage(f"wanted records with event times, found {bytes(view[:16])!r}: {error}") from None
    if isinstance(records, TimedBatch) or not len(records) == len(times) == count:
        raise MalformedMessage(f"wanted an event time for each record, found {len(times)} for {len(records)}")
    if has_watermarks and len(watermarks) != count:
        raise MalformedMessage(f"wanted a watermark for each of {count} records, found {len(watermarks)}")
    return TimedBatch(records, times, name or None, watermarks if has_watermarks else None)


def _encode_records(records: list[Any]) -> EncodedBatch:
    kinds = set(map(type, records))
    kind: Any = kinds.pop() if len(kinds) == 1 else object
    if kind is dict or kind is DictRow:
        return _encode_dicts(records, kind)
    if (kind is tuple or issubclass(kind, Row)) and all(records):
        try:
            columns = list(map(list, zip(*records, strict=True)))
        except ValueError:  # tuples of several lengths
            return EncodedBatch(BatchFormat.RECORDS, pack_plain(records))
        if kind is tuple:
            return EncodedBatch(BatchFormat.TUPLES, pack_plain(columns))
        return EncodedBatch(BatchFormat.ROWS, pack_plain([list(kind._columns), columns]))
    return EncodedBatch(BatchFormat.RECORDS, pack_plain(records))


def _encode_dicts(records: list[Any], kind: type) -> EncodedBatch:
    names = list(records[0])
    if names and set(map(type, names)) == {str} and list(chain.from_iterable(records)) == names * len(records):
        columns = list(map(list, zip(*map(dict.values, records), strict=True)))
        return EncodedBatch(_FORMAT_OF_DICTS[kind], pack_plain([names, columns]))
    if kind is dict:
        return EncodedBatch(BatchFormat.RECORDS, pack_plain(records))
    return EncodedBatch(BatchFormat.MIXED_DICT_ROWS, pack_plain(list(map(dict, records))))


def _decode_records(payload: Any) -> list[Any]:
    return _not_empty(unpack_plain(bytes(payload)))


def _decode_tuples(payload: Any) -> list[Any]:
    return list(_transpose(unpack_plain(bytes(payload))))


def _decode_rows(payload: Any) -> list[Any]:
    match unpack_plain(bytes(payload)):
        case [[*names], columns] if all(type(name) is str for name in names):
            records = _transpose(columns)
            if len(names) == len(columns):
                return list(map(row_type(tuple(names))._make, records))
    raise MalformedMessage("wanted the names and the columns of rows")


def _decode_dicts(kind: type[dict[Any, Any]], payload: Any) -> list[Any]:
    match unpack_plain(bytes(payload)):
        case [[*names], [[*first], *_] as columns] if first and _are_names(names, columns):
            records = [kind() for _ in first]
            for name, column in zip(names, columns, strict=True):
                for record, record[name] in zip(records, column, strict=True):  # noqa: B007 - the quickest way
                    pass
            return records
    raise MalformedMessage("wanted the names and the columns of dicts")


def _are_names(names: list[Any], columns: list[Any]) -> bool:
    """Whether there is a column of one length for each name."""
    if not (all(type(name) is str for name in names) and all(type(column) is list for column in columns)):
        return False
    return len(set(names)) == len(names) == len(columns) and len(set(map(len, columns))) == 1


def _decode_mixed_dict_rows(payload: Any) -> list[Any]:
    records = _decode_records(payload)
    if set(map(type, records)) != {dict}:
        raise MalformedMessage("wanted a list of dicts")
    return list(map(DictRow, records))


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


_DECODE: dict[BatchFormat, Callable[[Any], Batch | TimedBatch]] = {
    BatchFormat.ARROW: decode_batch,
    BatchFormat.RECORDS: _decode_records,
    BatchFormat.TUPLES: _decode_tuples,
    BatchFormat.ROWS: _decode_rows,
    BatchFormat.DICTS: partial(_decode_dicts, dict),
    BatchFormat.DICT_ROWS: partial(_decode_dicts, DictRow),
    BatchFormat.MIXED_DICT_ROWS: _decode_mixed_dict_rows,
    BatchFormat.TIMED: _decode_timed,
}

_FORMAT_OF_DICTS: dict[type, BatchFormat] = {dict: BatchFormat.DICTS, DictRow: BatchFormat.DICT_ROWS}
