"""WindowStage: one subtask of a WindowOperator in a harness, with event time and a clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.actors.flow.elements import END_OF_TIME, NO_WATERMARK, TimedBatch
from understudy.actors.flow.records import rows_of
from understudy.actors.windows.window import Window
from understudy.actors.windows.window_contents import AllRecords, Contents
from understudy.actors.windows.window_function import PlainWindowFunction
from understudy.actors.windows.window_operator import WindowOperator
from understudy.actors.windows.window_settings import WindowSettings
from understudy.testing import OperatorHarness


def with_window(key: Any, window: Window, records: Sequence[Any], out: Any) -> None:
    """Emits what it gets."""
    out.collect((key, tuple(window), list(records)))


def windowed(
    assigner: Any,
    contents: Contents | None = None,
    function: Callable[..., None] | None = with_window,
    **settings: Any,
) -> WindowOperator:
    """An operator; without a function it emits what the contents give."""
    made = None if function is None else PlainWindowFunction(function)
    return WindowOperator(WindowSettings.of(assigner, **settings), contents or AllRecords(), made)


class WindowStage:
    """Records are tuples whose first item is the key."""

    def __init__(self, operator: Any, harness: OperatorHarness | None = None, *, key_by: Any = 0) -> None:
        self._harness = OperatorHarness(operator, key_by=key_by) if harness is None else harness
        self._operator = operator
        self.watermark = NO_WATERMARK
        self._sides: list[tuple[str, Any]] = []
        self._chain._emit = self._take

    @property
    def _chain(self) -> Any:
        return self._harness._attempt.chain

    @property
    def operator(self) -> Any:
        return self._harness.operator

    def _take(self, batch: Any, tag: str | None = None) -> None:
        if tag is None:
            self._harness._attempt.emitted.append(batch)
        else:
            self._sides.append((tag, batch))

    def put(self, *records: Any, at: Sequence[int] | None = None) -> None:
        """One batch; `at`: the event times."""
        batch: Any = list(records)
        if at is not None:
            batch = TimedBatch(batch, np.array(at, np.int64))
        self._chain.process(batch)

    def put_watermark(self, watermark_ms: int) -> None:
        if watermark_ms <= self.watermark:  # its task lets none go back
            return
        self.watermark = watermark_ms
        while self._chain.advance(watermark_ms):
            pass

    def put_clock(self, wall_ms: int) -> None:
        """The clock shows this, and timers fire that are due by it."""
        clock = self._harness.clock
        clock._now_ms += wall_ms - clock.wall_ms()
        while self._chain.fire_due(wall_ms)[0]:
            pass

    def put_end(self) -> None:
        self.put_watermark(END_OF_TIME)
        self._chain.end()

    def feed(self, *records: Any, at: Sequence[int] | None = None) -> list[Any]:
        """One batch, and what comes out."""
        self.put(*records, at=at)
        return self._records()

    def advance(self, watermark_ms: int) -> list[Any]:
        """A watermark, and what comes out."""
        self.put_watermark(watermark_ms)
        return self._records()

    def clock(self, wall_ms: int) -> list[Any]:
        """A time of the clock, and what comes out."""
        self.put_clock(wall_ms)
        return self._records()

    def end(self) -> list[Any]:
        """The end of the data, and what comes out."""
        self.put_end()
        return self._records()

    def _records(self) -> list[Any]:
        return [record for record, _ in self.taken()]

    def taken(self) -> list[tuple[Any, int | None]]:
        """Take what was emitted, each record with its event time."""
        emitted, self._harness._attempt.emitted = self._harness._attempt.emitted, []
        return [pair for batch in emitted for pair in timed(batch)]

    def late(self) -> list[tuple[Any, int | None]]:
        """Take what was late."""
        sides, self._sides = self._sides, []
        return [pair for tag, batch in sides if tag == "late" for pair in timed(batch)]

    def restored(self) -> WindowStage:
        """The next attempt, from a snapshot that is taken now."""
        return rescaled([self], 1)[0]

    def owns(self, record: Any) -> bool:
        """Whether the record's key is this subtask's."""
        return bool(self._harness._attempt.own([record], 0)[0])

    def holds(self) -> tuple[int, int]:
        """How many entries of state, and how many timers, there are."""
        backend = self.operator._backend
        return backend.entry_count(), sum(map(len, backend.timers()))


def rescaled(stages: Sequence[WindowStage], parallelism: int) -> list[WindowStage]:
    """The next attempts of as many subtasks, each restored from snapshots of all."""
    snapshots = [stage._harness.snapshot() for stage in stages]
    for stage in stages:
        stage._harness.crash()
    first, made = stages[0], []
    for index in range(parallelism):
        harness = first._harness.restored(snapshots, parallelism=parallelism, subtask_index=index)
        harness.clock._now_ms += first._harness.clock.wall_ms() - harness.clock.wall_ms()
        made.append(WindowStage(first._operator, harness))
        if first.watermark != NO_WATERMARK:
            made[-1].put_watermark(first.watermark)
    return made


def timed(batch: Any) -> list[tuple[Any, int | None]]:
    """The records of a batch and their times."""
    times: list[int | None] = [None] * len(batch)
    if isinstance(batch, TimedBatch):
        times, batch = batch.times.tolist(), batch.records
    records = rows_of(batch) if isinstance(batch, pa.RecordBatch) else batch
    return list(zip(records, times, strict=True))
