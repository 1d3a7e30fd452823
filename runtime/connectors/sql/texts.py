"""Texts of PostgreSQL as Arrow columns, and Arrow batches as its CSV: what COPY and logical replication carry.

Sessions print dates as ISO, times in UTC and bytes in hex (`Database` sees to it). An empty field is NULL and "" is an
empty text, in both directions.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv

from ....actors.flow.records import values_of
from ....messages.shown import columns_shown
from ..json_texts import with_text_keys
from .errors import StatementFailed

_MIN_BLOCK = 1 << 20


def batch_of_csv(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Rows as COPY prints them (FORMAT csv), which begin and end with a row. Raises StatementFailed."""
    if not data:
        return pa.RecordBatch.from_pylist([], schema=schema)
    read_as = {field.name: pa.string() if _is_bytes(field.type) else field.type for field in schema}
    try:
        table = csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(
                column_names=schema.names, use_threads=False, block_size=max(len(data) + 1, _MIN_BLOCK)
            ),
            parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types=read_as,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["t"],
                false_values=["f"],
            ),
        ).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise StatementFailed(f"the rows cannot be read as {columns_shown(schema)}: {error}") from error
    arrays = [
        _bytes_of(column.to_pylist()) if _is_bytes(field.type) else _one_chunk(column, field.type)
        for field, column in zip(schema, table.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def column_of_texts(texts: Sequence[str | None], field: pa.Field) -> pa.Array:
    """One column, each value as PostgreSQL prints it. Raises StatementFailed."""
    kind = field.type
    try:
        if pa.types.is_string(kind):
            return pa.array(texts, kind)
        if pa.types.is_boolean(kind):
            return pa.array([None if text is None else text == "t" for text in texts], kind)
        if _is_bytes(kind):
            return _bytes_of(texts)
        if pa.types.is_time(kind):
            parse = datetime.time.fromisoformat
            return pa.array([None if text is None else parse(text) for text in texts], kind)
        return pa.array(texts, pa.string()).cast(kind)
    except (ValueError, TypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise StatementFailed(f"column {field.name!r} cannot be read as {kind}: {error}") from error


def csv_of_batch(batch: pa.RecordBatch) -> memoryview:
    """Rows for COPY ... FROM STDIN (FORMAT csv)."""
    arrays = [_writable(column) for column in batch.columns]
    sink = pa.BufferOutputStream()
    csv.write_csv(
        pa.RecordBatch.from_arrays(arrays, names=batch.schema.names), sink, csv.WriteOptions(include_header=False)
    )
    return memoryview(sink.getvalue())


def _writable(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column.dictionary_decode()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.array([None if value is None else f"\\x{value.hex()}" for value in column.to_pylist()], pa.string())
    if pa.types.is_nested(kind):
        return pa.array(list(map(json_text, values_of(column))), pa.string())
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    return column


def json_text(value: Any) -> str | None:
    """A list or dict as a json column takes it."""
    return None if value is None else json.dumps(with_text_keys(value), default=str)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind))


def _bytes_of(texts: Sequence[str | None]) -> pa.Array:
    return pa.array([None if text is None else bytes.fromhex(text[2:]) for text in texts], pa.binary())


def _one_chunk(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], kind)
