"""The checkpoint after some keys have changed against the first one, by kind of state: bytes and processor time.

No job runs here: the state is that of one subtask, in one process. Each kind, in turn, is filled and checkpointed
whole; then some keys change and an increment is written, several times. What the last checkpoint restores is compared
with what went in. Processor time is that of the process, with what runs in the background.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
import pyarrow as pa

from understudy import Max, ValueState
from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, SubtaskIndex, VertexId
from understudy.state import CheckpointStorage, SnapshotTarget, WorkingState, backend_named
from understudy.state.columnar.keyed_rows import KeyedRows
from understudy.state.columnar.pane_windows import END_OF_TIME
from understudy.state.columnar.rows_format import KeptRows
from understudy.state.columnar.session_table import SessionTable
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.columnar.window_backend import WindowBackend
from understudy.state.keys.key_groups import KeyGroupRange

from .report import finish, shared_options

WORKLOAD = "increments"
MAX_PARALLELISM = 128
BATCH = 1024
VALUE = ValueState(int, name="value")
GROUPS = KeyGroupRange(0, MAX_PARALLELISM - 1)
SCHEMA = pa.schema({"key": pa.int64(), "value": pa.int64()})


class OneValue:
    """A backend whose state is an int for each key."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def write(self, keys: list[int], value: int) -> None:
        state = self.backend.state(VALUE)
        for start in range(0, len(keys), BATCH):
            batch = keys[start : start + BATCH]
            self.backend.read_ahead(batch)
            for self.backend.current_key in batch:
                state.update(value)

    def read(self, keys: list[int]) -> list[int]:
        state, found = self.backend.state(VALUE), []
        for start in range(0, len(keys), BATCH):
            batch = keys[start : start + BATCH]
            self.backend.read_ahead(batch)
            for self.backend.current_key in batch:
                found.append(state.value())
        return found


class RowsOfJoin:
    """One side of a join: a write is one more row for each of the keys."""

    def __init__(self) -> None:
        self.backend = KeyedRows([KeptRows(("key",), SCHEMA)], GROUPS, MAX_PARALLELISM)

    def write(self, keys: list[int], value: int) -> None:
        batch = _batch(keys, value)
        self.backend.stores[0].append(batch, self.backend.slots_of(0, batch), np.zeros(len(batch), np.int64))

    def read(self, keys: list[int]) -> list[int]:
        """The value of the newest row of each."""
        store = self.backend.stores[0]
        rows = store.reader().take(store.live_rows())
        newest = dict(zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True))
        return [newest[key] for key in keys]


class OpenSessions:
    """Columnar sessions, none of which ends: a write is one more record in the session of each key."""

    def __init__(self) -> None:
        self.backend = WindowBackend(
            ["key"], {"newest": Max("value")}, {}, lambda rows: SessionTable(1 << 40, rows), GROUPS, MAX_PARALLELISM
        )

    def write(self, keys: list[int], value: int) -> None:
        self.backend.table_for(SCHEMA).update(_batch(keys, value), np.full(len(keys), value, np.int64))

    def read(self, keys: list[int]) -> list[int]:
        table = self.backend.table
        assert table is not None
        results, _ = table.fire(END_OF_TIME, len(keys))
        newest: dict[int, int] = {}
        for batch, _ in results:
            newest |= zip(batch["key"].to_pylist(), batch["newest"].to_pylist(), strict=True)
        return [newest[key] for key in keys]


def _batch(keys: list[int], value: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(keys), pa.repeat(pa.scalar(value), len(keys))], schema=SCHEMA)


def _named(name: str) -> Callable[[str], Any]:
    def make(folder: str) -> Any:
        return OneValue(backend_named(name, WorkingState(folder)).keyed_backend(GROUPS, MAX_PARALLELISM))

    return make


KINDS: dict[str, Callable[[str], Any]] = {
    "heap": _named("filesystem"),
    "compiled": lambda _: OneValue(SlotBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)),
    "rocksdb": _named("rocksdb"),
    "join": lambda _: RowsOfJoin(),
    "sessions": lambda _: OpenSessions(),
}


@click.command(WORKLOAD)
@click.option("--keys", default=1_000_000, show_default=True, type=click.IntRange(BATCH))
@click.option("--changed", default=0.01, show_default=True, type=click.FloatRange(0, 1), help="Share of the keys.")
@click.option("--checkpoints", default=5, show_default=True, type=click.IntRange(1), help="After the first one.")
@click.option("--kinds", default=",".join(KINDS), show_default=True, help="Comma-separated.")
@shared_options
def increments(keys: int, changed: float, checkpoints: int, kinds: str, runs: int, json_path: str | None) -> None:
    """What checkpoints of changed keys cost, against whole ones."""
    problems: list[str] = []
    folder = tempfile.mkdtemp(prefix="understudy-benchmark-")
    chosen = [kind.strip() for kind in kinds.split(",")]
    if unknown := sorted(set(chosen) - set(KINDS)):
        raise click.BadParameter(f"found {', '.join(unknown)}; wanted some of {', '.join(KINDS)}", param_hint="--kinds")
    try:
        figures = {
            kind: [
                _measured(kind, keys, changed, checkpoints, f"{folder}/{kind}{run}", problems) for run in range(runs)
            ]
            for kind in chosen
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    finish({"workload": WORKLOAD, "keys": keys, "changed": changed}, figures, problems, json_path)


def _measured(
    kind: str, keys: int, changed: float, checkpoints: int, folder: str, problems: list[str]
) -> dict[str, Any]:
    os.makedirs(f"{folder}/state")
    state = KINDS[kind](f"{folder}/state")
    backend = state.backend
    if kind != "rocksdb":
        backend.track_changes("op")
    storage, expected = CheckpointStorage(f"{folder}/checkpoints"), dict.fromkeys(range(keys), 0)
    state.write(list(expected), 0)
    taken = [_checkpoint(kind, backend, storage, 1)]
    draw = random.Random(5)
    for number in range(2, checkpoints + 2):
        some = draw.sample(range(keys), max(1, round(keys * changed)))
        state.write(some, number)
        expected.update(dict.fromkeys(some, number))
        taken.append(_checkpoint(kind, backend, storage, number))
    backend.close()
    os.makedirs(f"{folder}/again")
    again = KINDS[kind](f"{folder}/again")
    again.backend.restore([taken[-1]["handle"]], lambda it: it.data if it.path is None else storage.read(it))
    if again.read(list(expected)) != list(expected.values()):
        problems.append(f"{kind}: the last checkpoint restores other values")
    again.backend.close()
    first, later = taken[0], taken[1:]
    next_bytes, next_ms = (statistics.median(each[what] for each in later) for what in ("bytes", "ms"))
    shares = [each["bytes"] / first["bytes"] for each in later]
    return {
        "first_mb": round(first["bytes"] / 1e6, 2),
        "first_ms": round(first["ms"], 1),
        "next_mb": round(next_bytes / 1e6, 3),
        "next_ms": round(next_ms, 1),
        "bytes_share": round(statistics.median(shares), 4),
        "mean_bytes_share": round(statistics.mean(shares), 4),
        "max_bytes_share": round(max(shares), 4),
        "time_share": round(next_ms / first["ms"], 4),
    }


def _checkpoint(kind: str, backend: Any, storage: CheckpointStorage, number: int) -> dict[str, Any]:
    checkpoint_id = CheckpointId(number)
    target = SnapshotTarget(
        storage, JobId("job"), checkpoint_id, VertexId("v"), SubtaskIndex(0), ExecutionAttemptId("a")
    )
    before = _stored_bytes(storage)
    begun = time.process_time()
    handle = (backend.snapshot if kind == "rocksdb" else backend.increment)(checkpoint_id)(target)
    spent = time.process_time() - begun
    backend.checkpoint_complete(checkpoint_id)
    inline = handle.handle.size_bytes if handle.handle.path is None else 0
    return {"handle": handle, "bytes": _stored_bytes(storage) - before + inline, "ms": spent * 1000}


def _stored_bytes(storage: CheckpointStorage) -> int:
    return sum(os.path.getsize(f"{storage.root}/{path}") for path in storage.list_files())
