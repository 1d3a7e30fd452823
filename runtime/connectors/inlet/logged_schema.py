"""The schema with which records were sent, as the log and checkpoints keep it, and what becomes of them under another.

Packed records are values in the order of their columns: without that schema they cannot be read. How the log is
written and read is not at home here.
"""

from __future__ import annotations

import pyarrow as pa

from ....actors.flow.records import RecordMismatch, conform
from .sent_records import SentRecords, batch_to_emit, columns_to_bytes


def schema_to_bytes(schema: pa.Schema | None) -> bytes:
    """Empty for none."""
    return b"" if schema is None else schema.serialize().to_pybytes()


def schema_from_bytes(data: bytes) -> pa.Schema | None:
    return pa.ipc.read_schema(pa.py_buffer(data)) if data else None


def fitted(sent: SentRecords, then: pa.Schema | None, now: pa.Schema | None) -> SentRecords:
    """The same records, sent under the schema of `then`, for an inlet that has that of `now`. Columns are found by
    name and cast without loss; one that is new holds nulls if it may. Raises RecordMismatch.
    """
    if _is_same(then, now):
        return sent
    if then is None or now is None:
        raise RecordMismatch("records with a schema and without one are not converted into each other")
    batch = batch_to_emit([sent], then)
    assert isinstance(batch, pa.RecordBatch), "with a schema they are columns"
    for field in now:
        if field.nullable and field.name not in batch.schema.names:
            batch = batch.append_column(field, pa.nulls(batch.num_rows, field.type))
    return sent._replace(columns=True, data=columns_to_bytes(conform(batch, now)))


def _is_same(one: pa.Schema | None, other: pa.Schema | None) -> bool:
    return one is other or (one is not None and other is not None and bool(one.equals(other)))
