"""Savepoints of earlier releases (`golden/`, made by golden.py) are read, verified and restored by this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import Count, Savepoint, Sum
from understudy.messages import CheckpointId, OperatorId
from understudy.runtime.savepoints.keyed_parts import KeyedParts
from understudy.runtime.savepoints.sources_of_rows import ArrowSource, EntrySource
from understudy.state import HeapBackend, assign_operator, handle_reader, key_group_range
from understudy.state.columnar.columnar_backend import ColumnarBackend
from understudy.state.columnar.keyed_rows import KeyedRows
from understudy.state.columnar.rows_format import KeptRows
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.keys.key_groups import KeyGroupRange

from .golden import EVERYTHING, Compiled, rows_of, windows_backend
from .made import KEYS, MAX_PARALLELISM, Clock, Declared, savepoint

GOLDEN = Path(__file__).parent / "golden"
STORED = [(release.name, kind) for release in sorted(GOLDEN.iterdir()) for kind in ("files", "metadata")]


def pointer_of(release: str, kind: str) -> Path:
    (pointer,) = (GOLDEN / release / kind / "savepoints").iterdir()
    return pointer


@pytest.mark.parametrize(("release", "kind"), STORED)
def test_every_row_is_what_it_was(release: str, kind: str) -> None:
    pointer = pointer_of(release, kind)
    found = Savepoint.verify(pointer)
    assert found.is_whole, found.problems
    assert rows_of(pointer) == json.loads((GOLDEN / release / f"{kind}.json").read_text())


@pytest.mark.parametrize(("release", "kind"), STORED)
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_states_of_every_kind_are_restored(release: str, kind: str, parallelism: int) -> None:
    opened = Savepoint.open(pointer_of(release, kind))
    vertex = opened.operator("declared").vertex
    shares = assign_operator(vertex.subtasks, OperatorId("declared"), 2, parallelism, vertex.max_parallelism)
    found = {}
    timers = 0
    for index, share in enumerate(shares):
        own = key_group_range(vertex.max_parallelism, parallelism, index)
        backend = HeapBackend(own.first, own.last, vertex.max_parallelism)
        backend.clock = Clock()
        backend.restore(share.keyed, handle_reader(opened.found.storage))
        states = {name: backend.state(each) for name, each in vars(Declared).items() if not name.startswith("_")}
        timers += len(backend.timers().event) + len(backend.timers().processing)
        for key in backend.keys("value"):
            backend.current_key = key
            found[key] = (
                states["value"].value(), states["leg"].value(), states["items"].get(), states["table"].items(),
                states["total"].get(), states["folded"].get(), states["plain"].value(),
            )  # fmt: skip
    assert found == {
        key: (
            at * 10, Declared.leg.type(f"origin {at}", at / 2), list(range(at % 4)), [(f"entry {at}", at)], at,
            (0, 0.0),
            {"at": at} if at % 2 else (at, "odd"),
        )
        for at, key in enumerate(KEYS)
    }  # fmt: skip
    assert timers == 2 * len(KEYS)


@pytest.mark.parametrize(("release", "kind"), STORED)
def test_state_in_columns_is_restored(release: str, kind: str) -> None:
    """What the backends hold then, they write again as it was."""
    opened = Savepoint.open(pointer_of(release, kind))
    for name, backend in in_columns().items():
        vertex = opened.operator(name).vertex
        (share,) = assign_operator(vertex.subtasks, OperatorId(name), 2, 1, vertex.max_parallelism)
        backend.restore(share.keyed, handle_reader(opened.found.storage))
        if name == "compiled":
            backend.state(Compiled.pair)
            backend.timers()
        again = backend.snapshot(CheckpointId(1))(None)
        parts = KeyedParts(name, [again], opened.files)
        for table in opened.operator(name).keyed.tables().values():
            source = (ArrowSource if table.is_arrow else EntrySource)(parts, table)
            found = sorted(repr(row) for share in source.shares() for row in source.rows(share))
            wanted = opened.operator(name).state(table.name).rows()
            assert found == sorted(map(repr, wanted)), (name, table.name)


def in_columns() -> dict[str, Any]:
    """New, empty backends."""
    groups = KeyGroupRange(0, MAX_PARALLELISM - 1)
    aggregates = {"readings": Count(), "total": Sum("amount")}
    schemas = [pa.schema([("id", pa.int64()), (name, pa.string())]) for name in ("left", "right")]
    return {
        "aggregation": ColumnarBackend(["sensor"], aggregates, groups, MAX_PARALLELISM),
        "rows": KeyedRows([KeptRows(("id",), schema) for schema in schemas], groups, MAX_PARALLELISM),
        "tumbling": windows_backend("tumbling", groups),
        "session": windows_backend("session", groups),
        "compiled": SlotBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM),
    }


def test_what_this_release_writes_holds_the_same(tmp_path: Path) -> None:
    """So that the newest golden folder is of this release's formats, or a new one is due."""
    newest, _ = STORED[-1]
    assert rows_of(savepoint(tmp_path, EVERYTHING)) == json.loads((GOLDEN / newest / "files.json").read_text())
