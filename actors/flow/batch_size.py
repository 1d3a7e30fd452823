"""About how much memory a batch takes: for bounds, where nothing has encoded it yet."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .elements import Batch

RECORD_BYTES = 64
"""What a Python record takes at the least, and each of its fields as well; one is not looked into any deeper."""


def estimated_bytes(batch: Batch) -> int:
    """Of columns, the bytes that they refer to; of records, as often what the first takes as there are records.

    The same for equal batches, in whichever process.
    """
    if isinstance(batch, pa.RecordBatch):
        return int(batch.nbytes)
    return len(batch) * _record_bytes(batch[0])


def _record_bytes(record: Any) -> int:
    if isinstance(record, (str, bytes)):
        return RECORD_BYTES + len(record)
    if isinstance(record, dict):
        record = (*record, *record.values())
    if isinstance(record, (tuple, list)):
        fields = sum(len(field) for field in record if isinstance(field, (str, bytes)))
        return (1 + len(record)) * RECORD_BYTES + fields
    return RECORD_BYTES
