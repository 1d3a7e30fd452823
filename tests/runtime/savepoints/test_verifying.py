"""`Savepoint.verify`, and reading: whatever is damaged is found and named, and never read as something else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from understudy import MissingState, NotASavepoint, Savepoint, StorageError, Verification
from understudy.messages import KeyedStateHandle, OperatorId, SharedFileId, SharedStateHandle, pack_plain
from understudy.state.backends.group_parts import lay_out
from understudy.state.backends.stored_runs import StoredRun, manifest_of
from understudy.state.checkpoints.snapshot_file import SubtaskSnapshot
from understudy.state.handle_bytes import inline_handle
from understudy.state.root_mark import MARK

from .made import ALL, Subtask, aggregation, declared_states, joined_rows, lists, savepoint

SMALL = {
    "declared": declared_states(["JFK"]),
    "aggregation": aggregation(1),
    "rows": joined_rows(1),
    "lists": lists(1),
}
INCREMENTAL = {"runs": aggregation(5, incremental=True)}


def content(path: Path) -> list[Any]:
    return [table.to_dicts() for table in Savepoint.open(path).tables()]


def test_what_is_whole_is_said_to_be(tmp_path: Path) -> None:
    found = Savepoint.verify(savepoint(tmp_path))
    assert found.is_whole
    assert found.files == 2 + len(list(tmp_path.glob("job-*/chk-3/*attempt*")))
    assert found.entries > 300
    found.check()


def files_of(root: Path) -> list[Path]:
    """All that savepoints consist of."""
    return sorted(path for path in root.rglob("*") if path.is_file() and path.name != MARK)


def assert_is_found(pointer: Path, damaged: Path, whole: list[Any]) -> None:
    """By `verify`; and what is read is what was there, or is refused, naming the file."""
    paths, text = found_in(pointer)
    assert paths == {str(damaged)}, text
    try:
        read = content(pointer)
    except (StorageError, NotASavepoint) as error:
        text = str(error)
    else:
        assert read == whole
        return
    assert str(damaged) in text


def found_in(pointer: Path) -> tuple[set[str], str]:
    """The files that are damaged, and what is said of them."""
    try:
        found: Verification = Savepoint.verify(pointer)
    except NotASavepoint as error:
        return {error.path}, str(error)
    return {problem.path for problem in found.problems}, str(found.problems)


@pytest.mark.parametrize("kind", ["pointer", "metadata", "declared", "aggregation", "rows", "lists"])
def test_each_byte_flipped_and_each_truncation_is_found_in_its_file(kind: str, tmp_path: Path) -> None:
    operators = SMALL if kind in ("pointer", "metadata") else {kind: SMALL[kind]}
    pointer = savepoint(tmp_path, operators, parallelism=1, inline=1 << 30 if len(operators) > 1 else 0)
    whole = content(pointer)
    patterns = {"pointer": "savepoints/*", "metadata": "*/chk-3/_metadata"}
    (file,) = tmp_path.glob(patterns.get(kind, f"*/chk-3/{kind}-*"))
    data = file.read_bytes()
    step = max(1, len(data) // 150)
    for at in range(0, len(data), step):
        file.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        assert_is_found(pointer, file, whole)
    for length in range(0, len(data), step):
        file.write_bytes(data[:length])
        assert_is_found(pointer, file, whole)
    file.write_bytes(data)
    assert Savepoint.verify(pointer).is_whole


def test_an_incremental_checkpoint_that_is_whole_is_said_to_be(tmp_path: Path) -> None:
    found = Savepoint.verify(savepoint(tmp_path, INCREMENTAL))
    found.check()
    assert (found.is_whole, found.entries) == (True, 5)


@pytest.mark.parametrize("wrong", [b"no run", pack_plain(["columnar", {-1: (0, 9)}])], ids=["no index", "no header"])
def test_a_run_that_was_written_wrongly_is_found_under_a_right_checksum(wrong: bytes, tmp_path: Path) -> None:
    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        run = StoredRun(SharedStateHandle(SharedFileId("1"), inline_handle(wrong)), len(wrong), "columnar")
        snapshot.add(OperatorId("runs"), lambda target: manifest_of(subtask.groups.groups, [run]))

    (problem,) = Savepoint.verify(savepoint(tmp_path, {"runs": fill}, parallelism=1)).problems
    assert "Malformed" in problem.text, problem


@pytest.mark.parametrize("pattern", ["*/shared/*", "*/chk-3/runs-*"], ids=["run", "manifest"])
def test_each_byte_flipped_and_each_truncation_of_runs_is_found_in_its_file(pattern: str, tmp_path: Path) -> None:
    pointer = savepoint(tmp_path, INCREMENTAL, parallelism=1)
    (file,) = tmp_path.glob(pattern)
    data = file.read_bytes()
    places = range(0, len(data), max(1, len(data) // 150))
    flipped = [data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :] for at in places]
    for wrong in flipped + [data[:length] for length in places]:
        file.write_bytes(wrong)
        paths, text = found_in(pointer)
        assert paths == {str(file)}, text
    file.write_bytes(data)
    assert Savepoint.verify(pointer).is_whole


@pytest.mark.parametrize("damage", ["removed", "longer", "a folder"])
def test_each_file_that_is_missing_or_not_what_it_was_is_named(damage: str, tmp_path: Path) -> None:
    pointer = savepoint(tmp_path)
    for file in files_of(tmp_path):
        if file == pointer:
            continue
        data = file.read_bytes()
        if damage == "longer":
            file.write_bytes(data + b"x")
        else:
            file.unlink()
        if damage == "a folder":
            file.mkdir()
        found = Savepoint.verify(pointer)
        assert [problem.path for problem in found.problems] == [str(file)]
        assert str(found.problems[0]).startswith(str(file))
        with pytest.raises(StorageError, match=str(file)):
            found.check()
        if damage == "a folder":
            file.rmdir()
        file.write_bytes(data)
    assert Savepoint.verify(pointer).is_whole


def test_all_that_is_damaged_is_named_at_once(tmp_path: Path) -> None:
    pointer = savepoint(tmp_path, ALL)
    files = sorted(tmp_path.glob("*/chk-3/*attempt*"))
    for file in files:
        file.write_bytes(file.read_bytes()[:-1])
    assert sorted(problem.path for problem in Savepoint.verify(pointer).problems) == [str(file) for file in files]


def test_what_was_written_wrongly_under_a_right_checksum_is_found_too(tmp_path: Path) -> None:
    """The file is as the metadata says, and holds what no snapshot does."""
    header = {"format": 2, "max_parallelism": 16, "key": "Any", "states": [["value", "ValueState", "int"]]}

    def fill(snapshot: SubtaskSnapshot, subtask: Any) -> None:
        offsets, inline = lay_out({-1: pack_plain(header), 3: pack_plain([[0, b"\xc1"]])})
        first, last = subtask.groups
        handle = KeyedStateHandle(first, last, offsets, inline, "heap")
        snapshot.add(OperatorId("declared"), lambda target: handle)

    found = Savepoint.verify(savepoint(tmp_path, {"declared": fill}, parallelism=1))
    assert len(found.problems) == 1
    assert "a snapshot of keyed state" in found.problems[0].text


def test_a_copy_whose_metadata_is_gone_is_not_read_from_the_original(tmp_path: Path) -> None:
    original = savepoint(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    copy = tmp_path / "two" / original.relative_to(tmp_path / "one")
    (metadata,) = (tmp_path / "two").glob("job-*/chk-*/_metadata")
    metadata.unlink()
    assert [problem.path for problem in Savepoint.verify(copy).problems] == [str(metadata)]
    with pytest.raises(MissingState, match=re.escape(str(metadata))):
        Savepoint.open(copy)
    assert Savepoint.verify(original).is_whole


def test_a_pointer_that_was_copied_alone_leads_to_the_original(tmp_path: Path) -> None:
    original = savepoint(tmp_path / "one")
    copy = tmp_path / "two" / "savepoints" / original.name
    copy.parent.mkdir(parents=True)
    shutil.copy(original, copy)
    assert Savepoint.verify(copy).is_whole
