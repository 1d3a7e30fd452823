"""Savepoints of this release with state of every kind and format, to be stored beside the tests for ever.

    python -m tests.runtime.savepoints.golden FOLDER

writes them below FOLDER, with what they hold as JSON. A release that changes a format adds a folder, and changes none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy import Count, Savepoint, Sum, ValueState
from understudy.messages import CheckpointId, OperatorId
from understudy.state.checkpoints.snapshot_file import SubtaskSnapshot
from understudy.state.columnar.pane_table import PaneTable
from understudy.state.columnar.pane_windows import tumbling_panes
from understudy.state.columnar.session_table import SessionTable
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.columnar.window_backend import WindowBackend
from understudy.state.columnar.window_rows import WindowRows
from understudy.state.keys.key_groups import KeyGroupRange, key_groups_of

from .made import ALL, MAX_PARALLELISM, Fill, Subtask, savepoint


class Compiled:
    pair = ValueState(tuple, default=(0, 0.0))


def windows_backend(kind: str, groups: KeyGroupRange) -> WindowBackend[Any]:
    def make(rows: WindowRows) -> Any:
        return PaneTable(tumbling_panes(1_000), rows) if kind == "tumbling" else SessionTable(1_000, rows)

    aggregates = {"readings": Count(), "total": Sum("amount")}
    return WindowBackend(["sensor"], aggregates, {"kind": kind}, make, groups, MAX_PARALLELISM)


def windows(kind: str) -> Fill:
    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        backend = windows_backend(kind, subtask.groups)
        sensors = own_rows(subtask)
        batch = pa.RecordBatch.from_pydict({"sensor": sensors, "amount": sensors})
        backend.table_for(batch.schema).update(batch, sensors.to_numpy() * 500)
        snapshot.add(OperatorId(kind), backend.snapshot(CheckpointId(1)))

    return fill


def own_rows(subtask: Subtask, rows: int = 30) -> pa.Array:
    """The numbers that belong to this subtask."""
    numbers = np.arange(rows)
    groups = key_groups_of(numbers, MAX_PARALLELISM)
    return pa.array(numbers[(groups >= subtask.groups.first) & (groups <= subtask.groups.last)])


def compiled(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
    backend = SlotBackend(subtask.groups.first, subtask.groups.last, MAX_PARALLELISM)
    state, timers = backend.state(Compiled.pair), backend.timers()
    for number in own_rows(subtask).to_pylist():
        backend.current_key = number
        state.update((number, number / 2))
        timers.event.add((1_000 + number, number, ()))
    snapshot.add(OperatorId("compiled"), backend.snapshot(CheckpointId(1)))


EVERYTHING: dict[str, Fill] = {
    **ALL,
    "compiled": compiled,
    "tumbling": windows("tumbling"),
    "session": windows("session"),
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
    for name, inline in (("files", 0), ("metadata", 1 << 30)):
        path = savepoint(folder / name, EVERYTHING, inline=inline)
        (folder / f"{name}.json").write_text(json.dumps(rows_of(path), indent=1) + "\n")


if __name__ == "__main__":
    store(Path(sys.argv[1]))
