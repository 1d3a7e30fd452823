"""GeneratorSource: records computed from their index, at a given rate. Flink: DataGeneratorSource, RateLimitedSource.

The function must be pure: after a restore it is asked for the same indexes again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import inf
from operator import length_hint
from typing import Any, Literal

import pyarrow as pa

from ...actors.errors import UserCodeError
from ...actors.flow.elements import Batch
from ...actors.operators.source import END, SourceState
from ...actors.unrun import check_records, has_run
from ...messages.own_annotations import signature_of
from .indexed_source import IndexedSource


class GeneratorSource(IndexedSource):
    """`function(index)` gives one record, or `function(start, count)` a `pa.RecordBatch` of `count` rows.

    Indexes 0 .. count - 1, or without end, are dealt out in blocks: block b goes to subtask b mod p; after a change of
    parallelism first what others left. A block is one record, or `batch_rows` rows of a columnar function. The offset
    is an IndexShare. `count` may be another one when it is restored.
    """

    _how_to_bound = "say how many records it makes, as in env.generate(make, 100)"
    _given: int = 0
    """Records of this attempt so far."""

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

    def read(self, max_records: int) -> Batch | Literal[SourceState.END]:
        limit = inf if self.count is None else self.count
        taken = self._share.take(max_records, limit, adjacent=self.columnar)
        if taken is None:
            return END
        if self.columnar:
            return self._columns(taken)
        records = self._made(taken)
        check_records("the function of generate", records, "return the record of that index", one_each=False)
        return records

    def source_schema(self) -> pa.Schema | None:
        if self.columnar and self._schema is None:
            self._schema = self._columns(range(1)).schema
        return self._schema if self.columnar else None

    @property
    def _block_rows(self) -> int:
        return self.batch_rows if self.columnar else 1

    def _call(self, start: int, rows: int) -> Any:
        return has_run("the function of generate", self.function(start, rows), "return a pa.RecordBatch")

    def _made(self, taken: range) -> list[Any]:
        """Raises UserCodeError, with the place of the record in this attempt."""
        left, function = iter(taken), self.function
        try:
            records = [function(index) for index in left]
        except Exception as error:
            done = len(taken) - length_hint(left) - 1
            error.add_note(f"raised by function({taken[done]}) of generate")
            raise UserCodeError(self.context.name, self._given + done) from error
        self._given += len(records)
        return records

    def _columns(self, taken: range) -> pa.RecordBatch:
        start, rows = taken.start, len(taken)
        batch = self._call(start, rows)
        if not isinstance(batch, pa.RecordBatch) or batch.num_rows != rows:
            raise TypeError(f"function({start}, {rows}): wanted a pa.RecordBatch of {rows} rows, found {batch!r:.80}")
        return batch


def _required_arguments(function: Callable[..., Any]) -> int:
    try:
        parameters = signature_of(function).parameters.values()
    except ValueError:  # a builtin that does not tell
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in positional and each.default is inspect.Parameter.empty for each in parameters)
