"""Savepoints of this release with state of every kind and format, to be stored beside the tests for ever.

    python -m tests.runtime.savepoints.golden FOLDER

writes them below FOLDER, with what they hold as JSON, and an incremental checkpoint of state in columns. A change of a
format adds a folder, called as the release and what is new (`0.1.0-rows-2`), and changes none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy import Count, Savepoint, Sum, ValueState
from understudy.messages import CheckpointId, KeyedStateHandle, OperatorId
from understudy.state.backends.backend import SnapshotTarget
from understudy.state.checkpoints.snapshot_file import SubtaskSnapshot
from understudy.state.columnar.columnar_backend import ColumnarBackend
from understudy.state.columnar.keyed_rows import KeyedRows
from understudy.state.columnar.pane_table import PaneTable
from understudy.state.columnar.pane_windows import tumbling_panes
from understudy.state.columnar.rows_format import KeptRows
from understudy.state.columnar.session_table import SessionTable
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.columnar.window_backend import WindowBackend
from understudy.state.columnar.window_rows import WindowRows
from understudy.state.keys.key_groups import KeyGroupRange, key_groups_of

from .made import ALL, MAX_PARALLELISM, Fill, Subtask, savepoint


class Compiled:
    pair = ValueState(tuple, default=(0, 0.0))


AGGREGATES = {"readings": Count(), "total": Sum("amount")}


def windows_backend(kind: str, groups: KeyGroupRange) -> WindowBackend[Any]:
    def make(rows: WindowRows) -> Any:
        return PaneTable(tumbling_panes(1_000), rows) if kind == "tumbling" else SessionTable(1_000, rows)

    return WindowBackend(["sensor"], AGGREGATES, {"kind": kind}, make, groups, MAX_PARALLELISM)


def in_columns(groups: KeyGroupRange) -> dict[str, Any]:
    """New, empty backends."""
    sides = [KeptRows(("id",), pa.schema([("id", pa.int64()), (name, pa.string())])) for name in ("left", "right")]
    return {
        "aggregation": ColumnarBackend(["sensor"], AGGREGATES, groups, MAX_PARALLELISM),
        "rows": KeyedRows(sides, groups, MAX_PARALLELISM),
        "tumbling": windows_backend("tumbling", groups),
        "session": windows_backend("session", groups),
        "compiled": SlotBackend(groups.first, groups.last, MAX_PARALLELISM),
    }


def own_rows(subtask: Subtask, rows: int = 30) -> pa.Array:
    """The numbers that belong to this subtask."""
    numbers = np.arange(rows)
    groups = key_groups_of(numbers, MAX_PARALLELISM)
    return pa.array(numbers[(groups >= subtask.groups.first) & (groups <= subtask.groups.last)])


def put_amounts(backend: ColumnarBackend, sensors: pa.Array) -> None:
    batch = amounts(sensors)
    backend.changed(backend.table_for(batch.schema).update(batch))


def put_in_windows(backend: WindowBackend[Any], sensors: pa.Array) -> None:
    """Each at a time of its own."""
    put_at(backend, sensors, sensors.to_numpy() * 500)


def put_at(backend: WindowBackend[Any], sensors: pa.Array, times: npt.NDArray[np.int64]) -> None:
    batch = amounts(sensors)
    backend.table_for(batch.schema).update(batch, times)


def amounts(sensors: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"sensor": sensors, "amount": sensors})


def put_rows(backend: KeyedRows, ids: pa.Array) -> None:
    texts = pa.array([f"row {each}" for each in ids.to_pylist()])
    for side, store in enumerate(backend.stores):
        batch = pa.RecordBatch.from_arrays([ids, texts], schema=store.schema)
        store.append(batch, backend.slots_of(side, batch), ids.to_numpy() * 100)


def put_pairs(backend: SlotBackend, numbers: pa.Array) -> None:
    state, timers = backend.state(Compiled.pair), backend.timers()
    for number in numbers.to_pylist():
        backend.current_key = number
        state.update((state.value()[0] + number, number / 2))
        timers.event.add((1_000 + number, number, ()))


def changed_rows(backend: KeyedRows, ids: pa.Array) -> None:
    """Some rows come, one gets a mark, and one goes."""
    put_rows(backend, ids)
    backend.stores[0].mark(np.array([2]), 7)
    backend.stores[0].drop(np.array([3]))


def begun_windows(backend: WindowBackend[Any], sensors: pa.Array) -> None:
    """With one that all sensors are in: most of it stays as it is."""
    put_in_windows(backend, sensors)
    put_at(backend, sensors, np.full(len(sensors), 20_000))


def changed_windows(backend: WindowBackend[Any], sensors: pa.Array) -> None:
    """Some windows end, and others go on."""
    put_in_windows(backend, sensors)
    assert backend.table is not None
    backend.table.fire(2_999)


PUT: dict[str, Callable[[Any, pa.Array], None]] = {
    "aggregation": put_amounts,
    "rows": put_rows,
    "tumbling": put_in_windows,
    "session": put_in_windows,
    "compiled": put_pairs,
}
BEGIN = PUT | {"tumbling": begun_windows, "session": begun_windows}
CHANGE = PUT | {"rows": changed_rows, "tumbling": changed_windows, "session": changed_windows}


def whole(name: str) -> Fill:
    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        backend = in_columns(subtask.groups)[name]
        PUT[name](backend, own_rows(subtask))
        snapshot.add(OperatorId(name), backend.snapshot(CheckpointId(1)))

    return fill


def in_runs(name: str) -> Fill:
    """As a periodic checkpoint is with `incremental_checkpoints`: a run of everything, and one of what has changed."""

    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        backend, numbers = in_columns(subtask.groups)[name], own_rows(subtask)
        backend.track_changes(name)
        BEGIN[name](backend, numbers)
        first = backend.increment(CheckpointId(1))

        def write(target: SnapshotTarget) -> KeyedStateHandle | None:
            first(target)
            backend.checkpoint_complete(CheckpointId(1))
            CHANGE[name](backend, numbers[-2:])
            written: KeyedStateHandle | None = backend.increment(CheckpointId(2))(target)
            assert written is not None
            assert len(written.shared) > 1, "there are several runs"
            return written

        snapshot.add(OperatorId(name), write)

    return fill


EVERYTHING: dict[str, Fill] = {
    **ALL,
    "compiled": whole("compiled"),
    "tumbling": whole("tumbling"),
    "session": whole("session"),
}
KINDS: dict[str, Callable[[Path], Path]] = {
    "files": lambda folder: savepoint(folder, EVERYTHING),
    "metadata": lambda folder: savepoint(folder, EVERYTHING, inline=1 << 30),
    "runs": lambda folder: savepoint(folder, {name: in_runs(name) for name in PUT}),
}


def rows_of(path: str | Path) -> dict[str, list[str]]:
    """All rows of all states, in an order of their own."""
    return {
        f"{table.operator}.{table.name}": sorted(map(repr, _plain(table.rows())))
        for table in Savepoint.open(path).tables()
    }


def _plain(rows: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    return (dict(sorted(row.items())) for row in rows)


def store(folder: Path) -> None:
    for name, make in KINDS.items():
        path = make(folder / name)
        (folder / f"{name}.json").write_text(json.dumps(rows_of(path), indent=1) + "\n")


if __name__ == "__main__":
    store(Path(sys.argv[1]))
