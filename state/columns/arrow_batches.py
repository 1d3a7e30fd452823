"""Arrow record batches to bytes and back, for channels and for state.

A batch travels as an Arrow IPC stream of its own, schema and dictionaries included: some microseconds and a few hundred
bytes more than the bare batch, and nothing to remember on either side. It is copied once, into the payload; the
reader's columns lie in the payload itself.

Read data is checked as Arrow's full validation does it, for damaged offsets or indexes crash the process in which
they are used. For long columns of text Arrow takes ten times as long as NumPy, so what NumPy shows to be in order is
not handed to Arrow; anything else is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...messages import MalformedMessage

Payload: TypeAlias = "bytes | memoryview | pa.Buffer"

_MANY_ROWS = 4096
"""From this size on it is cheaper to find a payload's size first than to let it grow, and to read columns by NumPy."""


def encode_batch(batch: pa.RecordBatch) -> pa.Buffer:
    """The payload that carries the batch; it shares no memory with it."""
    if batch.num_rows < _MANY_ROWS:
        sink = pa.BufferOutputStream()
        _write(batch, sink)
        return sink.getvalue()
    measured = pa.MockOutputStream()
    _write(batch, measured)
    payload = pa.allocate_buffer(measured.size())
    with pa.FixedSizeBufferWriter(payload) as filled:
        _write(batch, filled)
    return payload


def decode_batch(payload: Payload) -> pa.RecordBatch:
    """The batch of a payload, of which it is a view. Raises MalformedMessage for anything else."""
    try:
        with pa.ipc.open_stream(_aligned(payload)) as reader:
            batch = reader.read_next_batch()
        _check_values(batch)
        _read_names(batch.schema)
    except (pa.ArrowException, OSError, ValueError, KeyError, StopIteration, MemoryError) as error:
        raise MalformedMessage(f"not an Arrow record batch: {error or type(error).__name__}") from error
    if batch.num_rows == 0:
        raise MalformedMessage("an empty batch")
    return batch


def _write(batch: pa.RecordBatch, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _aligned(payload: Payload) -> pa.Buffer:
    """The payload without a copy, if it starts where Arrow's columns may start."""
    buffer = pa.py_buffer(payload)
    return buffer if buffer.address % 8 == 0 else pa.py_buffer(buffer.to_pybytes())


def _read_names(fields: Iterable[pa.Field]) -> None:
    """Arrow validates values and not names: a name that is no text raises UnicodeDecodeError here, not in the
    operator.
    """
    for field in fields:
        field.name  # noqa: B018
        if field.type.num_fields:
            _read_names(field.type.field(index) for index in range(field.type.num_fields))


def _check_values(batch: pa.RecordBatch) -> None:
    if batch.num_rows < _MANY_ROWS:
        batch.validate(full=True)
        return
    batch.validate()
    for column in batch.columns:
        if not _is_in_order(column):
            column.validate(full=True)


def _is_in_order(column: pa.Array) -> bool:
    """Whether this quick look shows that full validation, after the light one, would find nothing."""
    kind = column.type
    if column.offset or not len(column):
        return False
    if pa.types.is_dictionary(kind):
        return _is_dictionary_in_order(column)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _is_text_in_order(column, np.int32)
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _is_text_in_order(column, np.int64)
    return False


def _is_text_in_order(column: pa.Array, offset_type: type[np.int32 | np.int64]) -> bool:
    """Offsets that never fall, within the data; and ASCII, any piece of which is UTF-8."""
    _, offsets_buffer, data_buffer = column.buffers()
    if offsets_buffer is None or data_buffer is None:
        return False
    offsets: npt.NDArray[np.integer] = np.frombuffer(offsets_buffer, offset_type, len(column) + 1)
    data = np.frombuffer(data_buffer, np.uint8)
    if offsets[0] < 0 or offsets[-1] > len(data) or not (offsets[1:] >= offsets[:-1]).all():
        return False
    used = data[offsets[0] : offsets[-1]]
    is_text = not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type))
    return not (is_text and len(used)) or bool(used.max() < 128)


def _is_dictionary_in_order(column: pa.DictionaryArray) -> bool:
    """Indexes within the dictionary. Those of nulls may be anything, so they must do so too to be proven here."""
    indices = column.indices
    width = indices.type.bit_width // 8
    (_, index_buffer), dictionary = indices.buffers(), column.dictionary
    if index_buffer is None:
        return False
    unsigned = np.frombuffer(index_buffer, f"u{width}", len(column))  # a negative index is a very large one
    return bool(unsigned.max() < len(dictionary)) and (not dictionary.offset) and _is_in_order(dictionary)
