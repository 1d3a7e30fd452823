"""A full disk: the error names the folder and says what to do, whichever way something is written."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from understudy.state import CheckpointStorage, DurableFiles
from understudy.state.errors import LocalStateFailed, UnwritableFolder
from understudy.state.full_disk import folder_named
from understudy.state.record_log import RecordLog
from understudy.state.rocks.store import failed

Use = Callable[[DurableFiles, str], Any]

USES: dict[str, Use] = {
    "write": lambda files, folder: files.write(f"{folder}/file", [b"x"]),
    "write new": lambda files, folder: files.write_new(f"{folder}/file", f"{folder}/.file", [b"x"]),
    "create": lambda files, folder: files.create(f"{folder}/file"),
    "make folder": lambda files, folder: files.make_folder(folder),
    "log": lambda files, folder: RecordLog(files, folder, folder).writer("a").append([b"x"]),
}


def no_room(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_the_folder_is_named_with_what_to_do(use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "checkpoints"
    if use is not USES["make folder"]:
        folder.mkdir()
    for name in ("os.fsync", "os.pwrite", "os.fdatasync"):
        monkeypatch.setattr(name, no_room)
    monkeypatch.setattr(LocalFileSystem, "makedirs", no_room)
    if use is USES["create"]:
        monkeypatch.setattr(LocalFileSystem, "open", no_room)
    with pytest.raises(OSError, match=f"write to {folder}: its disk is full .*free.*: make space, or") as raised:
        use(DurableFiles.at(str(tmp_path))[0], str(folder))
    assert raised.value.errno == errno.ENOSPC
    assert str(raised.value).count("cannot write to") == 1
    assert "No space left" in str(raised.value)


def test_a_log_says_how_much_it_needs_where_the_disk_is_not_quite_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its segment is of zeros: what there was room for is removed again, and so is free when the text is made."""
    disk = os.statvfs_result((4096, 4096, 256, 256, 256, 100, 100, 100, 0, 255))
    monkeypatch.setattr("os.pwrite", no_room)
    monkeypatch.setattr("os.statvfs", lambda folder: disk)
    with pytest.raises(UnwritableFolder, match="1,048,576 of 1,048,576 bytes are free; 4,194,304 are needed"):
        USES["log"](DurableFiles.at(str(tmp_path))[0], str(tmp_path))


def test_a_disk_that_has_bytes_and_no_inodes_is_not_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looked with `df` saw a disk that was empty, and made space in vain."""
    disk = os.statvfs_result((4096, 4096, 256, 256, 256, 600, 0, 0, 0, 255))
    monkeypatch.setattr("os.fsync", no_room)
    monkeypatch.setattr("os.statvfs", lambda folder: disk)
    said = "its disk has no place for another file .*, and 0 of 600 files.: remove some, or choose another folder"
    with pytest.raises(UnwritableFolder, match=said):
        USES["write"](DurableFiles.at(str(tmp_path))[0], str(tmp_path))


def test_so_is_that_of_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = CheckpointStorage(str(tmp_path))
    monkeypatch.setattr("os.fsync", no_room)
    for write in (storage.write, storage.write_sealed):
        (tmp_path / "job-1" / "chk-1").mkdir(parents=True, exist_ok=True)
        with pytest.raises(OSError, match=f"cannot write to {tmp_path}/job-1/chk-1: its disk is full"):
            write("job-1/chk-1/state", b"x")


@pytest.mark.parametrize("fails", ["write", "rename", "sync of the folder"])
def test_of_a_checkpoint_that_could_not_be_written_no_folder_stays(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job on a full disk tries again and again, each time in a folder of its own."""
    storage = CheckpointStorage(str(tmp_path))
    storage.write("job-1/chk-1/state", b"kept")
    with monkeypatch.context() as patched:
        if fails == "write":
            patched.setattr("os.fsync", no_room)
        elif fails == "rename":
            patched.setattr("os.replace", no_room)
        else:
            patched.setattr(DurableFiles, "sync_folder", no_room)
        for path in ("job-1/chk-1/another", "job-1/chk-2/state"):
            with pytest.raises(OSError, match=r"disk is full|No space left"):
                storage.write(path, b"x")
    assert sorted(each.name for each in (tmp_path / "job-1").iterdir()) == ["chk-1"]
    assert storage.list_files() == ["job-1/chk-1/state"]


def test_another_error_stays_as_it_is() -> None:
    with pytest.raises(FileNotFoundError) as raised, folder_named("/folder/file", is_local=True):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")
    assert str(raised.value) == "[Errno 2] No such file or directory"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_a_folder_of_another_user_is_named_with_who_may_not(number: int) -> None:
    """The folder in which something was to be made, as above the one that was to be written."""
    match = rf"cannot write to /shared: user {os.geteuid()} of this host may not: .* on each host"
    with pytest.raises(UnwritableFolder, match=match), folder_named("/shared/job-1/chk-1/file", is_local=True):
        raise OSError(number, os.strerror(number), "/shared/job-1")
    match = "cannot write to /shared/job-1: user"
    with pytest.raises(UnwritableFolder, match=match), folder_named("/shared/job-1/file", is_local=True):
        raise OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("number", "match"),
    [
        (errno.EDQUOT, "its quota is used up: make space"),
        (errno.EROFS, "its file system is read-only: choose another folder"),
        (errno.EFBIG, r"no file there may become so large: raise the limit \(ulimit -f\)"),
    ],
)
def test_so_are_other_reasons(number: int, match: str) -> None:
    with (
        pytest.raises(UnwritableFolder, match=match) as raised,
        folder_named("/folder/file", is_local=True),
        folder_named("/folder/deep/file", is_local=True),
    ):
        raise OSError(number, "said")
    assert raised.value.errno == number
    assert "cannot write to /folder/deep: " in str(raised.value)


def test_of_a_disk_that_is_no_machines_nothing_is_said_to_be_free(tmp_path: Path) -> None:
    with pytest.raises(UnwritableFolder, match="its disk is full: make"), folder_named(f"{tmp_path}/a", is_local=False):
        no_room()


def test_rocksdb_names_its_folder_once() -> None:
    found = "IO error: No space left on device: While appending to file: /disk/1-db/000008.sst: No space left on device"
    text = str(LocalStateFailed("/disk/1-db", found))
    assert text.count("/disk/1-db") == 1
    assert "file: 000008.sst: No space left on device; see that" in text


@pytest.mark.parametrize(("found", "todo"), [("File too large", "ulimit -f"), ("Too many open files", "ulimit -n")])
def test_rocksdb_names_the_limit_that_it_met(found: str, todo: str) -> None:
    text = str(LocalStateFailed("/disk/1-db", f"IO error: While open a file for appending: /disk/1-db/8.sst: {found}"))
    assert todo in text
    assert "has room" not in text


def test_rocksdb_says_what_is_left_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes may be left, and no place for another file."""
    disk = os.statvfs_result((4096, 4096, 256, 256, 256, 600, 0, 0, 0, 255))
    monkeypatch.setattr("os.statvfs", lambda folder: disk)
    text = str(failed(f"{tmp_path}/1-db", "IO error: No space left on device: While mkdir: 1-3.tmp"))
    said = "its disk has no place for another file (1,048,576 of 1,048,576 bytes are free, and 0 of 600 files): remove"
    assert said in text
    assert text.endswith("or choose another folder, by state_dir")
    assert "has room" not in text
