"""Local copies of snapshot files: those that a restart may want stay, and nothing half-written is among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from understudy.messages import (
    CheckpointId,
    OperatorId,
    OperatorListHandle,
    OperatorSubtaskState,
    StateHandle,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state.checkpoints.local_copies import LocalCopies
from understudy.state.checkpoints.snapshot_file import state_handles
from understudy.state.keyring import KEY_BYTES, Keyring, is_sealed
from understudy.state.storage import CheckpointStorage


def state_in(*names: str) -> SubtaskState:
    """A snapshot that consists of these files, each of which holds its own name."""
    lists = tuple(
        OperatorListHandle(name, "split", (0, len(name)), StateHandle(name, None, len(name), crc32(name.encode())))
        for name in names
    )
    return SubtaskState({OperatorId("a"): OperatorSubtaskState(lists=lists)})


class Disk:
    """The copies of one subtask, and what a restore reads through them."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "copies"
        self.copies = LocalCopies(str(self.folder), VertexId("v"), SubtaskIndex(0))
        self.storage = CheckpointStorage(str(root / "checkpoints"))

    def take(self, checkpoint: int, *names: str) -> None:
        """A checkpoint whose snapshot has these files; those that are not there yet are written."""
        for name in names:
            if name not in self.kept():
                self.copies.keep(name, [name.encode()])
        self.copies.written(CheckpointId(checkpoint), state_in(*names))

    def kept(self) -> list[str]:
        return sorted(each.name for each in self.folder.rglob("*") if each.is_file())


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_copies_of_the_checkpoint_that_is_complete_stay_until_a_newer_one_is(disk: Disk) -> None:
    """What a restart would read while the next snapshot is written, or has been and its checkpoint is not complete."""
    disk.take(1, "one")
    disk.copies.complete(CheckpointId(1))
    disk.take(2, "two")
    assert disk.kept() == ["one", "two"]
    disk.take(3, "three")
    assert disk.kept() == ["one", "three", "two"]
    disk.copies.complete(CheckpointId(3))
    disk.take(4, "four")
    assert disk.kept() == ["four", "three"]


def test_a_file_that_a_newer_snapshot_goes_on_using_stays(disk: Disk) -> None:
    disk.take(1, "old", "shared")
    disk.take(2, "new", "shared")
    disk.copies.complete(CheckpointId(2))
    disk.take(3, "newest", "shared")
    assert disk.kept() == ["new", "newest", "shared"]


def test_what_is_being_written_is_not_taken_for_a_copy_that_nobody_wants(disk: Disk) -> None:
    """Another thread writes the next one."""
    disk.take(1, "one")
    disk.copies.complete(CheckpointId(1))

    def slowly() -> Iterator[bytes]:
        yield b"tw"
        disk.copies.written(CheckpointId(2), state_in("one"))
        yield b"o"

    disk.copies.keep("two", slowly())
    assert (next(disk.folder.rglob("two"))).read_bytes() == b"two"


def test_a_copy_that_was_not_written_to_its_end_is_none(disk: Disk) -> None:
    """Nothing of it stays, and where there was a whole one that is still there."""

    def full() -> Iterator[bytes]:
        yield b"ha"
        raise OSError(28, "No space left on device")

    disk.copies.keep("half", full())
    assert disk.kept() == []
    disk.copies.keep("half", [b"half"])
    disk.copies.keep("half", full())
    assert disk.kept() == ["half"]
    assert (next(disk.folder.rglob("half"))).read_bytes() == b"half"


def test_a_copy_of_other_bytes_is_passed_over_and_removed(disk: Disk) -> None:
    disk.storage.write("one", b"one")
    disk.take(1, "one")
    (handle,) = (each.handle for each in state_in("one").operators[OperatorId("a")].lists)
    read = disk.copies.reader(disk.storage)
    assert read(handle) == b"one"
    next(disk.folder.rglob("one")).write_bytes(b"eno")
    assert disk.copies.reader(disk.storage)(handle) == b"one"
    assert disk.kept() == []


def test_where_there_are_keys_a_file_is_copied_sealed_and_not_linked(tmp_path: Path) -> None:
    """What is written by the running backend stands in the clear; its copies may stay on the disk for longer."""
    keys = Keyring([bytes(range(KEY_BYTES))])
    copies = LocalCopies(str(tmp_path / "copies"), VertexId("v"), SubtaskIndex(0), keys)
    (source := tmp_path / "source").write_bytes(b"one")
    copies.keep_file("one", str(source))
    (copy,) = (each for each in (tmp_path / "copies").rglob("*") if each.is_file())
    assert is_sealed(copy.read_bytes())
    (handle,) = state_handles(state_in("one"))
    assert copies.reader(CheckpointStorage(str(tmp_path / "empty")))(handle) == b"one"
