"""PacedSource: a source that emits at most a given number of records a second. Base of the sources here.

The rate is the whole job's and is shared out evenly over the subtasks. Pacing starts again with each attempt: after
a restore a source goes on at its rate and does not make up for the time it was down.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from ...actors.flow.elements import Batch
from ...actors.operators.source import FromSplit, Source, SourceState
from .pacer import Pacer

RECORD_BATCH_ROWS, COMPILED_BATCH_ROWS, COLUMN_BATCH_ROWS = 8192, 65_536, 524_288
"""How many rows are read at a time, unless the user says, for functions of a record, compiled ones, and whole columns:
a step of Python records must stay short, and what is paid per batch must not outweigh quick readers.
"""


class PacedSource(Source):
    """A subclass defines `read`, `offset` and `seek`, and perhaps `rescale`, and calls `super().open()` when it has an
    `open` of its own.
    """

    _pacer: Pacer | None = None
    _delay_ms: float | None = None

    def __init__(self, batch_rows: int | None, records_per_second: float | None) -> None:
        """`batch_rows` None: the user has chosen none."""
        if batch_rows is not None and batch_rows < 1:
            raise ValueError(f"batch_rows: wanted at least 1, found {batch_rows!r}")
        if records_per_second is not None:
            Pacer(records_per_second)  # refuses a rate that makes no sense while the job is still being built
        self._batch_rows_chosen = batch_rows is not None
        self.batch_rows = RECORD_BATCH_ROWS if batch_rows is None else batch_rows
        self.records_per_second = records_per_second

    def open(self) -> None:
        if self.records_per_second is not None:
            self._pacer = Pacer(self.records_per_second / self.context.parallelism)

    def _batch_rows_or(self, batch_rows: int) -> int:
        """What the user chose, or else this."""
        return self.batch_rows if self._batch_rows_chosen else batch_rows

    def read(self, max_records: int) -> Batch | Literal[SourceState.END] | None:
        """Like `poll`, with a limit: the next batch of at most `max_records` records."""
        raise NotImplementedError(f"{type(self).__name__}.read is not defined")  # abstract

    def poll(self) -> Batch | FromSplit | Literal[SourceState.END] | None:
        batch = self._paced()
        if batch is None or isinstance(batch, SourceState):
            return batch
        split = self._split_read()
        return batch if split is None else FromSplit(split, batch)

    def _split_read(self) -> str | None:
        """The split that the last batch is of, where `current_splits` names any."""
        return None

    def _paced(self) -> Batch | Literal[SourceState.END] | None:
        self._delay_ms = None
        if self._pacer is None:
            return self.read(self.batch_rows)
        now_ms = self.context.clock.now_ms()
        allowed = self._pacer.allowed(now_ms)
        if not allowed:
            self._delay_ms = self._pacer.delay_ms(now_ms)
            return None
        batch = self.read(min(allowed, self.batch_rows))
        if batch is not None and not isinstance(batch, SourceState):
            self._pacer.took(len(batch))
        return batch

    def poll_delay_ms(self) -> float | None:
        return self._delay_ms


def divided(batch: pa.RecordBatch, most: int) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Its first rows, and the others, if there are any."""
    return batch.slice(0, most), batch.slice(most) if batch.num_rows > most else None
