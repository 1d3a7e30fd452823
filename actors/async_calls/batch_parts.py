"""Parts of batches of any form, and batches of one form as one."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..flow.elements import AnyBatch, TimedBatch, joined


def form_of(batch: AnyBatch) -> Any:
    """Batches of one form can be put together."""
    if isinstance(batch, TimedBatch):
        return True, batch.watermarks is None, form_of(batch.records)
    return batch.schema if isinstance(batch, pa.RecordBatch) else None


def together(batches: list[Any]) -> AnyBatch:
    """Batches of one form, one or more, in their order."""
    if len(batches) == 1:
        return batches[0]
    if isinstance(batches[0], TimedBatch):
        return joined(batches)
    if isinstance(batches[0], pa.RecordBatch):
        return pa.concat_batches(batches)
    return list(chain.from_iterable(batches))


def taken(batch: Any, order: Any) -> AnyBatch:
    """The records at these places."""
    if isinstance(batch, TimedBatch):
        marks = None if batch.watermarks is None else batch.watermarks[order]
        return TimedBatch(taken(batch.records, order), batch.times[order], None, marks)
    if isinstance(batch, pa.RecordBatch):
        return pc.take(batch, pa.array(order), boundscheck=False)
    return [batch[at] for at in order.tolist()]


def part_of(batch: AnyBatch, start: int, end: int) -> AnyBatch:
    """The records from `start` to before `end`."""
    return batch[start:end] if isinstance(batch, list) else batch.slice(start, end - start)
