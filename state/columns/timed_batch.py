"""TimedBatch: a batch whose records have event times, one each. Flink: StreamRecord with a timestamp, but for a batch.

The times stand beside the records and not in them, so records of any kind can have one. An event time is a number of
milliseconds since 1970-01-01 00:00 UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Times: TypeAlias = "npt.NDArray[np.int64]"
"""Event times in milliseconds since the epoch."""

BLOCK_ROWS = 1024


class TimedBatch:
    """Records, Arrow or Python, and an event time for each. Nobody changes either.

    `column`: the name of the records' column that the times come from, if they come from one; so they can be read again
    from what a function makes of the batch. `watermarks`: where some of the records came later than their own split of
    the source had promised, for each record the split's watermark before it. So the same records are late however the
    stream is cut into batches, and whatever other channels bring; None: all came in time.
    """

    __slots__ = ("column", "records", "times", "watermarks")

    def __init__(
        self,
        records: pa.RecordBatch | list[Any],
        times: Times,
        column: str | None = None,
        watermarks: Times | None = None,
    ) -> None:
        assert len(records) == len(times), f"{len(records)} records with {len(times)} event times"
        self.records = records
        self.times = times
        self.column = column
        self.watermarks = watermarks

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        return f"TimedBatch({len(self)} records, {self.times.min()} to {self.times.max()} ms)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimedBatch):
            return NotImplemented
        return bool(self.records == other.records) and all(
            np.array_equal(own, its) if own is not None and its is not None else own is its
            for own, its in ((self.times, other.times), (self.watermarks, other.watermarks))
        )

    __hash__ = None  # type: ignore[assignment]

    def slice(self, start: int, length: int) -> TimedBatch:
        """The records from `start` on, at most `length` of them."""
        if isinstance(self.records, pa.RecordBatch):
            part = self.records.slice(start, length)
        else:
            part = self.records[start : start + length]
        watermarks = None if self.watermarks is None else self.watermarks[start : start + length]
        return TimedBatch(part, self.times[start : start + length], self.column, watermarks)


def joined(batches: Sequence[TimedBatch]) -> TimedBatch:
    """One batch of several of one kind, in order. Raises ArrowInvalid for columns that do not go together."""
    first = batches[0]
    records: pa.RecordBatch | list[Any]
    if isinstance(first.records, pa.RecordBatch):
        records = pa.concat_batches([batch.records for batch in batches])
    else:
        records = list(chain.from_iterable(batch.records for batch in batches))
    column = first.column if all(batch.column == first.column for batch in batches) else None
    watermarks: Times | None = None
    if any(batch.watermarks is not None for batch in batches):
        none = np.iinfo(np.int64).min
        marks = [np.full(len(each), none) if each.watermarks is None else each.watermarks for each in batches]
        watermarks = np.concatenate(marks)
    return TimedBatch(records, np.concatenate([batch.times for batch in batches]), column, watermarks)


def least_and_greatest(times: Times) -> tuple[Times, Times]:
    """Of each `BLOCK_ROWS` times, and of the rest: what these say of a block need not be asked of its rows. There is at
    least one time.
    """
    starts = np.arange(0, len(times), BLOCK_ROWS)
    return np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts)
