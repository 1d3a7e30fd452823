"""PartitionFeed: one Spark partition, read once from Spark, and again by the tasks of its process as often as needed.

It lives as long as its TaskManager process and outlives the attempts that read it. Two threads meet here: the main
thread owns Spark's iterator and runs `pump`, which reads ahead by a few batches; the task's thread reads rows by
absolute position and never blocks. Rows since the last completed checkpoint are kept in a RewindBuffer, so a new
attempt in the surviving process rewinds in place. It knows nothing of checkpoints: the source says what may be
forgotten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Condition
from typing import Literal

import pyarrow as pa

from ....actors.operators.source import END, SourceState
from ..errors import PartitionFailed, RewindImpossible
from .rewind_buffer import RewindBuffer

READ_AHEAD_BATCHES = 2


@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """The number of rows from the partition's beginning, and the fingerprint of just these rows."""

    rows: int
    fingerprint: tuple[int, ...] = ()


class PartitionFeed:
    """Rows of one partition by position. `start` is the oldest that can be read; it moves on with `forget_before`."""

    def __init__(
        self, batches: Iterator[pa.RecordBatch], memory_limit_bytes: int, spill_dir: str | None = None
    ) -> None:
        self.start = PartitionPosition(0)
        self._batches = batches
        self._kept = RewindBuffer(memory_limit_bytes, spill_dir)
        self._changed = Condition()
        self._wake: Callable[[], None] = _wake_nobody
        # Shared by both threads, under `_changed`:
        self._queue: deque[pa.RecordBatch] = deque()
        self._exhausted = False
        self._closed = False
        self._failure: Exception | None = None

    # -- the main thread

    def pump(self) -> None:
        """Read batches as they are wanted, until `close`. Raises what Spark raised, or RewindImpossible."""
        while self._wait_until_wanted():
            self.pump_once()
        if self._failure is not None:
            raise self._failure

    def pump_once(self) -> None:
        """Read one batch, whether it is wanted or not."""
        batch, failure = None, None
        try:
            batch = next(self._batches, None)
        except Exception as error:  # noqa: BLE001 - Spark's failure is handed to the task and raised by `pump`
            failure = error
        with self._changed:
            self._failure = self._failure or failure
            self._exhausted = batch is None and failure is None
            if batch is not None and batch.num_rows:
                self._queue.append(batch)
            wake = self._wake
        wake()

    def _wait_until_wanted(self) -> bool:
        with self._changed:
            self._changed.wait_for(self._has_work)
            return not self._closed and self._failure is None

    def _has_work(self) -> bool:
        wanted = not self._exhausted and len(self._queue) < READ_AHEAD_BATCHES
        return wanted or self._closed or self._failure is not None

    # -- any thread

    def close(self) -> None:
        """The process is done with the partition: `pump` returns as soon as Spark lets it."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # -- the task's thread

    def attach(self, wake: Callable[[], None]) -> None:
        """Call `wake`, on the main thread, whenever there is more to read. The newest attempt is the one woken."""
        with self._changed:
            self._wake = wake

    def read(self, row: int, max_rows: int) -> pa.RecordBatch | Literal[SourceState.END] | None:
        """Up to `max_rows` rows from `row` on; None when they are not there yet, END after the partition's last row.

        `row` is at most one past what was read before. Raises RewindImpossible and PartitionFailed.
        """
        if row < self.start.rows:
            raise self._rewind_impossible(row)
        if row == self._kept.end:
            missing = self._take_next()
            if missing is not True:
                return missing
        return self._kept.read(row, max_rows)

    def forget_before(self, position: PartitionPosition) -> None:
        """Rows before `position` will not be read again. A position behind `start` changes nothing."""
        if position.rows > self.start.rows:
            self._kept.truncate(position.rows)
            self.start = position

    def release(self) -> None:
        """Free what is kept, spill files too. Nothing can be read any more."""
        self._kept.close()

    def _take_next(self) -> Literal[True] | Literal[SourceState.END] | None:
        """Move a batch from the queue to the kept ones; it leaves the queue last, so that a full disk loses nothing."""
        with self._changed:
            if not self._queue:
                if self._failure is not None:
                    raise PartitionFailed(f"the partition cannot be read on at row {self._kept.end}") from self._failure
                return END if self._exhausted else None
            batch = self._queue[0]
        self._kept.append(batch)
        with self._changed:
            self._queue.popleft()
            self._changed.notify_all()
        return True

    def _rewind_impossible(self, row: int) -> RewindImpossible:
        error = RewindImpossible(
            f"row {row} of the Spark partition is needed, and this process has kept rows from {self.start.rows} on: "
            "its TaskManager restarts and Spark computes the partition again"
        )
        with self._changed:
            self._failure = error
            self._changed.notify_all()
        return error


def _wake_nobody() -> None:
    """No attempt has attached yet."""
