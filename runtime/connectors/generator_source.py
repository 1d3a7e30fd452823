"""GeneratorSource: records computed from their index, at a given rate. Flink: DataGeneratorSource, RateLimitedSource.

The function must be pure: after a restore it is asked for the same indexes again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

import pyarrow as pa

from ...actors.elements import Batch
from ...actors.operators.source import END, SourceState
from .errors import OffsetMismatch
from .paced_source import PacedSource


class GeneratorSource(PacedSource):
    """`function(index)` gives one record, or `function(start, count)` a `pa.RecordBatch` of `count` rows.

    Indexes 0 .. count - 1, or without end, are dealt out in blocks: block b goes to subtask b mod p. A block is one
    record, or `batch_rows` rows of a columnar function. The offset is the next index.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        count: int | None = None,
        records_per_second: float | None = None,
        *,
        batch_rows: int = 1024,
        schema: pa.Schema | None = None,
    ) -> None:
        super().__init__(batch_rows, records_per_second)
        if count is not None and count < 0:
            raise ValueError(f"count: wanted at least 0 or None, found {count!r}")
        self.function = function
        self.count = count
        self.bounded = count is not None
        self.columnar = _required_arguments(function) == 2
        self._schema = schema
        self._next = 0

    def open(self) -> None:
        super().open()
        self._next = self.context.subtask_index * self._block_rows

    def read(self, max_records: int) -> Batch | Literal[SourceState.END]:
        if self.count is not None and self._next >= self.count:
            return END
        return self._columns(max_records) if self.columnar else self._records(max_records)

    def offset(self) -> dict[str, int]:
        return {"next": self._next, "parallelism": self.context.parallelism, "block_rows": self._block_rows}

    def seek(self, offset: dict[str, int]) -> None:
        self._check_parallelism(offset)
        if offset["block_rows"] != self._block_rows:
            raise OffsetMismatch(
                f"source {self.context.name!r} was checkpointed with batch_rows={offset['block_rows']}, which "
                f"deals the indexes out otherwise than batch_rows={self._block_rows}: use the same again"
            )
        self._next = offset["next"]

    def source_schema(self) -> pa.Schema | None:
        if self.columnar and self._schema is None:
            self._schema = self.function(0, 1).schema
        return self._schema if self.columnar else None

    @property
    def _block_rows(self) -> int:
        return self.batch_rows if self.columnar else 1

    def _records(self, max_records: int) -> list[Any]:
        step = self.context.parallelism
        stop = self._next + max_records * step
        indexes = range(self._next, stop if self.count is None else min(stop, self.count), step)
        self._next += len(indexes) * step
        return [self.function(index) for index in indexes]

    def _columns(self, max_records: int) -> pa.RecordBatch:
        left_in_block = self._block_rows - self._next % self._block_rows
        rows = min(max_records, left_in_block, *([] if self.count is None else [self.count - self._next]))
        batch = self.function(self._next, rows)
        if not isinstance(batch, pa.RecordBatch) or batch.num_rows != rows:
            raise TypeError(
                f"function({self._next}, {rows}): wanted a pa.RecordBatch of {rows} rows, found {batch!r:.80}"
            )
        self._next += rows
        if rows == left_in_block:
            self._next += (self.context.parallelism - 1) * self._block_rows
        return batch


def _required_arguments(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a builtin that does not tell
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in positional and each.default is inspect.Parameter.empty for each in parameters)
