"""Formats: from the values of messages to records, many at a time, and back.

A reading format takes a list of values (bytes, none of them null) and gives as many records: a list, or a
`pa.RecordBatch`. "arrow" alone may give several rows for a message. A writing format takes a batch and gives a value
for each record. Who reads the messages, and what a null value means, is not at home here; Avro is in `avro.py`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.ipc
import pyarrow.json

from ....actors.flow.elements import Batch
from ....actors.flow.records import batch_of, conform, mapping_of, rows_of
from ....messages import dict_rows
from ..json_texts import json_text, json_texts

NAMES = ("json", "text", "bytes", "arrow")


class KafkaFormat(Protocol):
    """A format of your own, for values or for keys: either method may be missing where it is not needed."""

    def decode(self, values: list[bytes]) -> Batch:
        """As many records as values, in their order. Runs on the source's thread; raise what is wrong."""
        ...

    def encode(self, batch: Batch) -> list[bytes]:
        """As many values as records, in their order."""
        ...


Format: TypeAlias = "str | KafkaFormat | Callable[[list[bytes]], Batch]"
Decode: TypeAlias = Callable[[list[bytes]], Batch]
Encode: TypeAlias = Callable[[Batch], "Sequence[str | bytes | None] | pa.Array"]


def decoder(format: Any, schema: pa.Schema | None) -> Decode:
    """The reading side of a format. `schema`: the records are to be these columns. Raises ValueError."""
    if isinstance(format, str):
        _check_name(format)
        if format == "json" and schema is not None:
            return lambda values: _json_columns(values, schema)
        decode = {"json": _json, "text": _text, "bytes": lambda values: values, "arrow": _arrow}[format]
    else:
        decode = getattr(format, "decode", format)
        if not callable(decode):
            raise ValueError(f"format: wanted {_wanted()}, found {format!r:.80}")
    return decode if schema is None else lambda values: as_columns(decode(values), schema)


def encoder(format: Any) -> Encode:
    """The writing side. Raises ValueError."""
    if isinstance(format, str):
        _check_name(format)
        return {"json": json_values, "text": _texts, "bytes": _texts, "arrow": arrow_values}[format]
    if encode := getattr(format, "encode", None):
        return encode  # type: ignore[no-any-return]
    if callable(format):
        return lambda batch: [format(record) for record in records_of(batch)]
    raise ValueError(f"format: wanted {_wanted()}, found {format!r:.80}")


def as_columns(batch: Batch, schema: pa.Schema) -> pa.RecordBatch:
    """With these columns. Raises RecordMismatch."""
    return conform(batch if isinstance(batch, pa.RecordBatch) else batch_of(batch, schema), schema)


def records_of(batch: Batch) -> list[Any]:
    """One by one."""
    return rows_of(batch) if isinstance(batch, pa.RecordBatch) else batch


def _check_name(format: str) -> None:
    if format not in NAMES:
        raise ValueError(f"format: wanted {_wanted()}, found {format!r}")


def _wanted() -> str:
    return f"one of {', '.join(map(repr, NAMES))}, AvroFormat(...), or a function or object of your own"


# -- reading


def _json(values: list[bytes]) -> list[Any]:
    found = json.loads(b"[" + b",".join(values) + b"]")
    if len(found) != len(values):
        raise ValueError(f"wanted one JSON value in each message, found {len(found)} in {len(values)}")
    return dict_rows(found)


def _json_columns(values: list[bytes], schema: pa.Schema) -> pa.RecordBatch:
    data = b"\n".join(values)
    table = pa.json.read_json(
        pa.BufferReader(data),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pa.json.ParseOptions(
            explicit_schema=schema, newlines_in_values=True, unexpected_field_behavior="ignore"
        ),
    )
    if table.num_rows != len(values):
        raise ValueError(f"wanted one JSON object in each message, found {table.num_rows} in {len(values)}")
    return _one_batch(table.select(schema.names))


def _text(values: list[bytes]) -> list[str]:
    return [value.decode() for value in values]


def _arrow(values: list[bytes]) -> pa.RecordBatch:
    return _one_batch(pa.concat_tables([pa.ipc.open_stream(value).read_all() for value in values]))


def rows_in(value: bytes) -> int:
    """How many rows a message of format "arrow" has."""
    return int(pa.ipc.open_stream(value).read_all().num_rows)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    columns = [
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else pa.array([], column.type)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


# -- writing


def json_values(batch: Batch) -> Sequence[str] | pa.Array:
    """An object per record, as FileSink writes it in "jsonl"."""
    if isinstance(batch, pa.RecordBatch):
        return json_texts(batch)
    return [json_text(mapping_of(each)) for each in batch]


def _texts(batch: Batch) -> list[Any]:
    """Records that are bytes or text, or rows of one such column."""
    if isinstance(batch, pa.RecordBatch):
        if batch.num_columns != 1:
            raise ValueError(f"wanted records of one column, found {', '.join(batch.schema.names)}: choose a format")
        values: list[Any] = batch.column(0).to_pylist()
    else:
        values = batch
    for value in values:
        if not isinstance(value, str | bytes):
            raise ValueError(f"wanted bytes or text, found {value!r:.80}: choose a format, such as 'json'")
    return values


def arrow_values(batch: Batch) -> list[bytes]:
    """Each record a stream of Arrow IPC of its own: rows keep their keys and partitions."""
    columns = batch if isinstance(batch, pa.RecordBatch) else batch_of(batch)
    return [_stream(columns.slice(row, 1)) for row in range(columns.num_rows)]


def _stream(columns: pa.RecordBatch) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, columns.schema) as writer:
        writer.write_batch(columns)
    return sink.getvalue()
