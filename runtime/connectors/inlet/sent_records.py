"""SentRecords: records of one sender as clients pack them, as the log holds them, and as the inlet emits them.

One holds either the records themselves, each packed as plain data, one behind the other, or one Arrow batch.
With a schema the former are lists of values in the order of its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgpack
import pyarrow as pa

from ....actors.flow.elements import Batch
from ....actors.flow.records import RecordMismatch
from ....messages import dict_rows, unpack_plain

_PACKER = msgpack.Packer()
_TYPES = [str, int, int, bool, bytes]


class SentRecords(NamedTuple):
    """Numbered one by one from `first` on; without any it is a question for the sender's last number."""

    sender: str
    first: int
    rows: int
    columns: bool
    data: bytes
    """An Arrow stream of one batch if `columns`; else the records as plain data, one behind the other."""

    @property
    def last(self) -> int:
        return self.first + self.rows - 1


def columns_to_bytes(batch: pa.RecordBatch) -> bytes:
    """One batch, with its schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def checked(payload: bytes, schema: pa.Schema | None) -> list[SentRecords]:
    """What a request brings. Raises RecordMismatch if an inlet with this schema could not emit it: it would fail every
    attempt once it is in the log. The values of packed records are as the client has checked them.
    """
    try:
        found = from_payload(payload)
    except (TypeError, ValueError, msgpack.UnpackException) as error:
        raise RecordMismatch(f"wanted what an inlet's sender makes, found {len(payload)} other bytes") from error
    for sent in found:
        if problem := _head_problem(sent) or (_columns_problem(sent, schema) if sent.columns else None):
            raise _mismatch(sent, problem)
    _check_packed([sent for sent in found if not sent.columns])
    return found


def _mismatch(sent: SentRecords, problem: str) -> RecordMismatch:
    return RecordMismatch(f"records of sender {sent.sender!r} from number {sent.first!r} on: {problem}")


def _head_problem(sent: SentRecords) -> str | None:
    is_typed = list(map(type, sent)) == _TYPES
    if not is_typed or sent.rows < 0 or sent.first < bool(sent.rows):
        return "wanted sender, first number, count, whether they are columns, and bytes"
    return None


def _check_packed(packed: Sequence[SentRecords]) -> None:
    """Each holds as many records as it says, and nothing else. One goes through them all: to make an Unpacker takes
    longer than to go through a record.
    """
    arrays = [_PACKER.pack_array_header(sent.rows) + sent.data for sent in packed]
    unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=max(1, sum(map(len, arrays))))
    unpacker.feed(b"".join(arrays))
    end = 0
    for sent, array in zip(packed, arrays, strict=True):
        end += len(array)
        try:
            unpacker.skip()
            is_right = unpacker.tell() == end
        except (ValueError, msgpack.UnpackException):
            is_right = False
        if not is_right:
            found = f"{len(sent.data)} bytes that are not that"
            raise _mismatch(sent, f"wanted {sent.rows} packed records, found {found}")


def _columns_problem(sent: SentRecords, schema: pa.Schema | None) -> str | None:
    try:
        batch = columns_of(sent)
        batch.validate(full=True)
    except (pa.ArrowException, OSError, StopIteration) as error:
        return f"wanted an Arrow stream of one batch, found {type(error).__name__}: {error}"
    if batch.num_rows != sent.rows:
        return f"wanted {sent.rows} rows, found a batch of {batch.num_rows}"
    if schema is not None and not batch.schema.equals(schema):
        return f"wanted the columns {columns_text(schema)}; found {columns_text(batch.schema)}"
    return None


def columns_of(sent: SentRecords) -> pa.RecordBatch:
    with pa.ipc.open_stream(sent.data) as reader:
        return reader.read_next_batch()


def records_of(packed: Sequence[SentRecords]) -> list[Any]:
    """As they were packed: with a schema, each a list of values."""
    rows = sum(sent.rows for sent in packed)
    found: list[Any] = unpack_plain(_PACKER.pack_array_header(rows) + b"".join(sent.data for sent in packed))
    return found


def without_first(sent: SentRecords, count: int) -> SentRecords:
    """The rest of them."""
    if sent.columns:
        data = columns_to_bytes(columns_of(sent).slice(count))
    else:
        unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=len(sent.data))
        unpacker.feed(sent.data)
        for _ in range(count):
            unpacker.skip()
        data = sent.data[unpacker.tell() :]
    return sent._replace(first=sent.first + count, rows=sent.rows - count, data=data)


def batch_to_emit(sent: Sequence[SentRecords], schema: pa.Schema | None) -> Batch:
    """Either several packed ones, or one Arrow batch."""
    if sent[0].columns:
        assert len(sent) == 1, "an Arrow batch is emitted by itself"
        return columns_of(sent[0])
    records = records_of(sent)
    if schema is None:
        return dict_rows(records)
    columns = zip(*records, strict=True)
    arrays = [pa.array(column, field.type) for field, column in zip(schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def columns_text(schema: pa.Schema | None) -> str:
    """For a user."""
    if schema is None:
        return "(no schema)"
    return ", ".join(f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in schema)


def to_payload(sent: Sequence[SentRecords]) -> bytes:
    """One entry of the log, or what one request brings."""
    found: bytes = msgpack.packb(sent)
    return found


def from_payload(payload: bytes) -> list[SentRecords]:
    return [SentRecords(*each) for each in msgpack.unpackb(payload)]
