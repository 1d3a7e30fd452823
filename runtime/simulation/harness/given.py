"""What a test gives to a harness, in the form that the operator takes, and what comes out, as records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ....actors.flow.elements import AnyBatch, Batch, TimedBatch, Times
from ....actors.flow.records import rows_of
from .harness_snapshot import HarnessMisused, HarnessSnapshot


def snapshots_of(snapshots: HarnessSnapshot | Sequence[HarnessSnapshot]) -> tuple[HarnessSnapshot, ...]:
    return (snapshots,) if isinstance(snapshots, HarnessSnapshot) else tuple(snapshots)


def times_of(what: str, given: Sequence[Any]) -> Times:
    """Raises HarnessMisused for what are no whole milliseconds."""
    for each in given:
        if isinstance(each, bool) or not hasattr(each, "__index__"):
            raise HarnessMisused(
                f"{what}: wanted whole milliseconds since 1970, found {type(each).__name__} {each!r:.60}: of a "
                "datetime with a time zone, int(moment.timestamp() * 1000)"
            )
    return np.array(given, np.int64)


def batch_of(records: Any) -> Batch:
    """A batch of its own. A single record, given by mistake, is refused."""
    if isinstance(records, pa.RecordBatch):
        return records
    if isinstance(records, str | bytes | dict | tuple) or not isinstance(records, Iterable):
        found = f"{records!r:.80}: a single record is given as [record]"
        raise HarnessMisused(f"wanted a list of records or a pyarrow.RecordBatch, found {found}")
    return list(records)


def records_of(batch: AnyBatch) -> list[Any]:
    if isinstance(batch, TimedBatch):
        batch = batch.records
    return rows_of(batch) if isinstance(batch, pa.RecordBatch) else batch
