"""The state of columnar windows by itself: memory per open session, the pause of a firing, and what an hour leaves.

No job runs here: the tables are those of one subtask, and what is measured is its thread. A checkpoint in between is a
real snapshot, written while the firing goes on.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from typing import Any

import click
import numpy as np
import pyarrow as pa

from understudy import Count, Sum
from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, SubtaskIndex, VertexId
from understudy.state import SnapshotTarget
from understudy.state.columnar.pane_table import PaneTable
from understudy.state.columnar.pane_windows import tumbling_panes
from understudy.state.columnar.session_table import SessionTable
from understudy.state.columnar.window_backend import WindowBackend
from understudy.state.columnar.window_rows import WindowRows
from understudy.state.keys.key_groups import KeyGroupRange

from .report import finish, shared_options

WORKLOAD = "window-state"
MAX_PARALLELISM = 128
BATCH_ROWS = 1 << 17
AGGREGATES: dict[str, Any] = {"count": Count(), "sum": Sum("value")}
SCHEMA = pa.schema({"key": pa.int64(), "value": pa.int64()})
TARGET = SnapshotTarget(
    None, JobId("job"), CheckpointId(1), VertexId("vertex"), SubtaskIndex(0), ExecutionAttemptId("attempt")
)
SPREAD = np.int64(0x9E3779B97F4A7C15 - (1 << 64))
"""Keys are multiples of this: they do not lie close together, which a table of ids would profit from."""


@click.command(WORKLOAD)
@click.option("--sessions", default=10_000_000, show_default=True, type=click.IntRange(1))
@click.option("--windows", default=100_000, show_default=True, type=click.IntRange(1), help="Closed at once.")
@click.option("--minutes", default=60, show_default=True, type=click.IntRange(1), help="Of event time, new keys each.")
@shared_options
def window_state(sessions: int, windows: int, minutes: int, runs: int, json_path: str | None) -> None:
    """Memory and pauses of the state of windows."""
    problems: list[str] = []
    figures = {
        "open_sessions": _open_sessions(sessions, problems),
        "closing_at_once": [_closing(windows, kind, problems) for kind in ("tumbling", "session") for _ in range(runs)],
        "hour": [_hour(minutes, kind, problems) for kind in ("tumbling", "session")],
    }
    finish({"workload": WORKLOAD}, figures, problems, json_path)


def _backend(kind: str) -> WindowBackend[Any]:
    def make(rows: WindowRows) -> Any:
        return PaneTable(tumbling_panes(60_000), rows) if kind == "tumbling" else SessionTable(60_000, rows)

    groups = KeyGroupRange(0, MAX_PARALLELISM - 1)
    return WindowBackend(["key"], AGGREGATES, {"kind": kind}, make, groups, MAX_PARALLELISM)


def _fill(table: Any, first: int, count: int, time_ms: int, within_ms: int) -> None:
    """One row for each of these keys."""
    random = np.random.default_rng(first)
    for start in range(first, first + count, BATCH_ROWS):
        numbers = np.arange(start, min(start + BATCH_ROWS, first + count))
        batch = pa.RecordBatch.from_arrays([pa.array(numbers * SPREAD), pa.array(numbers)], schema=SCHEMA)
        table.update(batch, time_ms + random.integers(0, within_ms, len(numbers)))


def _open_sessions(sessions: int, problems: list[str]) -> dict[str, Any]:
    before = _resident_bytes()
    backend = _backend("session")
    table = backend.table_for(SCHEMA)
    begun = time.perf_counter()
    _fill(table, 0, sessions, 0, 30_000)
    seconds = time.perf_counter() - begun
    if len(table) != sessions:
        problems.append(f"{len(table)} open sessions, wanted {sessions}")
    held = _resident_bytes() - before
    begun = time.perf_counter()
    write = backend.snapshot(CheckpointId(1))
    pause_s = time.perf_counter() - begun
    handle = write(TARGET)
    assert handle is not None
    return {
        "sessions": sessions,
        "bytes_per_session": round(held / sessions, 1),
        "sessions_per_s": round(sessions / seconds),
        "snapshot_pause_ms": round(pause_s * 1000, 1),
        "snapshot_bytes_per_session": round(handle.handle.size_bytes / sessions, 1),
    }


def _closing(windows: int, kind: str, problems: list[str]) -> dict[str, Any]:
    """Windows of so many keys end with one watermark; after the first slice comes a checkpoint."""
    backend = _backend(kind)
    table = backend.table_for(SCHEMA)
    _fill(table, 0, windows, 0, 60_000 if kind == "tumbling" else 30_000)
    pauses, found, more, write = [], 0, True, None
    while more:
        begun = time.perf_counter()
        results, more = table.fire(1_000_000)
        pauses.append(time.perf_counter() - begun)
        found += sum(len(result.batch) for result in results)
        if write is None:
            begun = time.perf_counter()
            write, emitted = backend.snapshot(CheckpointId(1)), found
            pauses.append(time.perf_counter() - begun)
    if found != windows:
        problems.append(f"{found} results of {kind} windows, wanted {windows}")
    left = _left_after_restore(kind, write, problems)
    if emitted + left != windows:
        problems.append(f"{kind}: {emitted} results before the checkpoint and {left} after it, wanted {windows}")
    return {
        "windows": kind,
        "closed": windows,
        "slices": len(pauses) - 1,
        "longest_pause_ms": round(max(pauses) * 1000, 1),
        "left_for_after_the_checkpoint": left,
    }


def _left_after_restore(kind: str, write: Any, problems: list[str]) -> int:
    handle = write(TARGET)
    if handle is None:
        return 0
    backend = _backend(kind)
    backend.restore([handle], lambda stored: stored.data or b"")
    assert backend.table is not None
    backend.table.resume(1_000_000)
    return sum(len(batch) for batch in _all_results(backend.table))


def _all_results(table: Any) -> Iterator[pa.RecordBatch]:
    more = True
    while more:
        results, more = table.fire(1_000_000)
        yield from (result.batch for result in results)


def _hour(minutes: int, kind: str, problems: list[str]) -> dict[str, Any]:
    """Each minute of event time has 100,000 keys that were never there before."""
    keys = 100_000
    table = _backend(kind).table_for(SCHEMA)
    resident, known = [], []
    for minute in range(minutes):
        _fill(table, minute * keys, keys, minute * 60_000, 60_000)
        more = True
        while more:
            _, more = table.fire(minute * 60_000 - 1)
        resident.append(_resident_bytes())
        known.append(table.key_count)
    if minutes > 20 and max(known[minutes // 2 :]) > 1.1 * max(known[: minutes // 2]):
        problems.append(f"{kind}: memory for {max(known)} keys, and for {max(known[: minutes // 2])} half way")
    at = [len(resident) // 4, len(resident) // 2, len(resident) - 1]
    return {
        "windows": kind,
        "minutes": minutes,
        "keys": minutes * keys,
        "keys_in_memory_at_most": max(known),
        "resident_mb": [round(resident[index] / 1e6) for index in at],
    }


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
