"""Savepoints of earlier releases (`golden/`, made by golden.py) are read, verified and restored by this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from understudy import Savepoint
from understudy.messages import CheckpointId, OperatorId
from understudy.runtime.savepoints.keyed_parts import KeyedParts, RunParts
from understudy.runtime.savepoints.sources_of_rows import ArrowSource, EntrySource
from understudy.state import HeapBackend, assign_operator, handle_reader, key_group_range
from understudy.state.columnar import rows_format
from understudy.state.errors import CorruptState
from understudy.state.keys.key_groups import KeyGroupRange

from .golden import KINDS, Compiled, in_columns, rows_of  # type: ignore[attr-defined]
from .made import KEYS, MAX_PARALLELISM, Clock, Declared

pytestmark = pytest.mark.every_run

GOLDEN = Path(__file__).parent / "golden"
STORED = [(release.name, kind) for release in sorted(GOLDEN.iterdir()) for kind in KINDS if (release / kind).exists()]


def pointer_of(release: str, kind: str) -> Path:
    (pointer,) = (GOLDEN / release / kind / "savepoints").iterdir()
    return pointer


@pytest.mark.parametrize(("release", "kind"), STORED)
def test_every_row_is_what_it_was(release: str, kind: str) -> None:
    pointer = pointer_of(release, kind)
    found = Savepoint.verify(pointer)
    assert found.is_whole, found.problems
    assert rows_of(pointer) == json.loads((GOLDEN / release / f"{kind}.json").read_text())


@pytest.mark.parametrize(("release", "kind"), [each for each in STORED if each[1] != "runs"])
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
    for name, backend in in_columns(KeyGroupRange(0, MAX_PARALLELISM - 1)).items():
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


@pytest.mark.parametrize(("release", "kind"), STORED)
def test_a_copy_of_it_holds_the_same(release: str, kind: str, tmp_path: Path) -> None:
    """Of runs, in one snapshot each."""
    written = Savepoint.open(pointer_of(release, kind)).edit().write(tmp_path)
    assert rows_of(written) == json.loads((GOLDEN / release / f"{kind}.json").read_text())


def test_runs_of_rows_of_a_format_that_is_not_known_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_format, "_FORMATS_READ", (3,))
    opened = Savepoint.open(pointer_of("0.1.0-rows-2", "runs"))
    with pytest.raises(CorruptState, match=r"rows-\d.*format 2; wanted one of \(3,\)"):
        opened.edit().write(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_what_this_release_writes_is_of_the_formats_of_the_newest_golden_folder(kind: str, tmp_path: Path) -> None:
    """Else a new one is due."""
    newest, _ = STORED[-1]
    written = KINDS[kind](tmp_path)
    assert rows_of(written) == json.loads((GOLDEN / newest / f"{kind}.json").read_text())
    assert formats_of(written) == formats_of(pointer_of(newest, kind))


def formats_of(pointer: Path) -> dict[str, set[tuple[Any, ...]]]:
    """By operator: the formats of its snapshots, and what their headers say."""
    return {
        each.name: {
            (part.handle.backend, part.header["format"], *sorted(part.header))
            for snapshot in each.keyed.snapshots
            for part in (snapshot.runs if isinstance(snapshot, RunParts) else [snapshot])
        }
        for each in Savepoint.open(pointer).operators()
    }
