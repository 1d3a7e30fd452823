"""A stage for joins: scripts of records, watermarks and cuts, played on as many subtasks as there are at the time.

A cut is a snapshot of all subtasks, and other subtasks, of another number perhaps, that are restored from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

from understudy.actors.flow.elements import NO_WATERMARK
from understudy.actors.operators.collector import OutputTag
from understudy.actors.operators.operator import Operator
from understudy.runtime.simulation.harness.harness import OperatorHarness

LEFT = pa.schema([("key", pa.int64()), ("a", pa.int64())])
RIGHT = pa.schema([("key", pa.int64()), ("b", pa.string())])


@dataclass(frozen=True)
class Arrive:
    """A batch of (key, number, time) on one input."""

    side: int
    rows: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Advance:
    """A watermark on one input."""

    side: int
    to_ms: int


@dataclass(frozen=True)
class Cut:
    parallelism: int


@dataclass(frozen=True)
class Wait:
    """The clock goes on."""

    by_ms: int


Step: TypeAlias = "Arrive | Advance | Cut | Wait"


def rows(keys: int = 3, times: int = 30) -> st.SearchStrategy[tuple[tuple[int, int, int], ...]]:
    row = st.tuples(st.integers(0, keys - 1), st.integers(0, 9), st.integers(0, times))
    return st.lists(row, min_size=1, max_size=5).map(tuple)


def scripts(*, inputs: int = 2, has_watermarks: bool = True, has_clock: bool = False) -> st.SearchStrategy[list[Step]]:
    steps: list[Any] = [st.builds(Arrive, st.integers(0, inputs - 1), rows()), st.builds(Cut, st.integers(1, 3))]
    if has_watermarks:
        steps.append(st.builds(Advance, st.integers(0, inputs - 1), st.integers(0, 35)))
    if has_clock:
        steps.append(st.builds(Wait, st.integers(1, 20)))
    return st.lists(st.one_of(steps), max_size=16)


@dataclass
class Played:
    """What came out, in order: records as tuples, each with its time and the watermark from before its step."""

    results: list[tuple[Any, int | None, int]] = field(default_factory=list)
    late: list[tuple[int, Any]] = field(default_factory=list)
    """(input, record)."""

    def records(self) -> list[Any]:
        return [record for record, _, _ in self.results]


def play(
    make: Callable[[], Operator],
    script: Sequence[Step],
    *,
    is_columnar: bool,
    is_timed: bool = True,
    late: Sequence[OutputTag] = (),
    ends: bool = True,
    schemas: Sequence[pa.Schema] = (LEFT, RIGHT),
) -> Played:
    operator = make()
    keys: dict[str, Any] = {"key_by": "key"} | ({"key_by_2": "key"} if operator.inputs == 2 else {})
    first = OperatorHarness(
        operator, **keys, schemas=schemas[: operator.inputs] if is_columnar else (), max_parallelism=8
    )
    subtasks, played = [first], Played()
    watermarks = [NO_WATERMARK] * operator.inputs
    before = NO_WATERMARK
    for step in script:
        match step:
            case Arrive(side, several):
                batch = batch_of(side, several, is_columnar, schemas)
                for subtask in subtasks:
                    owned = _owned(subtask, batch, several, side)
                    times = [row[2] for row in owned] if is_timed else None
                    if owned:
                        subtask.process(batch_of(side, owned, is_columnar, schemas), side, timestamps=times)
            case Advance(side, to_ms):
                for subtask in subtasks:
                    subtask.watermark(to_ms, side)
                watermarks[side] = max(watermarks[side], to_ms)
            case Wait(by_ms):
                for subtask in subtasks:
                    subtask.advance(by_ms)
            case Cut(parallelism):
                _collect_late(subtasks, late, played)
                subtasks = _rescaled(subtasks, parallelism)
        _collect(subtasks, played, before)
        before = min(watermarks)
    if ends:
        for subtask in subtasks:
            subtask.end()
        _collect(subtasks, played, before)
    _collect_late(subtasks, late, played)
    for subtask in subtasks:
        subtask.close()
    return played


def batch_of(
    side: int, several: Sequence[tuple[int, int, int]], is_columnar: bool, schemas: Sequence[pa.Schema]
) -> Any:
    name = schemas[side].names[1]
    records = [{"key": key, name: number if name == "a" else str(number)} for key, number, _ in several]
    return pa.RecordBatch.from_pylist(records, schemas[side]) if is_columnar else records


def _owned(subtask: OperatorHarness, batch: Any, several: Sequence[Any], side: int) -> list[tuple[int, int, int]]:
    owned = subtask._attempt.own(batch, side)
    return [row for row, is_own in zip(several, owned.tolist(), strict=True) if is_own]


def _rescaled(subtasks: list[OperatorHarness], parallelism: int) -> list[OperatorHarness]:
    newest = max(subtask._attempt.last_checkpoint for subtask in subtasks) + 1
    snapshots = [subtask.snapshot(newest) for subtask in subtasks]
    now = subtasks[0]
    made = [now.restored(snapshots, parallelism=parallelism, subtask_index=index) for index in range(parallelism)]
    for subtask in subtasks:
        subtask.crash()
    return made


def _collect(subtasks: Sequence[OperatorHarness], played: Played, watermark_ms: int) -> None:
    for subtask in subtasks:
        for record, time_ms in subtask.timed_output():
            played.results.append((plain(record), time_ms, watermark_ms))
        subtask.take_output()


def _collect_late(subtasks: Sequence[OperatorHarness], late: Sequence[OutputTag], played: Played) -> None:
    for subtask in subtasks:
        for side, tag in enumerate(late):
            played.late += [(side, plain(record)) for record in subtask.side_output(tag)]


def plain(record: Any) -> Any:
    """Rows and dicts as tuples of their values."""
    if isinstance(record, dict):
        return tuple(record.values())
    return tuple(map(plain, record)) if isinstance(record, tuple) else record


def flat(result: Any) -> tuple[Any, ...]:
    """What a join of records gives, as the columns of a join of columns."""
    *kind, left, right = result
    key = left[0] if left is not None else right[0]
    return (*kind, key, None if left is None else left[1], None if right is None else right[1])
