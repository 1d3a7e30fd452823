"""SegmentWriter: cuts what comes into segments of about a megabyte, and writes them. A part of the OutletSink.

Rows are packed as they come, so that whoever changes a record later changes nothing here; Arrow batches of one schema
are put together first. A segment holds the one or the other.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ....actors.flow.elements import Batch
from ....messages import OutletBranch
from ....state import CheckpointStorage, pack_batch
from ....state.outlets.segments import Segment, framed

SEGMENT_BYTES = 1 << 20
"""A segment of this size is written; one has more only if a single batch, or a record, has."""

LARGEST_PIECE_BYTES = 4 << 20
"""A batch that has more is cut: it has to fit into a message."""

ROWS_AT_ONCE = 8_192


class SegmentWriter:
    """Of one attempt. `position`: that of the next record."""

    def __init__(
        self,
        storage: CheckpointStorage,
        folder: str,
        branch: OutletBranch,
        position: int,
        wall_ms: Callable[[], int],
    ) -> None:
        self.position = position
        self._storage = storage
        self._folder = folder
        self._branch = branch
        self._wall_ms = wall_ms
        self._rows: list[bytes] = []
        """Packed."""
        self._columns: list[pa.RecordBatch] = []
        self._size_bytes = 0
        self._count = 0
        self._written: list[Segment] = []

    def add(self, batch: Batch) -> None:
        """Take a batch, and write what has become large enough. Blocks for that."""
        for start in range(0, len(batch), ROWS_AT_ONCE):
            self._add(batch[start : start + ROWS_AT_ONCE] if len(batch) > ROWS_AT_ONCE else batch)

    def taken(self) -> list[Segment]:
        """Write what is left. All segments since the last call: they last from now on."""
        self._cut()
        written, self._written = self._written, []
        return written

    def drop(self) -> list[Segment]:
        """Forget what is not written, and give what was written since `taken`: nobody will want it."""
        self._rows, self._columns, self._size_bytes, self._count = [], [], 0, 0
        written, self._written = self._written, []
        return written

    def _add(self, batch: Batch) -> None:
        if isinstance(batch, pa.RecordBatch):
            if self._rows or (self._columns and not self._columns[0].schema.equals(batch.schema, check_metadata=True)):
                self._cut()
            if batch.nbytes > LARGEST_PIECE_BYTES and len(batch) > 1:
                self._halve(batch)
                return
            self._columns.append(batch)
            size_bytes = batch.nbytes
        else:
            packed = pack_batch(batch)
            if self._columns:
                self._cut()
            if len(packed) > LARGEST_PIECE_BYTES and len(batch) > 1:
                self._halve(batch)
                return
            self._rows.append(packed)
            size_bytes = len(packed)
        self._size_bytes += size_bytes
        self._count += len(batch)
        if self._size_bytes >= SEGMENT_BYTES:
            self._cut()

    def _halve(self, batch: Batch) -> None:
        middle = len(batch) // 2
        self._add(batch[:middle])
        self._add(batch[middle:])

    def _cut(self) -> None:
        """All that was added since the last one becomes a segment."""
        if not self._count:
            return
        packed = [pack_batch(pa.concat_batches(self._columns))] if self._columns else self._rows
        data = framed(packed)
        first, end = self.position, self.position + self._count
        branch = OutletBranch(self._branch.job, self._branch.attempt_number, self._branch.attempt, first)
        segment = Segment(first, end, len(data), self._wall_ms(), branch)
        self._storage.write_sealed(f"{self._folder}/{segment.name}", data)
        self._written.append(segment)
        self.position = end
        self._rows, self._columns, self._size_bytes, self._count = [], [], 0, 0
