"""Rows by key in incremental checkpoints: each that completes gives back the rows that there were, in their order.

UNDERSTUDY_CASES=100000 plays more cases.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from tests.contracts.increments import JOB, Job, Taken
from tests.contracts.keyed_state import MAX_PARALLELISM
from understudy.messages import CheckpointId, ExecutionAttemptId, KeyedStateHandle, SubtaskIndex, VertexId
from understudy.runtime.savepoints.keyed_parts import KeyedParts
from understudy.runtime.savepoints.state_files import StateFiles
from understudy.state.backends.backend import IncrementalBackend, SnapshotTarget
from understudy.state.columnar import keyed_rows, rows_format
from understudy.state.columnar.keyed_rows import KeyedRows
from understudy.state.columnar.row_store import RowStore
from understudy.state.columnar.rows_format import KeptRows, in_one
from understudy.state.errors import StateNotStorable
from understudy.state.keys.key_groups import KeyGroupRange, key_group
from understudy.state.storage import CheckpointStorage

CASES = int(os.environ.get("UNDERSTUDY_CASES", "400"))
"""Completed checkpoints that are restored and compared."""
KEYS = range(12)
SIDES = (
    KeptRows(("key",), pa.schema([("key", pa.int64()), ("value", pa.int64())])),
    KeptRows(("id",), pa.schema([("name", pa.string()), ("id", pa.int32())])),
)


class Row(NamedTuple):
    """One row of the model; equal rows are told apart by `number`."""

    side: int
    key: int
    value: int | None
    time_ms: int
    mark: int
    number: int


@dataclass
class RowsJob(Job):
    """A job that keeps rows; `rows` is what it has, in the order in which they came."""

    rows: list[Row] = field(default_factory=list)
    count: int = 0

    def begin(self, kind: str) -> None:
        self.kind = kind
        self._place([])
        for side in range(2):
            self.append(side, [self.draw.choice(KEYS) for _ in range(30)])

    def append(self, side: int, keys: Sequence[int]) -> None:
        new = []
        for key in keys:
            self.count += 1
            value = self.draw.choice([None, self.draw.randrange(2**40)])
            new.append(Row(side, key, value, self.draw.randrange(2**33), 0, self.count))
        self.rows += new
        for own, subtask in zip(self.cuts, self.subtasks, strict=True):
            mine = [row for row in new if key_group(row.key, MAX_PARALLELISM) in own]
            if mine:
                subtask.tidy()
                _append(subtask, side, mine)

    def change(self, drops: bool, side: int, keys: Sequence[int]) -> None:
        """Some rows of these keys get another mark, or are dropped."""
        chosen = {row for row in self.rows if row.side == side and row.key in keys and self.draw.random() < 0.7}
        mark = self.draw.randrange(1, 300)
        for own, subtask in zip(self.cuts, self.subtasks, strict=True):
            held = _held(subtask, side)
            mine = [
                number
                for key in keys
                if key_group(key, MAX_PARALLELISM) in own
                for number, row in zip(held.get(key, ()), self._of(side, key), strict=True)
                if row in chosen
            ]
            store = subtask.stores[side]
            if mine and drops:
                store.drop(np.array(mine))
            elif mine:
                store.mark(np.array(mine), mark)
        kept = (row._replace(mark=mark) if row in chosen else row for row in self.rows)
        self.rows = [row for row in self.rows if row not in chosen] if drops else list(kept)

    def clear(self, side: int) -> None:
        """As of a side that has ended in rounds."""
        self.rows = [row for row in self.rows if row.side != side]
        for subtask in self.subtasks:
            subtask.stores[side].clear()

    def check(self, taken: Taken) -> None:
        first = self.draw.randrange(MAX_PARALLELISM)
        own = range(first, self.draw.randint(first + 1, MAX_PARALLELISM))
        mine = [row for row in taken.expected[0] if key_group(row.key, MAX_PARALLELISM) in own]
        handles = taken.handles or []
        assert _contents([self._made("rows", own, handles)]) == _expected(mine)
        parts = KeyedParts("op", handles, StateFiles(self.storage))
        tables = [parts.rows(name, group) for name in parts.tables() for group in parts.groups()]
        assert sum(len(batch) for batches in tables for batch in batches) == len(taken.expected[0])
        whole = [in_one(each, self._read) if each.shared else each for each in handles]
        assert _contents([self._made("rows", own, whole)]) == _expected(mine)
        self.seen["cases"] += 1

    def restore(self, kind: str) -> None:
        taken = self.completed
        if taken is None:
            return
        for each in list(self.open):
            self.decline(each)
        self._place(taken.handles or [])
        self.rows = list(taken.expected[0])
        assert _contents(self.subtasks) == _expected(self.rows)
        self.seen["restores"] += 1

    def _of(self, side: int, key: int) -> list[Row]:
        return [row for row in self.rows if row.side == side and row.key == key]

    def _made(self, kind: str, own: range, handles: Sequence[KeyedStateHandle]) -> Any:
        backend = KeyedRows(SIDES, KeyGroupRange(own[0], own[-1]), MAX_PARALLELISM)
        backend.track_changes("op")
        backend.restore(list(handles), self._read)
        return backend

    def _now(self) -> tuple[Any, Any]:
        return list(self.rows), []


def _target(storage: CheckpointStorage, checkpoint: CheckpointId) -> SnapshotTarget:
    vertex, attempt = VertexId("v"), ExecutionAttemptId("a")
    return SnapshotTarget(storage, JOB, checkpoint, vertex, SubtaskIndex(0), attempt, inline_below_bytes=1)


def _append(backend: KeyedRows, side: int, rows: Sequence[Row]) -> None:
    keys, values = [row.key for row in rows], [row.value for row in rows]
    if side == 0:
        columns = [pa.array(keys, pa.int64()), pa.array(values, pa.int64())]
    else:
        columns = [pa.array([None if each is None else f"n{each}" for each in values]), pa.array(keys, pa.int32())]
    batch = pa.RecordBatch.from_arrays(columns, schema=SIDES[side].schema)
    backend.stores[side].append(batch, backend.slots_of(side, batch), np.array([row.time_ms for row in rows]))


def _held(backend: KeyedRows, side: int) -> dict[int, list[int]]:
    """By key: the numbers of its rows, in their order."""
    store, held = backend.stores[side], dict[int, list[int]]()
    rows = store.live_rows()
    keys = store.reader().take(rows).column(SIDES[side].keys[0]).to_pylist()
    for number, key in zip(rows.tolist(), keys, strict=True):
        held.setdefault(key, []).append(number)
    return held


def _contents(backends: Sequence[KeyedRows]) -> dict[tuple[int, int], list[Any]]:
    """By side and key: values, times and marks, in the order in which the rows came."""
    found: dict[tuple[int, int], list[Any]] = {}
    for backend in backends:
        for side, store in enumerate(backend.stores):
            for key, numbers in _held(backend, side).items():
                values = store.reader().take(np.array(numbers)).column("name" if side else "value").to_pylist()
                times, marks = store.times[numbers].tolist(), store.marks[numbers].tolist()
                found[side, key] = list(zip(values, times, marks, strict=True))
    return found


def _expected(rows: Sequence[Row]) -> dict[tuple[int, int], list[Any]]:
    found: dict[tuple[int, int], list[Any]] = {}
    for row in rows:
        value = f"n{row.value}" if row.side and row.value is not None else row.value
        found.setdefault((row.side, row.key), []).append((value, row.time_ms, row.mark))
    return found


def play(seed: int, storage: CheckpointStorage, seen: Counter[str]) -> None:
    draw = Random(seed)
    job = RowsJob(draw, {}, storage, seen, ["rows"], False)
    job.begin("rows")
    job.take()
    job.complete(job.open[-1], is_known=True)
    for _ in range(draw.randint(10, 25)):
        side, keys = draw.randrange(2), draw.sample(KEYS, draw.choice((1, 1, 2, 5)))
        match draw.randrange(12):
            case 0 | 1 | 2:
                job.append(side, [draw.choice(keys) for _ in range(draw.randint(1, 4))])
            case 3 | 4:
                job.change(draw.random() < 0.5, side, keys)
            case 5 if draw.random() < 0.2:
                job.clear(side)
            case 6:
                job.take(is_savepoint=draw.random() < 0.2)
            case 7 | 8:
                job.take()
                job.complete(job.open[-1], is_known=draw.random() < 0.9)
            case 9 if job.open:
                job.decline(draw.choice(job.open))
            case 10 if job.open:
                job.complete(draw.choice(job.open), is_known=draw.random() < 0.8)
            case 11 if draw.random() < 0.4:
                job.restore("rows")
    job.restore("rows")
    if job.completed is not None:
        job._forget(job.completed)


def played(cases: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    monkeypatch.setattr(keyed_rows, "_FEWEST_ROWS", 8)
    seen: Counter[str] = Counter()
    storage = CheckpointStorage("memory://row-runs")
    seed = 0
    while seen["cases"] < cases:
        try:
            play(seed, storage, seen)
        except Exception as error:
            error.add_note(f"the history of seed {seed}")
            raise
        seed += 1
    return seen


def test_every_checkpoint_that_completes_gives_back_the_rows_that_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = played(CASES, monkeypatch)
    assert seen["increments"] > seen["completed"] / 2, "most checkpoints are lists of runs"
    assert seen["restores"] > seen["cases"] / 20
    assert seen["declined"] > seen["cases"] / 20


def test_a_task_takes_increments_of_it() -> None:
    assert isinstance(KeyedRows(SIDES, KeyGroupRange(0, 1), MAX_PARALLELISM), IncrementalBackend)


def test_after_a_whole_snapshot_no_older_run_is_used() -> None:
    """It may be a checkpoint, whose completion takes the older ones' files."""
    backend, storage = KeyedRows(SIDES, KeyGroupRange(0, MAX_PARALLELISM - 1), MAX_PARALLELISM), "memory://whole-rows"
    backend.track_changes("op")
    for number in range(1, 5):
        _append(backend, 0, [Row(0, key, key, 0, 0, key) for key in (KEYS if number == 1 else KEYS[:1])])
        checkpoint = CheckpointId(number)
        write = backend.snapshot(checkpoint) if number == 3 else backend.increment(checkpoint)
        handle = write(_target(CheckpointStorage(storage), checkpoint))
        backend.checkpoint_complete(checkpoint)
        assert handle is not None
        assert len(handle.shared) == [1, 2, 0, 1][number - 1]


def test_of_two_small_sides_both_are_in_a_checkpoint() -> None:
    """A small state of one side is stored as it is, without runs."""
    rows = [Row(side, key, key, 0, 0, key) for side in range(2) for key in KEYS]
    backend, restored = (KeyedRows(SIDES, KeyGroupRange(0, MAX_PARALLELISM - 1), MAX_PARALLELISM) for _ in range(2))
    backend.track_changes("op")
    for side in range(2):
        _append(backend, side, [row for row in rows if row.side == side])
    target = _target(CheckpointStorage("memory://small-sides"), CheckpointId(1))
    handle = backend.increment(CheckpointId(1))(replace(target, inline_below_bytes=1 << 20))
    assert handle is not None
    restored.restore([handle], lambda stored: stored.data or b"")
    assert _contents([restored]) == _expected(rows)


def test_a_side_that_is_empty_goes_on_holding_its_runs_until_room_is_made() -> None:
    backend, storage = KeyedRows(SIDES, KeyGroupRange(0, MAX_PARALLELISM - 1), MAX_PARALLELISM), "memory://empty-side"
    backend.track_changes("op")
    store, found = backend.stores[0], []
    _append(backend, 0, [Row(0, key, key, 0, 0, key) for key in KEYS] * 10)
    for number in range(1, 4):
        match number:
            case 1:
                store.drop(store.live_rows()[10:])
            case 2:
                store.drop(store.live_rows())
            case _:
                _append(backend, 0, [Row(0, 1, 1, 0, 0, 1)])
        handle = backend.increment(CheckpointId(number))(_target(CheckpointStorage(storage), CheckpointId(number)))
        backend.checkpoint_complete(CheckpointId(number))
        found.append(0 if handle is None else len(handle.shared))
    assert found == [1, 2, 3]


def test_of_a_checkpoint_that_cannot_be_written_no_run_is_left(tmp_path: Path) -> None:
    """One side is written, and the other has a key of another subtask."""
    own, group = KEYS[0], key_group(KEYS[0], MAX_PARALLELISM)
    other = next(key for key in KEYS if key_group(key, MAX_PARALLELISM) != group)
    backend = KeyedRows(SIDES, KeyGroupRange(group, group), MAX_PARALLELISM)
    backend.track_changes("op")
    _append(backend, 0, [Row(0, own, 1, 0, 0, 1)])
    _append(backend, 1, [Row(1, other, 2, 0, 0, 2)])
    with pytest.raises(StateNotStorable, match="not partitioned"):
        backend.increment(CheckpointId(1))(_target(CheckpointStorage(str(tmp_path)), CheckpointId(1)))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def _unnoticed(name: str) -> Any:
    real = getattr(RowStore, name)

    def without(store: RowStore, *arguments: Any) -> Any:
        changes, store.changes = store.changes, None
        try:
            return real(store, *arguments)
        finally:
            store.changes = changes

    return without


@pytest.mark.drawn
@pytest.mark.parametrize("mutant", ["append", "drop", "mark", "oldest", "undropped"])
def test_each_mutant_is_caught(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mutant == "oldest":
        newest = rows_format.newest_rows
        monkeypatch.setattr(rows_format, "newest_rows", lambda runs: newest(runs[::-1]))
    elif mutant == "undropped":
        side_of = rows_format.side_of

        def undropped(*arguments: Any) -> Any:
            found = side_of(*arguments)
            return found and found._replace(dropped=found.dropped[:0])

        monkeypatch.setattr(rows_format, "side_of", undropped)
    else:
        monkeypatch.setattr(RowStore, mutant, _unnoticed(mutant))
    with pytest.raises((AssertionError, ValueError, LookupError)):
        played(500, monkeypatch)
