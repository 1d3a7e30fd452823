"""AssignTimestamps: gives records their event times, and says how far event time has come.

One watermark per batch at most, behind the batch. Watermarks from before it do not pass, but the one of ended data.
The watermark is state: it is in every snapshot, and restored, so that the same records are late as before. With another
parallelism it is the least of the old subtasks'. Flink: TimestampsAndWatermarksOperator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pyarrow as pa

from ...messages import CheckpointId
from ...state.kinds.descriptors import OperatorListState
from ..flow.elements import END_OF_TIME, NO_WATERMARK, Batch, TimedBatch, Times, Watermark
from ..flow.key_selector import field_values
from ..flow.records import rows_of
from .collector import Collector
from .event_times import can_be_time, times_of, times_of_list, unusable_column
from .operator import Operator, Takes
from .watermark_generators import WatermarkStrategy


class AssignTimestamps(Operator):
    """`time`: the name of a column, or a function of the record that returns its time."""

    takes: ClassVar[Takes] = "any"

    _watermarks: OperatorListState[Any] = OperatorListState(object, mode="union", name="watermarks")
    """(subtask, parallelism, watermark) of this subtask; restored, those of all."""

    def __init__(self, time: str | Callable[[Any], Any], strategy: WatermarkStrategy) -> None:
        self._time = time
        self._strategy = strategy

    @property
    def column(self) -> str | None:
        """The name of the column or field that times are taken from; None where a function says them."""
        return self._time if isinstance(self._time, str) else None

    def open(self) -> None:
        self._generator = self._strategy.generator()
        self._emitted = NO_WATERMARK
        where = self.context
        restored = self._watermarks.get()
        own = [watermark for index, of, watermark in restored if (index, of) == (where.subtask_index, where.parallelism)]
        if own or restored:
            self._emitted = own[0] if own else min(watermark for _, _, watermark in restored)
            self._generator.restore(self._emitted)

    def process_batch(self, batch: Batch, out: Collector) -> None:
        times = self._times_of(batch)
        out.emit_element(TimedBatch(batch, times, self._time if isinstance(self._time, str) else None))
        watermark = self._generator.on_batch(times, batch)
        if watermark is not None and watermark > self._emitted:
            self._emitted = watermark
            out.emit_element(Watermark(watermark))

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self._watermarks.update([(self.context.subtask_index, self.context.parallelism, self._emitted)])

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        (schema,) = inputs
        if schema is not None and isinstance(self._time, str):
            if self._time not in schema.names:
                raise ValueError(f"there is no column {self._time!r} to take event times from")
            kind = schema.field(self._time).type
            if not can_be_time(kind):
                raise ValueError(unusable_column(self._time, kind))
        return schema

    def _passes(self, watermark_ms: int) -> bool:
        return watermark_ms == END_OF_TIME

    def _times_of(self, batch: Batch) -> Times:
        if isinstance(self._time, str):
            if isinstance(batch, pa.RecordBatch) and batch.schema.names.count(self._time) == 1:
                return times_of(batch.column(self._time), self._time)
            return times_of_list(field_values(batch, self._time, "time column"), f"the time column {self._time!r}")
        records = rows_of(batch) if isinstance(batch, pa.RecordBatch) else batch
        return times_of_list(list(map(self._time, records)), "the result of the time function")
