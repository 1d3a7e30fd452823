"""What flows through channels.

A batch is a `pyarrow.RecordBatch` or a Python list of records, handed on as it is: no wrapper, no object per record.
Control elements stand between batches and are the case classes here. `estimated_bytes` is about how much memory a batch
takes: for bounds, where nothing has encoded it yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from ...messages import CheckpointId

Batch: TypeAlias = "pa.RecordBatch | list[Any]"
"""Never empty in a channel."""

RECORD_BYTES = 64
"""What a Python record takes at the least, and each of its fields as well; one is not looked into any deeper."""


@dataclass(frozen=True, slots=True)
class CheckpointBarrier:
    """Everything before it belongs to checkpoint `checkpoint_id`, everything after it does not."""

    checkpoint_id: CheckpointId
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class CancelCheckpointMarker:
    """Upstream gave this checkpoint up; do not wait for its barrier."""

    checkpoint_id: CheckpointId


@dataclass(frozen=True, slots=True)
class Watermark:
    """No record with an older event time comes any more."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class EndOfData:
    """No more records on this channel. Barriers still come, until the final checkpoint covers them."""


@dataclass(frozen=True, slots=True)
class EndOfPartition:
    """The channel is closed; nothing comes any more."""


Control: TypeAlias = CheckpointBarrier | CancelCheckpointMarker | Watermark | EndOfData | EndOfPartition
Element: TypeAlias = "Batch | Control"


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
