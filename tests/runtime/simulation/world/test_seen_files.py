"""What oracles have seen of the disk is looked at anew when it has changed, in whichever way."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from understudy.runtime.simulation.world.disk import SimulatedDisk
from understudy.runtime.simulation.world.seen_files import SeenFiles

PATH = "/folder/file"


def disk_with(content: bytes) -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.mkdir("/folder")
    write(disk, content)
    return disk


def write(disk: SimulatedDisk, content: bytes) -> None:
    disk.open(PATH).write(content)


def flip_a_bit(disk: SimulatedDisk) -> None:
    """As a fault would, beside all operations."""
    disk._file(PATH).content[0] ^= 1


def test_what_has_not_changed_is_looked_at_once() -> None:
    disk = disk_with(b"one")
    seen, looks = SeenFiles(disk), []

    def look() -> bytes:
        looks.append(1)
        return disk.read(PATH)

    assert [seen.once("key", look) for _ in range(3)] == [b"one"] * 3
    write(disk, b"one")
    assert seen.once("key", look) == b"one"
    assert len(looks) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda disk: write(disk, b"two"),
        lambda disk: disk.open(PATH, append=True).write(b"!"),
        lambda disk: disk.rot(PATH, 1),
        flip_a_bit,
        lambda disk: disk.crash(Random(1)),
        lambda disk: disk.lose(PATH),
    ],
    ids=["written", "appended to", "rotten", "a bit flipped", "power cut", "lost"],
)
def test_a_changed_file_is_looked_at_again(change: Callable[[SimulatedDisk], object]) -> None:
    disk = disk_with(b"one")
    seen = SeenFiles(disk)

    def look() -> object:
        try:
            return disk.read(PATH)
        except FileNotFoundError:
            return "gone"

    assert seen.once("key", look) == b"one"
    change(disk)
    assert seen.once("key", look) == look() != b"one"


def test_a_folder_that_was_listed_is_listed_again_when_a_name_is_new() -> None:
    disk = disk_with(b"one")
    seen = SeenFiles(disk)
    assert seen.once("key", lambda: disk.list("/folder")) == ["file"]
    disk.open("/folder/other")
    assert seen.once("key", lambda: disk.list("/folder")) == ["file", "other"]


def test_what_raises_is_tried_again() -> None:
    disk = SimulatedDisk()
    seen = SeenFiles(disk)
    with pytest.raises(FileNotFoundError):
        seen.once("key", lambda: disk.read(PATH))
    disk.mkdir("/folder")
    write(disk, b"one")
    assert seen.once("key", lambda: disk.read(PATH)) == b"one"


def test_a_look_changes_nothing() -> None:
    disk = SimulatedDisk()
    with pytest.raises(AssertionError, match="a look changes nothing"):
        SeenFiles(disk).once("key", lambda: disk.mkdir("/folder"))
