"""What flows through channels.

A batch is a `pyarrow.RecordBatch` or a Python list of records, handed on as it is: no wrapper, no object per record.
On a stream with event time it is a TimedBatch, which has a time for each record beside it. Between the two phases of an
aggregation it may be rows whose keys have numbers: NumberedByKey sends them, KnownKeysInput reads them.
Control elements stand between batches and are the case classes here. `estimated_bytes` is about how much memory a batch
takes: for bounds, where nothing has encoded it yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from ...messages import END_OF_TIME, NO_WATERMARK, CheckpointId
from ...state.backends.private_copy import IMMUTABLE, private_copy
from ...state.columnar.known_rows import KnownRows, SlotRows
from ...state.columns.numbered_rows import NamedRows, NumberedRows
from ...state.columns.timed_batch import TimedBatch, Times, joined

__all__ = [
    "END_OF_TIME",
    "NO_WATERMARK",
    "KnownRows",
    "NamedRows",
    "NumberedRows",
    "SlotRows",
    "TimedBatch",
    "Times",
    "joined",
]

Batch: TypeAlias = "pa.RecordBatch | list[Any]"
"""Never empty in a channel."""

RECORD_BYTES = 64
"""What a Python record takes at the least, and each of its fields as well; one is not looked into any deeper."""


@dataclass(frozen=True, slots=True)
class CheckpointBarrier:
    """Everything before it belongs to checkpoint `checkpoint_id`, everything after it does not."""

    checkpoint_id: CheckpointId
    timestamp_ms: int
    stop: bool = False
    """The job stops there: what comes of timers that are due then is for the job that goes on from it."""
    whole: bool = False
    """Its snapshots hold no file of an earlier one; nor do those with which the job stops."""


@dataclass(frozen=True, slots=True)
class CancelCheckpointMarker:
    """Upstream gave this checkpoint up; do not wait for its barrier."""

    checkpoint_id: CheckpointId


@dataclass(frozen=True, slots=True)
class Watermark:
    """No record with this or an older event time comes any more, but late ones. Flink: Watermark."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class WatermarkStatus:
    """Whether the channel gives no watermarks for the time being, so that nobody waits for them. The next watermark
    ends that too. Flink: WatermarkStatus.
    """

    is_idle: bool


@dataclass(frozen=True, slots=True)
class RoundMark:
    """Goes round a loop: all that its head has sent before it has been processed by whoever sends it on. Along the
    edges inside the loop alone.

    On a feedback edge it says how many records its tail has sent back in this round, and how many it has seen that
    want another round.
    """

    number: int
    """From 1."""
    records: int = 0
    wanting: int = 0


@dataclass(frozen=True, slots=True)
class EndOfData:
    """No more records on this channel. Barriers still come, until the final checkpoint covers them."""


@dataclass(frozen=True, slots=True)
class EndOfPartition:
    """The channel is closed; nothing comes any more."""


Control: TypeAlias = (
    CheckpointBarrier | CancelCheckpointMarker | Watermark | WatermarkStatus | RoundMark | EndOfData | EndOfPartition
)
AnyBatch: TypeAlias = "Batch | TimedBatch"
Numbered: TypeAlias = "NamedRows | NumberedRows"
"""Partials in a channel that knows their keys by number; its consumer makes KnownRows of them."""
Element: TypeAlias = "AnyBatch | Numbered | KnownRows | Control"


def estimated_bytes(batch: AnyBatch | Numbered | SlotRows) -> int:
    """Of columns, the bytes that they refer to; of records, as often what the first takes as there are records.

    The same for equal batches, in whichever process.
    """
    if isinstance(batch, TimedBatch):
        return estimated_bytes(batch.records) + batch.times.nbytes
    if isinstance(batch, pa.RecordBatch | NamedRows | NumberedRows | SlotRows):
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


def copied(batch: AnyBatch) -> AnyBatch:
    """The same for one of several readers, as they may run in one process: a list that it may change, and so its
    records.
    """
    if isinstance(batch, TimedBatch):
        records = copied(batch.records)
        assert not isinstance(records, TimedBatch)
        return TimedBatch(records, batch.times, batch.column, batch.watermarks)
    if isinstance(batch, list):
        return batch[:] if IMMUTABLE.issuperset(map(type, batch)) else list(map(private_copy, batch))
    return batch
