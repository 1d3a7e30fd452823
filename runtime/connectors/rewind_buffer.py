"""RewindBuffer: the rows of a stream that may be needed again, in memory up to a limit and on local disk beyond it.

Rows are known by their absolute position. Batches are appended at the end and truncated at the front; when memory
is full, what is appended is written to a file of its own (Arrow IPC) until truncation has made room. One thread
uses it.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class _Held:
    """One batch: itself, or the file that holds it."""

    first_row: int
    rows: int
    size_bytes: int
    batch: pa.RecordBatch | None
    path: str

    @property
    def end_row(self) -> int:
        return self.first_row + self.rows


class RewindBuffer:
    """Holds rows `start` .. `end` - 1. Spill files live in `spill_dir`, which is made when it is needed."""

    def __init__(self, memory_limit_bytes: int, spill_dir: str) -> None:
        self.start = 0
        self.end = 0
        self.memory_bytes = 0
        self.spilled_bytes = 0
        self._memory_limit_bytes = memory_limit_bytes
        self._spill_dir = spill_dir
        self._held: deque[_Held] = deque()
        self._loaded: tuple[str, pa.RecordBatch] = ("", None)
        """The last batch that was read back, as it is usually read in several pieces."""

    def append(self, batch: pa.RecordBatch) -> None:
        """Hold the next rows. When the disk is full, raises OSError and holds what it held before."""
        size = batch.nbytes
        fits = self.memory_bytes + size <= self._memory_limit_bytes
        path = "" if fits else self._spill(batch)
        self._held.append(_Held(self.end, batch.num_rows, size, batch if fits else None, path))
        self.end += batch.num_rows
        if fits:
            self.memory_bytes += size
        else:
            self.spilled_bytes += size

    def read(self, row: int, max_rows: int) -> pa.RecordBatch:
        """Rows from `row` on: at least one and at most `max_rows`, as far as they lie in one batch."""
        assert self.start <= row < self.end, f"row {row} is not among {self.start} .. {self.end - 1}"
        held = self._held[bisect_right(self._held, row, key=lambda each: each.first_row) - 1]
        batch = held.batch if held.batch is not None else self._load(held.path)
        return batch.slice(row - held.first_row, max_rows)

    def truncate(self, row: int) -> None:
        """Forget the rows before `row`. A batch goes when its last row does."""
        assert row <= self.end, f"row {row} was not read yet: the last one is {self.end - 1}"
        self.start = max(self.start, row)
        while self._held and self._held[0].end_row <= self.start:
            self._drop(self._held.popleft())

    def close(self) -> None:
        """Forget all rows and remove the spill files."""
        self.truncate(self.end)

    def _drop(self, held: _Held) -> None:
        if held.batch is not None:
            self.memory_bytes -= held.size_bytes
            return
        self.spilled_bytes -= held.size_bytes
        os.unlink(held.path)
        if self._loaded[0] == held.path:
            self._loaded = ("", None)

    def _spill(self, batch: pa.RecordBatch) -> str:
        os.makedirs(self._spill_dir, exist_ok=True)
        path = os.path.join(self._spill_dir, f"rows-{self.end}.arrow")
        try:
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
                writer.write_batch(batch)
        except OSError:
            if os.path.exists(path):
                os.unlink(path)
            raise
        return path

    def _load(self, path: str) -> pa.RecordBatch:
        if self._loaded[0] != path:
            with pa.memory_map(path) as file:
                self._loaded = (path, pa.ipc.open_file(file).get_batch(0))
        return self._loaded[1]
