"""Savepoints and checkpoints of RocksDB as data: their files are fetched, and read key group by key group."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from understudy import Savepoint

from .made import KEYS, declared_states, savepoint

pytest.importorskip("rocksdict")


def rows(opened: Savepoint, state: str) -> dict[Any, Any]:
    return {row["key"]: row["value"] for row in opened.operator("declared").state(state).rows()}


def test_what_rocksdb_holds_is_what_the_heap_would(tmp_path: Path) -> None:
    path = savepoint(tmp_path / "one", {"declared": declared_states(state_backend="rocksdb")})
    opened = Savepoint.open(path)
    assert opened.operator("declared").keyed.snapshots[0].handle.shared
    assert rows(opened, "value") == {key: at * 10 for at, key in enumerate(KEYS)}
    assert opened.operator("declared").state("leg").key("JFK").to_dicts() == [
        {"key": "JFK", "value": {"origin": "origin 30", "delay": 15.0}}
    ]
    assert opened.operator("declared").timers().count() == 2 * len(KEYS)
    heap = savepoint(tmp_path / "two", {"declared": declared_states()})
    assert opened.diff(heap).is_same
    assert Savepoint.verify(path).is_whole


def test_a_savepoint_that_is_closed_holds_no_files(tmp_path: Path) -> None:
    """Before, descriptors and folder stayed until garbage was collected."""
    path = savepoint(tmp_path / "one", {"declared": declared_states(state_backend="rocksdb")})
    others = files_of_rocksdb()
    with Savepoint.open(path) as opened:
        there = rows(opened, "value")
        assert files_of_rocksdb() - others
    assert not files_of_rocksdb() - others
    assert rows(opened, "value") == there, "a later read fetches them again"
    opened.close()
    opened.close()
    assert not files_of_rocksdb() - others


def files_of_rocksdb() -> set[str]:
    """That this process has open."""
    found = {os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()}
    return {each for each in found if each.endswith((".sst", ".log", "/LOCK"))}


@pytest.mark.parametrize("edited", [False, True])
def test_what_is_written_from_it_needs_no_rocksdb(edited: bool, tmp_path: Path) -> None:
    edit = Savepoint.open(savepoint(tmp_path / "one", {"declared": declared_states(state_backend="rocksdb")})).edit()
    if edited:
        edit.operator("declared").state("value").put({"JFK": 7})
        edit.max_parallelism(32)
    written = Savepoint.open(edit.write(tmp_path / "two"))
    assert {snapshot.handle.backend for snapshot in written.operator("declared").keyed.snapshots} == {"heap"}
    assert Savepoint.verify(written.path).is_whole
    expected = {key: at * 10 for at, key in enumerate(KEYS)}
    assert rows(written, "value") == expected | ({"JFK": 7} if edited else {})
    assert written.operator("declared").timers().count() == 2 * len(KEYS)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = savepoint(tmp_path / "one", {"declared": declared_states(state_backend="rocksdb")})
    for file in sorted((tmp_path / "one").glob("job-*/shared/*")):
        data = file.read_bytes()
        file.write_bytes(data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :])
        assert [problem.path for problem in Savepoint.verify(path).problems] == [str(file)]
        file.write_bytes(data)
    assert Savepoint.verify(path).is_whole
