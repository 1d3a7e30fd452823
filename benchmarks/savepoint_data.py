"""Savepoints as data: keys a second to Arrow, on one core, and the difference of two savepoints with 1 % changed.

The savepoints are written as subtasks write them, columnar aggregations and states of compiled operators, 4 subtasks
each; no job runs. All values are compared with those that went in.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy import Count, Savepoint, Sum, ValueState
from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    OperatorDescription,
    OperatorId,
    OperatorSubtaskState,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state.backends.backend import SnapshotTarget
from understudy.state.checkpoint_folders import checkpoint_directory
from understudy.state.checkpoints.checkpoint_metadata import encode_metadata
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint, VertexSnapshot
from understudy.state.checkpoints.snapshot_file import store_in_file
from understudy.state.columnar.columnar_backend import ColumnarBackend
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.keys.key_groups import KeyGroupRange, key_group_range, key_groups_of
from understudy.state.storage import CheckpointStorage

from .report import finish, shared_options, spread

WORKLOAD = "savepoint-data"
MAX_PARALLELISM, SUBTASKS = 128, 4
SPREAD = np.int64(0x9E3779B97F4A7C15 - (1 << 64))
"""Keys are multiples of this: neighbours are of different key groups, and take 8 bytes each."""
CHANGED_OF = 100


class Held:
    value = ValueState(int, default=0)


@click.command(WORKLOAD)
@click.option("--keys", default=10_000_000, show_default=True, type=click.IntRange(1))
@shared_options
def savepoint_data(keys: int, runs: int, json_path: str | None) -> None:
    """Savepoints read into Arrow, and compared."""
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="understudy-") as folder:
        figures = {
            kind: _of_kind(kind, make, Path(folder) / kind, keys, runs, problems)
            for kind, make in (("columnar", _aggregation), ("compiled", _compiled))
        }
    finish({"workload": WORKLOAD, "keys": keys}, figures, problems, json_path)


def _of_kind(kind: str, make: Any, folder: Path, keys: int, runs: int, problems: list[str]) -> dict[str, Any]:
    numbers = np.arange(keys)
    before = _written(folder / "before", make, numbers)
    after = _written(folder / "after", make, numbers + (numbers % CHANGED_OF == 0))
    read = [_read(before, keys, problems, kind) for _ in range(runs)]
    streamed = [_streamed(before, keys, problems, kind) for _ in range(runs)]
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    difference = Savepoint.open(before).diff(after).states()
    diff_s = time.process_time() - begun
    wanted = len(range(0, keys, CHANGED_OF))
    if [(each.changed, each.added, each.removed) for each in difference] != [(wanted, 0, 0)]:
        problems.append(f"{kind}: wanted {wanted} changed keys, found {difference}")
    return {
        "bytes": Savepoint.open(before).size_bytes,
        **spread("to_arrow_keys_per_s", read),
        **spread("batches_keys_per_s", streamed),
        "diff_s": round(diff_s, 3),
        "diff_more_rss_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held) // 1024,
    }


def _read(path: Path, keys: int, problems: list[str], kind: str) -> float:
    begun = time.process_time()
    (state,) = Savepoint.open(path).operator("operator").states()
    table = state.to_arrow()
    rate = keys / (time.process_time() - begun)
    if _digest(table.to_batches()) != _wanted(keys):
        problems.append(f"{kind}: to_arrow gave other keys or values")
    return rate


def _streamed(path: Path, keys: int, problems: list[str], kind: str) -> float:
    begun, found = time.process_time(), []
    (state,) = Savepoint.open(path).operator("operator").states()
    checked = 0.0
    for batch in state.batches():
        start = time.process_time()
        found.append(_digest([batch]))
        checked += time.process_time() - start
    rate = keys / (time.process_time() - begun - checked)
    if tuple(map(sum, zip(*found, strict=True))) != _wanted(keys):
        problems.append(f"{kind}: batches gave other keys or values")
    return rate


def _digest(batches: list[pa.RecordBatch]) -> tuple[int, int, int]:
    """The number of rows, the sum of the values, and how many values belong to their keys."""
    rows = total = right = 0
    for batch in batches:
        keys, values = batch.column(0).to_numpy(), batch.column(batch.num_columns - 2 if batch.num_columns > 2 else 1)
        rows, total = rows + batch.num_rows, total + (pc.sum(values).as_py() or 0)
        right += int((keys == values.to_numpy() * SPREAD).sum())
    return rows, total, right


def _wanted(keys: int) -> tuple[int, int, int]:
    return keys, keys * (keys - 1) // 2, keys


Make = Callable[[KeyGroupRange, "np.ndarray[Any, Any]", "np.ndarray[Any, Any]"], "KeyedStateHandle | None"]


def _aggregation(groups: KeyGroupRange, keys: Any, values: Any) -> KeyedStateHandle | None:
    backend = ColumnarBackend(["key"], {"rows": Count(), "total": Sum("value")}, groups, MAX_PARALLELISM)
    for batch in _batches(keys, values):
        backend.table_for(batch.schema).update(batch)
    return backend.snapshot(CheckpointId(1))(_target(None, 0))


def _compiled(groups: KeyGroupRange, keys: Any, values: Any) -> KeyedStateHandle | None:
    backend = SlotBackend(groups.first, groups.last, MAX_PARALLELISM)
    backend.state(Held.value)
    for batch in _batches(keys, values):
        slots = backend.slots_of([batch.column(0)])
        columns = backend.columns(Held.value)
        columns.present[slots], columns.values[0][slots] = True, batch.column(1).to_numpy()
    return backend.snapshot(CheckpointId(1))(_target(None, 0))


def _batches(keys: Any, values: Any) -> Iterator[pa.RecordBatch]:
    table = pa.table({"key": keys, "value": values})
    yield from table.to_batches(max_chunksize=1 << 17)


def _written(root: Path, make: Make, values: Any) -> Path:
    """The checkpoint's folder."""
    storage = CheckpointStorage(str(root))
    keys = np.arange(len(values)) * SPREAD
    groups = key_groups_of(keys, MAX_PARALLELISM)
    states: dict[SubtaskIndex, SubtaskState] = {}
    for index in range(SUBTASKS):
        own = key_group_range(MAX_PARALLELISM, SUBTASKS, index)
        rows = (groups >= own.first) & (groups <= own.last)
        handle = make(own, keys[rows], values[rows])
        assert handle is not None
        state = SubtaskState({OperatorId("operator"): OperatorSubtaskState((handle,))})
        states[SubtaskIndex(index)] = store_in_file(state, _target(storage, index))
    described = (OperatorDescription(OperatorId("operator"), "operator", "operator"),)
    vertices = {VertexId("operator"): VertexSnapshot(SUBTASKS, MAX_PARALLELISM, states, described)}
    size = sum(handle.keyed[0].handle.size_bytes for state in states.values() for handle in state.operators.values())
    folder = checkpoint_directory(JobId("job"), CheckpointId(1))
    completed = CompletedCheckpoint(
        JobId("job"), CheckpointId(1), 1, 1, size, vertices, metadata_path=f"{folder}/_metadata"
    )
    storage.write_sealed(completed.metadata_path, encode_metadata(completed))
    return root / folder


def _target(storage: CheckpointStorage | None, index: int) -> SnapshotTarget:
    return SnapshotTarget(
        storage, JobId("job"), CheckpointId(1), VertexId("operator"), SubtaskIndex(index), ExecutionAttemptId("a")
    )
