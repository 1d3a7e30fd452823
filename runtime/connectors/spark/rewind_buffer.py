"""RewindBuffer: the rows of a stream that may be needed again, in memory up to a limit and on local disk beyond it.

Rows are known by their absolute position. Batches are appended at the end and truncated at the front; when memory
is full, new batches are written to disk (Arrow IPC) until truncation has made room. The files have no name: nothing
is left behind by a process that is killed. One thread uses it.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

import pyarrow as pa

SEGMENT_BYTES = 64 * 1024 * 1024
"""So much goes into one file; its room comes back when the last batch in it is dropped."""


class _Segment:
    """A file without a name, that batches are appended to; gone with the last reference to it."""

    def __init__(self, folder: str) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed when nobody refers to it
        self.size_bytes = 0

    def append(self, batch: pa.RecordBatch) -> _Spilled:
        """Raises OSError when the disk is full; the next batch overwrites the incomplete one."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data, offset = memoryview(sink.getvalue()), self.size_bytes
        end = offset
        while len(data):
            written = os.pwrite(self._file.fileno(), data, end)
            end += written
            data = data[written:]
        self.size_bytes = end
        return _Spilled(self, offset, end - offset)

    def read(self, offset: int, size_bytes: int) -> pa.RecordBatch:
        data = os.pread(self._file.fileno(), size_bytes, offset)
        return pa.ipc.open_stream(data).read_next_batch()


@dataclass(frozen=True, slots=True)
class _Spilled:
    """Where a batch lies on disk."""

    segment: _Segment
    offset: int
    size_bytes: int

    def load(self) -> pa.RecordBatch:
        return self.segment.read(self.offset, self.size_bytes)


@dataclass(frozen=True, slots=True)
class _Held:
    """One batch: itself, or where it lies on disk."""

    first_row: int
    rows: int
    size_bytes: int
    batch: pa.RecordBatch | _Spilled

    @property
    def end_row(self) -> int:
        return self.first_row + self.rows


class RewindBuffer:
    """Holds rows `start` .. `end` - 1. What does not fit into memory goes to nameless files in `spill_dir`."""

    def __init__(self, memory_limit_bytes: int, spill_dir: str | None = None) -> None:
        self.start = 0
        self.end = 0
        self.memory_bytes = 0
        self.spilled_bytes = 0
        self._memory_limit_bytes = memory_limit_bytes
        self._spill_dir = spill_dir or tempfile.gettempdir()
        self._held: deque[_Held] = deque()
        self._segment: _Segment | None = None
        self._loaded: tuple[_Spilled | None, pa.RecordBatch] = (None, None)
        """The last batch that was read back, as it is usually read in several pieces."""

    def append(self, batch: pa.RecordBatch) -> None:
        """Hold the next rows. When the disk is full, raises OSError and holds what it held before."""
        size = batch.nbytes
        fits = self.memory_bytes + size <= self._memory_limit_bytes
        self._held.append(_Held(self.end, batch.num_rows, size, batch if fits else self._spill(batch)))
        self.end += batch.num_rows
        if fits:
            self.memory_bytes += size
        else:
            self.spilled_bytes += size

    def read(self, row: int, max_rows: int) -> pa.RecordBatch:
        """Rows from `row` on: at least one and at most `max_rows`, as far as they lie in one batch."""
        assert self.start <= row < self.end, f"row {row} is not among {self.start} .. {self.end - 1}"
        held = self._held[bisect_right(self._held, row, key=lambda each: each.first_row) - 1]
        batch = self._load(held.batch) if isinstance(held.batch, _Spilled) else held.batch
        return batch.slice(row - held.first_row, max_rows)

    def truncate(self, row: int) -> None:
        """Forget the rows before `row`. A batch goes when its last row does."""
        assert row <= self.end, f"row {row} was not read yet: the last one is {self.end - 1}"
        self.start = max(self.start, row)
        while self._held and self._held[0].end_row <= self.start:
            self._drop(self._held.popleft())

    def close(self) -> None:
        """Forget all rows and give the disk space back."""
        self.truncate(self.end)
        self._segment = None

    def _drop(self, held: _Held) -> None:
        if not isinstance(held.batch, _Spilled):
            self.memory_bytes -= held.size_bytes
            return
        self.spilled_bytes -= held.size_bytes
        if self._loaded[0] == held.batch:
            self._loaded = (None, None)

    def _spill(self, batch: pa.RecordBatch) -> _Spilled:
        if self._segment is None or self._segment.size_bytes >= SEGMENT_BYTES:
            self._segment = _Segment(self._spill_dir)
        return self._segment.append(batch)

    def _load(self, spilled: _Spilled) -> pa.RecordBatch:
        if self._loaded[0] != spilled:
            self._loaded = (spilled, spilled.load())
        return self._loaded[1]
