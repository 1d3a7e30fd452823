"""An incremental checkpoint opened as data: of each key its newest run counts, whatever came before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.contracts.increments import Job, MakeBackend, Taken, compiled, heap, play
from tests.contracts.keyed_state import Declared
from tests.runtime.savepoints.made import Fill, Subtask, savepoint
from understudy import Count, Savepoint, Sum
from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, OperatorId, SubtaskIndex, VertexId
from understudy.runtime.savepoints import keyed_parts, run_parts
from understudy.runtime.savepoints.keyed_parts import KeyedParts
from understudy.runtime.savepoints.sources_of_rows import EntrySource
from understudy.runtime.savepoints.state_files import StateFiles
from understudy.state.backends.backend import SnapshotTarget
from understudy.state.checkpoints.snapshot_file import SubtaskSnapshot
from understudy.state.columnar.columnar_backend import ColumnarBackend
from understudy.state.storage import CheckpointStorage

_KINDS: dict[str, MakeBackend] = {"heap": heap, "compiled": compiled}


class Opened(Job):
    """Each checkpoint that completes is also read as data, beside a whole snapshot of the same state."""

    def take(self, *, is_savepoint: bool = False) -> None:
        super().take(is_savepoint=is_savepoint)
        attempt = ExecutionAttemptId("a")
        job, vertex, index = JobId("model"), VertexId("v"), SubtaskIndex(0)
        target = SnapshotTarget(self.storage, job, CheckpointId(1), vertex, index, attempt, 1 << 30)
        self._whole = {**getattr(self, "_whole", {}), self.number: self.model.snapshot(CheckpointId(1))(target)}

    def check(self, taken: Taken) -> None:
        whole = self._whole[taken.number]
        handles = taken.handles or []
        self.seen["lists of runs"] += any(len(handle.shared) > 1 for handle in handles)
        files = StateFiles(self.storage)
        assert _rows(KeyedParts("op", handles, files)) == _rows(KeyedParts("op", [whole] if whole else [], files))
        super().check(taken)


def _rows(parts: KeyedParts) -> dict[str, list[str]]:
    """By state; those that hold something."""
    tables = {name: EntrySource(parts, table) for name, table in parts.tables().items()}
    found = {
        name: sorted(repr(row) for share in source.shares() for row in source.rows(share))
        for name, source in tables.items()
    }
    return {name: rows for name, rows in found.items() if rows}


def test_whatever_became_of_earlier_checkpoints_its_rows_are_what_the_state_held() -> None:
    seen: Counter[str] = Counter()
    storage = CheckpointStorage("memory://opened-runs")
    for seed in range(25):
        play(seed, _KINDS, storage, seen, Opened)
    assert seen["lists of runs"] > 20
    assert seen["cases"] > 60


@pytest.mark.parametrize("mutant", ["a key that was deleted comes back", "an older run counts, too"])
def test_a_mistake_is_caught(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mutant == "a key that was deleted comes back":
        monkeypatch.setattr(run_parts, "listed_keys", lambda payload, decode: [])
    else:
        monkeypatch.setattr(keyed_parts, "newest_payloads", lambda runs: (each for run in runs for each in run))
    with pytest.raises(AssertionError):
        test_whatever_became_of_earlier_checkpoints_its_rows_are_what_the_state_held()


Sensor = tuple[int, str]


def _sensors(number: int) -> list[int]:
    """Of a round: all of them in the first, and then a few that are known, and a new one."""
    return [*range(3000)] if number == 1 else [*Random(number).sample(range(3000), 20), 3000 + number]


def _aggregation(storage: CheckpointStorage) -> Fill:
    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        aggregates = {"readings": Count(), "total": Sum("amount")}
        backend = ColumnarBackend(["sensor", "side"], aggregates, subtask.groups, 16)

        def change(number: int) -> None:
            sensors = _sensors(number)
            columns = {"sensor": sensors, "side": ["left"] * len(sensors), "amount": [number * 1.5] * len(sensors)}
            batch = pa.RecordBatch.from_pydict(columns)
            backend.changed(backend.table_for(batch.schema).update(batch))

        snapshot.add(OperatorId("aggregation"), _three_rounds(backend, "aggregation", change, storage))

    return fill


def _in_dicts(storage: CheckpointStorage) -> Fill:
    """A value for each sensor; in the last round a sensor is cleared."""

    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        backend = heap(range(16))

        def change(number: int) -> None:
            state = backend.state(Declared.value)
            for backend.current_key in _sensors(number):
                backend.read_ahead([backend.current_key])
                state.update(number)
            if number == 3:
                backend.current_key = 7
                backend.read_ahead([7])
                state.clear()

        snapshot.add(OperatorId("declared"), _three_rounds(backend, "declared", change, storage))

    return fill


def _three_rounds(backend: Any, owner: str, change: Callable[[int], None], storage: CheckpointStorage) -> Any:
    """The last snapshot; the checkpoint after each of the first two rounds is complete."""
    backend.track_changes(owner)
    for number in (1, 2):
        change(number)
        backend.increment(CheckpointId(number))(_target(storage, number))
        backend.checkpoint_complete(CheckpointId(number))
    change(3)
    return backend.increment(CheckpointId(3))


def _target(storage: CheckpointStorage, number: int) -> SnapshotTarget:
    job, vertex, attempt = JobId("job-000000030000"), VertexId("v"), ExecutionAttemptId("a")
    return SnapshotTarget(storage, job, CheckpointId(number), vertex, SubtaskIndex(0), attempt, 1)


@pytest.fixture
def three_runs(tmp_path: Path) -> Path:
    storage = CheckpointStorage(str(tmp_path))
    operators = {"aggregation": _aggregation(storage), "declared": _in_dicts(storage)}
    return savepoint(tmp_path, operators, parallelism=1)


def _totals(path: Path | str) -> dict[Sensor, tuple[int, float]]:
    rows = Savepoint.open(path).operator("aggregation").state("columnar aggregation").to_dicts()
    assert len({(row["sensor"], row["side"]) for row in rows}) == len(rows)
    found = [list(row.values()) for row in rows]
    return {(sensor, side): (readings, total) for sensor, side, readings, total, *_ in found}


def _values(path: Path | str) -> dict[int, int]:
    rows = Savepoint.open(path).operator("declared").state("value").to_dicts()
    assert len({row["key"] for row in rows}) == len(rows)
    return {row["key"]: row["value"] for row in rows}


def _formats(path: Path | str) -> list[str]:
    return [handle.backend for each in Savepoint.open(path).operators() for handle in each._keyed_handles]


def test_each_key_has_one_row(three_runs: Path) -> None:
    assert _formats(three_runs) == ["runs of columnar", "runs of heap"]
    totals: dict[Sensor, tuple[int, float]] = {}
    values: dict[int, int] = {}
    for number in (1, 2, 3):
        for sensor in _sensors(number):
            readings, total = totals.get((sensor, "left"), (0, 0.0))
            totals[sensor, "left"] = (readings + 1, total + number * 1.5)
            values[sensor] = number
    del values[7]
    assert _totals(three_runs) == totals
    assert _values(three_runs) == values
    assert Savepoint.verify(three_runs).entries == len(totals) + len(values)


def test_an_edit_writes_it_whole(three_runs: Path, tmp_path: Path) -> None:
    copied = Savepoint.open(three_runs).edit().write(str(tmp_path / "copied"))
    assert _formats(copied) == ["columnar", "heap"]
    assert _totals(copied) == _totals(three_runs)
    assert _values(copied) == _values(three_runs)


def test_a_state_of_it_is_edited(three_runs: Path, tmp_path: Path) -> None:
    edit = Savepoint.open(three_runs).edit()
    edit.operator("declared").state("value").update(lambda key, value: value + 10)
    written = edit.write(str(tmp_path / "edited"))
    assert _values(written) == {key: value + 10 for key, value in _values(three_runs).items()}
