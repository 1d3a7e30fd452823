"""What flows through channels.

A batch is a `pyarrow.RecordBatch` or a Python list of records, handed on as it is: no wrapper, no object per record.
Control elements stand between batches and are the case classes here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from ...messages import CheckpointId

Batch: TypeAlias = "pa.RecordBatch | list[Any]"
"""Never empty in a channel."""


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
