"""Savepoints and checkpoints of RocksDB as data: their files are fetched, and read key group by key group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from understudy import Savepoint

from .made import KEYS, declared_states, rocks_states, savepoint

pytest.importorskip("rocksdict")


def rows(opened: Savepoint, state: str) -> dict[Any, Any]:
    return {row["key"]: row["value"] for row in opened.operator("declared").state(state).rows()}


def test_what_rocksdb_holds_is_what_the_heap_would(tmp_path: Path) -> None:
    (tmp_path / "rocks").mkdir()
    path = savepoint(tmp_path / "one", {"declared": rocks_states(tmp_path / "rocks")})
    opened = Savepoint.open(path)
    assert opened.operator("declared").keyed.snapshots[0].handle.shared
    assert rows(opened, "value") == {key: at * 10 for at, key in enumerate(KEYS)}
    assert opened.operator("declared").state("leg").key("JFK").to_dicts() == [
        {"key": "JFK", "value": {"origin": "origin 30", "delay": 15.0}}
    ]
    assert opened.operator("declared").timers().count() == len(KEYS)
    heap = savepoint(tmp_path / "two", {"declared": declared_states()})
    same = {each.state: each.is_same for each in opened.diff(heap).states()}
    assert same["value"]
    assert same["leg"]
    assert same["event-time timers"]
    assert Savepoint.verify(path).is_whole


@pytest.mark.parametrize("edited", [False, True])
def test_what_is_written_from_it_needs_no_rocksdb(edited: bool, tmp_path: Path) -> None:
    (tmp_path / "rocks").mkdir()
    edit = Savepoint.open(savepoint(tmp_path / "one", {"declared": rocks_states(tmp_path / "rocks")})).edit()
    if edited:
        edit.operator("declared").state("value").put({"JFK": 7})
        edit.max_parallelism(32)
    written = Savepoint.open(edit.write(tmp_path / "two"))
    assert {snapshot.handle.backend for snapshot in written.operator("declared").keyed.snapshots} == {"heap"}
    assert Savepoint.verify(written.path).is_whole
    expected = {key: at * 10 for at, key in enumerate(KEYS)}
    assert rows(written, "value") == expected | ({"JFK": 7} if edited else {})
    assert written.operator("declared").timers().count() == len(KEYS)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "rocks").mkdir()
    path = savepoint(tmp_path / "one", {"declared": rocks_states(tmp_path / "rocks")})
    for file in sorted((tmp_path / "one").glob("job-*/shared/*")):
        data = file.read_bytes()
        file.write_bytes(data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :])
        assert [problem.path for problem in Savepoint.verify(path).problems] == [str(file)]
        file.write_bytes(data)
    assert Savepoint.verify(path).is_whole
