"""WindowStage: one subtask of a WindowOperator in a harness; each step returns what comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from understudy import OutputTag
from understudy.actors.windows.window import Window
from understudy.actors.windows.window_contents import AllRecords, Contents
from understudy.actors.windows.window_function import PlainWindowFunction
from understudy.actors.windows.window_operator import WindowOperator
from understudy.actors.windows.window_settings import LATE, WindowSettings
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
    """Records are tuples whose first item is the key. The clock begins at 0."""

    def __init__(self, operator: Any, *, key_by: Any = 0) -> None:
        self._be(OperatorHarness(operator, key_by=key_by), 0)

    def _be(self, harness: OperatorHarness, wall_ms: int) -> None:
        self.harness = harness
        self._lates = 0
        harness.clock.set(harness.clock.now_ms() + wall_ms - harness.clock.wall_ms())

    @property
    def operator(self) -> Any:
        return self.harness.operator

    def put(self, *records: Any, at: Sequence[int] | None = None) -> None:
        """One batch; `at`: the event times."""
        self.harness.process(list(records), timestamps=at)

    def put_watermark(self, watermark_ms: int) -> None:
        self.harness.watermark(watermark_ms)

    def put_clock(self, wall_ms: int) -> None:
        """Time passes until the clock shows this."""
        self.harness.advance(wall_ms - self.harness.clock.wall_ms())

    def feed(self, *records: Any, at: Sequence[int] | None = None) -> list[Any]:
        """One batch, and what comes out."""
        self.put(*records, at=at)
        return self.harness.take_output()

    def advance(self, watermark_ms: int) -> list[Any]:
        """A watermark, and what comes out."""
        self.put_watermark(watermark_ms)
        return self.harness.take_output()

    def clock(self, wall_ms: int) -> list[Any]:
        """A time of the clock, and what comes out."""
        self.put_clock(wall_ms)
        return self.harness.take_output()

    def end(self) -> list[Any]:
        """The end of the data, and what comes out."""
        self.harness.end()
        return self.harness.take_output()

    def taken(self) -> list[tuple[Any, int | None]]:
        """Take what was emitted, each record with its event time."""
        found = self.harness.timed_output()
        self.harness.take_batches()
        return found

    def late(self, tag: OutputTag = LATE) -> list[Any]:
        """Take what was late."""
        found = self.harness.side_output(tag)
        taken, self._lates = self._lates, len(found)
        return found[taken:]

    def restored(self) -> WindowStage:
        """The next attempt, from a snapshot that is taken now."""
        return rescaled([self], 1)[0]

    def owns(self, record: Any) -> bool:
        """Whether the record's key is this subtask's."""
        return bool(self.harness.share_of([record]))

    def holds(self) -> tuple[int, int]:
        """How many entries of state, and how many timers, there are."""
        backend = self.operator._backend
        return backend.entry_count(), sum(map(len, backend.timers()))


class ColumnStage(WindowStage):
    """Records of (key, value, time) become batches of columns."""

    def __init__(self, operator: Any) -> None:
        super().__init__(operator, key_by="key")

    def put(self, *records: Any, at: Sequence[int] | None = None) -> None:
        columns = [pa.array(column, kind) for column, kind in zip(zip(*records, strict=True), TYPES, strict=True)]
        batch = pa.RecordBatch.from_arrays(columns, names=["key", "value", "time"])
        self.harness.process(batch, timestamps=at)

    def holds(self) -> tuple[int, int]:
        return self.operator.keyed_state.entry_count(), 0


TYPES = (pa.string(), pa.int64(), pa.int64())


def rescaled(stages: Sequence[WindowStage], parallelism: int) -> list[WindowStage]:
    """The next attempts of as many subtasks, each restored from snapshots of all."""
    snapshots = [stage.harness.snapshot() for stage in stages]
    for stage in stages:
        stage.harness.crash()
    first = stages[0].harness
    made = []
    for index in range(parallelism):
        made.append(type(stages[0]).__new__(type(stages[0])))
        harness = first.restored(snapshots, parallelism=parallelism, subtask_index=index)
        made[-1]._be(harness, first.clock.wall_ms())
    return made
