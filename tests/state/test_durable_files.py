"""DurableFiles: the same promises on the local disk, on one that offers them itself, and on an object store."""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import pytest
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem

from understudy.state import DurableFiles


class NotingFileSystem(DirFileSystem):
    """Offers durability itself, and notes what was asked of it."""

    def __init__(self, root: str) -> None:
        super().__init__(root, LocalFileSystem())
        self.asked: list[str] = []

    def sync_file(self, file: BinaryIO) -> None:
        self.asked.append("sync file")

    def sync_path(self, path: str) -> None:
        self.asked.append(f"sync file {path}")

    def sync_directory(self, path: str) -> None:
        self.asked.append(f"sync {path}")

    def replace(self, source: str, target: str) -> None:
        os.replace(self._join(source), self._join(target))
        self.asked.append(f"replace {target}")

    def rename_new(self, source: str, target: str) -> None:
        os.link(self._join(source), self._join(target))
        os.unlink(self._join(source))

    def rmdir(self, path: str) -> None:
        os.rmdir(self._join(path))


@pytest.fixture(params=["local", "durable", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[DurableFiles, str]:
    match request.param:
        case "local":
            return DurableFiles.at(f"file://{tmp_path}")
        case "durable":
            return DurableFiles(NotingFileSystem(str(tmp_path))), "root"
        case _:
            return DurableFiles.at(f"memory://durable-{uuid4().hex}")


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The local paths that were synced, in order."""
    paths: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        paths.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr("os.fsync", fsync)
    return paths


def test_files_are_written_renamed_listed_and_removed(place: tuple[DurableFiles, str]) -> None:
    files, root = place
    files.make_folder(f"{root}/a")
    files.make_folder(f"{root}/a")
    files.write(f"{root}/a/temporary", [b"one", b"", b"two"])
    files.replace(f"{root}/a/temporary", f"{root}/a/x")
    file = files.create(f"{root}/y")
    file.write(b"y")
    files.seal(file)
    files.replace(f"{root}/y", f"{root}/a/x")
    assert (files.names(f"{root}/a"), files.find(root)) == (["x"], [f"{root}/a/x"])
    assert files.fs.cat_file(f"{root}/a/x") == b"y"
    for _ in range(2):
        files.remove(f"{root}/a/x")
    assert (files.exists(f"{root}/a/x"), files.find(root), files.names(f"{root}/none")) == (False, [], [])


def test_what_is_missing_cannot_be_renamed(place: tuple[DurableFiles, str]) -> None:
    files, root = place
    files.make_folder(root)
    with pytest.raises(FileNotFoundError):
        files.replace(f"{root}/none", f"{root}/x")


def test_only_an_empty_folder_is_removed(place: tuple[DurableFiles, str]) -> None:
    files, root = place
    files.make_folder(f"{root}/a")
    files.write(f"{root}/a/x", [b"x"])
    assert not files.remove_empty_folder(f"{root}/a")
    files.remove(f"{root}/a/x")
    assert files.remove_empty_folder(f"{root}/a") == files.has_folders
    assert not files.remove_empty_folder(f"{root}/a")


def test_a_new_file_takes_no_others_place(place: tuple[DurableFiles, str]) -> None:
    files, root = place
    files.make_folder(root)
    files.write_new(f"{root}/a", f"{root}/t", [b"fir", b"st"])
    assert files.names(root) == ["a"]
    with pytest.raises(FileExistsError):
        files.write_new(f"{root}/a", f"{root}/t", [b"second"])
    assert files.fs.cat_file(f"{root}/a") == b"first"


def test_a_path_is_written_one_way_only(place: tuple[DurableFiles, str]) -> None:
    files, root = place
    root = files.canonical(root)
    assert files.canonical(f"{root}/a/../b/./c/") == f"{root}/b/c"


def test_links_of_a_local_path_are_followed(tmp_path: Path) -> None:
    files, _ = DurableFiles.at(str(tmp_path))
    (tmp_path / "link").symlink_to("target")
    assert files.canonical(f"{tmp_path}/link/x") == f"{os.path.realpath(tmp_path)}/target/x"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="wants to know what a descriptor stands for")
def test_a_local_file_its_name_and_its_folders_are_synced(tmp_path: Path, synced: list[str]) -> None:
    files, root = DurableFiles.at(str(tmp_path))
    files.make_folder(f"{root}/a/b")
    assert synced == [f"{root}/a", root]
    synced.clear()
    files.make_folder(f"{root}/a/b")
    files.write(f"{root}/a/b/t", [b"data"])
    files.replace(f"{root}/a/b/t", f"{root}/a/b/x")
    assert synced == [f"{root}/a/b/t", f"{root}/a/b"]
    synced.clear()
    files.sync_up(f"{root}/a/b", root)
    assert synced == [f"{root}/a/b", f"{root}/a", root]


def test_a_file_system_that_offers_durability_is_asked_for_it(tmp_path: Path) -> None:
    fs = NotingFileSystem(str(tmp_path))
    files = DurableFiles(fs)
    assert files.has_folders
    files.make_folder("a/b")
    files.write("a/b/t", [b"data"])
    files.replace("a/b/t", "a/b/x")
    assert fs.asked == ["sync a", "sync ", "sync file", "replace a/b/x", "sync a/b"]


def _refusing(number: int) -> Callable[[Any, str], None]:
    def sync_directory(_self: Any, path: str) -> None:
        raise OSError(number, os.strerror(number), path)

    return sync_directory


def test_folders_above_that_cannot_be_synced_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = DurableFiles(NotingFileSystem(str(tmp_path)))
    for number in (errno.EACCES, errno.EPERM, errno.EINVAL, errno.EROFS):
        monkeypatch.setattr(NotingFileSystem, "sync_directory", _refusing(number))
        files.make_folder(posixpath.join("a", str(number)))
    monkeypatch.setattr(NotingFileSystem, "sync_directory", _refusing(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        files.make_folder("b")
