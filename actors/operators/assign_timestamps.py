"""AssignTimestamps: gives records their event times, and says how far event time has come.

One watermark per batch at most, behind the batch. Watermarks from before it do not pass, but the one of ended data, nor
do statuses. Behind a source with splits it keeps a watermark for each of them (SplitWatermarks): a SourceReader names
the split of each batch.

The watermark is state: it is in every snapshot, and restored, so that the same records are late as before. That of a
split goes with the split, wherever it is read then; what the subtask has said is, with another parallelism, the least
of what the old subtasks had. Flink: TimestampsAndWatermarksOperator, SourceOperator.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from ...messages import CheckpointId
from ...messages.missing_column import those_there_are
from ...state.kinds.descriptors import OperatorListState
from ..flow.dates import is_of_this_century, other_unit
from ..flow.elements import END_OF_TIME, NO_WATERMARK, Batch, TimedBatch, Times, Watermark, WatermarkStatus
from ..flow.key_selector import field_values
from ..flow.records import rows_of
from .activity_clock import ActivityClock
from .collector import Collector
from .event_times import can_be_time, times_of, times_of_list, unusable_column
from .operator import Operator, Takes
from .split_watermarks import ONLY_SPLIT, SplitWatermarks
from .watermark_generators import BoundedOutOfOrderness, WatermarkStrategy

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Subtasks and splits of this group wait for each other when they run ahead by more than the drift."""

    group: str
    max_drift_ms: int


class AssignTimestamps(Operator):
    """`time`: the name of a column, or a function of the record that returns its time."""

    takes: ClassVar[Takes] = "any"
    _emits_at_end = False

    _watermarks: OperatorListState[Any] = OperatorListState(object, mode="union", name="watermarks")
    """Of this subtask, (subtask, parallelism, watermark, {split: watermark}); restored, those of all."""

    _looked = False
    """Whether a time has been looked at for its unit."""

    is_open = False
    """Whether it knows where it goes on."""

    def __init__(
        self,
        time: str | Callable[[Any], Any],
        strategy: WatermarkStrategy,
        idle_after_ms: int | None = None,
        alignment: Alignment | None = None,
    ) -> None:
        self._time = time
        self._strategy = strategy
        self.idle_after_ms = idle_after_ms
        self.alignment = alignment
        self.as_if_seconds: list[str] = []
        """What goes by these times, as it is written, where its ms may well be meant as seconds."""
        if isinstance(strategy, BoundedOutOfOrderness) and strategy.as_if_seconds:
            self.as_if_seconds.append(strategy.as_if_seconds)

    @property
    def bound_ms(self) -> int | None:
        """How far watermarks stay behind the newest record, if that is how they are made."""
        return self._strategy.delay_ms if isinstance(self._strategy, BoundedOutOfOrderness) else None

    @property
    def column(self) -> str | None:
        """The name of the column or field that times are taken from; None where a function says them."""
        return self._time if isinstance(self._time, str) else None

    def open(self) -> None:
        self.clock = ActivityClock(self.context.clock.now_ms)
        self.splits = SplitWatermarks(self._strategy, self.idle_after_ms)
        self.emitted_ms = NO_WATERMARK
        """The newest watermark that it has sent on."""
        self._split = ONLY_SPLIT
        self._said_idle = self._is_over = False
        where = self.context
        restored = self._watermarks.get()
        if restored:
            own = [each[2] for each in restored if (each[0], each[1]) == (where.subtask_index, where.parallelism)]
            self.emitted_ms = own[0] if own else min(each[2] for each in restored)
            every = [item for each in restored for item in each[3].items()]
            floor_ms = min([watermark_ms for _, watermark_ms in every], default=self.emitted_ms)
            of_splits = [item for item in every if item[0] != ONLY_SPLIT]
            self.splits.restore([*of_splits, (ONLY_SPLIT, self.emitted_ms)], floor_ms)
        self.settle([ONLY_SPLIT])
        self.is_open = True

    # -- what its SourceReader and its task say

    def settle(self, names: Collection[str]) -> None:
        """These are the source's splits now."""
        self.splits.settle(names, self.clock.read(), self.context.clock.now_ms())

    def next_from(self, split: str) -> None:
        """The next batch is of this split."""
        self._split = split

    def align(self, minimum_ms: int) -> None:
        """The slowest of its group is this far: what is ahead of that by more than the drift is paused."""
        if self.alignment is not None:
            self.splits.align(minimum_ms + self.alignment.max_drift_ms, self.clock.read())

    def end(self) -> None:
        """Data has ended; nothing is idle any more."""
        self._is_over = True

    # -- records

    def process_batch(self, batch: Batch, out: Collector) -> None:
        if not len(batch):
            return
        times = self._times_of(batch)
        if not self._looked:
            self._look_at(int(times.max()))
        active_ms = self.clock.read()
        self.splits.look(active_ms)
        self.splits.heard(self._split)
        self._say_active(out)
        marks = self.splits.marks(self._split, times, batch)
        out.emit_element(TimedBatch(batch, times, self.column, marks))
        self.splits.on_batch(self._split, times, batch, active_ms, self.context.clock.now_ms())
        self._say(out)

    def on_idle(self, out: Collector) -> float | None:
        """A look at an input that has nothing: the only moment at which anything is idle."""
        if self._is_over:
            return None
        active_ms = self.clock.read()
        self.splits.look(active_ms)
        self._say(out)
        return self.splits.idle_in_ms(active_ms)

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        where = self.context
        splits = dict(self.splits.snapshot())
        self._watermarks.update([(where.subtask_index, where.parallelism, self.emitted_ms, splits)])

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        (schema,) = inputs
        if schema is not None and isinstance(self._time, str):
            if self._time not in schema.names:
                there = those_there_are(self._time, schema.names)
                raise ValueError(f"there is no column {self._time!r} to take event times from; the stream has {there}")
            kind = schema.field(self._time).type
            if not can_be_time(kind):
                raise ValueError(unusable_column(self._time, kind))
        return schema

    def _look_at(self, time_ms: int) -> None:
        """Warn of a first time that would be one of this century in another unit, and is not as it is; or, if it is
        one, of spans that would be usual ones in seconds.
        """
        self._looked = True
        if (other := other_unit(time_ms)) is not None:
            log.warning(
                "operator %r: the event time %d counts as milliseconds since 1970. If times are in %s, %s them %s "
                "before assign_timestamps",
                self.context.name,
                time_ms,
                *other,
            )
        elif self.as_if_seconds and is_of_this_century(time_ms):
            log.warning(
                "operator %r: times are milliseconds, and so are those of %s. If seconds are meant, write "
                "timedelta(seconds=...); timedelta(milliseconds=...) says the same without this warning",
                self.context.name,
                " and ".join(dict.fromkeys(self.as_if_seconds)),
            )

    def _passes(self, watermark_ms: int) -> bool:
        return watermark_ms == END_OF_TIME

    def _say(self, out: Collector) -> None:
        """Send on what is new: how far event time is, and then whether anything more of it is to be expected."""
        watermark_ms = self.splits.watermark_ms
        if watermark_ms > self.emitted_ms:
            self.emitted_ms = watermark_ms
            out.emit_element(Watermark(watermark_ms))
            self._said_idle = False
        self._say_active(out)
        if self.splits.is_idle and not self._said_idle:
            self._said_idle = True
            out.emit_element(WatermarkStatus(True))

    def _say_active(self, out: Collector) -> None:
        if self._said_idle and not self.splits.is_idle:
            self._said_idle = False
            out.emit_element(WatermarkStatus(False))

    def _times_of(self, batch: Batch) -> Times:
        if isinstance(self._time, str):
            if isinstance(batch, pa.RecordBatch) and batch.schema.names.count(self._time) == 1:
                return times_of(batch.column(self._time), self._time)
            return times_of_list(field_values(batch, self._time, "time column"), f"the time column {self._time!r}")
        records = rows_of(batch) if isinstance(batch, pa.RecordBatch) else batch
        return times_of_list(list(map(self._time, records)), "the result of the time function")
