"""OutputBuffer: what a task has emitted along one edge and not sent yet. Small batches in, larger ones out.

A value machine that TaskOutputs owns. It knows neither channels nor a clock: it gets the time, and returns what is to
be sent. Batches leave in the order in which they came, and nothing is kept longer than its owner allows: it asks what
is due, and takes all before a control element. Flink: RecordWriter and its buffer timeout.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import inf

import pyarrow as pa

from .elements import AnyBatch, SlotRows, TimedBatch, estimated_bytes, joined

ROWS_PER_CHANNEL = 1024
BYTES_PER_CHANNEL = 64 * 1024
"""So much for each of an edge's channels, rows or bytes, and what a batch costs by itself is little beside it."""


class OutputBuffer:
    """Of an edge with `channels` channels. `timeout_ms` 0: nothing is ever kept."""

    def __init__(self, channels: int, timeout_ms: float) -> None:
        self.due_ms = inf
        """When what is kept must be sent at the latest; inf when nothing is kept."""
        self._timeout_ms = timeout_ms
        self._enough_rows = channels * ROWS_PER_CHANNEL if timeout_ms > 0 else 0
        self._enough_bytes = channels * BYTES_PER_CHANNEL
        self._kept: list[AnyBatch | SlotRows] = []
        self._rows = self._bytes = 0

    def add(self, batch: AnyBatch | SlotRows, now_ms: float) -> Sequence[AnyBatch | SlotRows]:
        """Keep the batch, or return what is to be sent now, in order. A batch that is large enough by itself is not
        copied.
        """
        if len(batch) >= self._enough_rows:
            return (*self.take(), batch)
        first = self.take() if self._kept and not _go_together(self._kept[-1], batch) else ()
        if not self._kept:
            self.due_ms = now_ms + self._timeout_ms
        self._kept.append(batch.kept() if isinstance(batch, SlotRows) else batch)
        self._rows += len(batch)
        self._bytes += estimated_bytes(batch)
        if self._rows < self._enough_rows and self._bytes < self._enough_bytes:
            return first
        return (*first, *self.take())

    def take(self) -> Sequence[AnyBatch | SlotRows]:
        """All that is kept, in as few batches as can be; nothing is kept any more."""
        kept, self._kept = self._kept, []
        self._rows = self._bytes = 0
        self.due_ms = inf
        return kept if len(kept) < 2 else _together(kept)


def _go_together(one: AnyBatch | SlotRows, other: AnyBatch | SlotRows) -> bool:
    if isinstance(one, TimedBatch) and isinstance(other, TimedBatch):
        return _go_together(one.records, other.records)
    if isinstance(one, pa.RecordBatch) and isinstance(other, pa.RecordBatch):
        return bool(one.schema.equals(other.schema))
    return type(one) is type(other) and not isinstance(one, SlotRows)


def _together(batches: list[AnyBatch | SlotRows]) -> Sequence[AnyBatch | SlotRows]:
    """One batch of several; the records lists that there were are not changed, for somebody else may have them too."""
    if isinstance(batches[0], list):
        return (list(chain.from_iterable(batches)),)  # type: ignore[arg-type]  # all are lists
    try:
        if isinstance(batches[0], TimedBatch):
            return (joined(batches),)  # type: ignore[arg-type]  # all are timed
        return (pa.concat_batches(batches),)
    except pa.ArrowInvalid:  # dictionaries that are too large for one, for example
        return batches
