"""A folder is tried before a job writes into it: what is wrong is told, and nothing is left behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from understudy import FileSink
from understudy.runtime.connectors import FileSource
from understudy.runtime.connectors.errors import UnknownFileSystem, UnusableOutput
from understudy.runtime.connectors.files import locations
from understudy.runtime.connectors.files.output_trial import output_named, try_output
from understudy.runtime.simulation.world.disk import SimulatedDisk
from understudy.runtime.simulation.world.file_system import using
from understudy.state import file_locations


class Refusing(LocalFileSystem):
    """A local folder on which nothing can be written, for this reason."""

    protocol = "refusing"
    number = errno.EROFS

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        raise OSError(self.number, os.strerror(self.number), path)

    pipe_file = makedirs  # type: ignore[assignment]


@pytest.fixture(autouse=True, scope="module")
def _known() -> None:
    fsspec.register_implementation("refusing", Refusing, clobber=True)


def everything_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "part-1").write_text("mine")
    try_output(str(tmp_path))
    assert everything_in(tmp_path) == [tmp_path / "part-1"]


def test_of_missing_folders_nothing_is_left(tmp_path: Path) -> None:
    try_output(f"{tmp_path}/a/b/c/")
    try_output(f"file://{tmp_path}/a/b/c")
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_back_after_a_power_cut(seed: int) -> None:
    """Seed 742290164 of the simulator."""
    with using(SimulatedDisk()) as disk:
        disk.mkdir("/kept")
        disk.sync_directory("/")
        try_output("sim:///kept/out")
        disk.crash(Random(seed))
        assert disk.list("/kept") == []


def test_two_at_once_do_not_take_each_others_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs are submitted at once, and both write below a folder that is not there yet."""
    write = LocalFileSystem.pipe_file

    def meanwhile(self: LocalFileSystem, path: str, *args: Any, **kwargs: Any) -> None:
        monkeypatch.setattr(LocalFileSystem, "pipe_file", write)
        try_output(f"{tmp_path}/collected/job-2/out")
        write(self, path, *args, **kwargs)
        (tmp_path / "collected").mkdir()  # the second job has begun

    monkeypatch.setattr(LocalFileSystem, "pipe_file", meanwhile)
    try_output(f"{tmp_path}/collected/job-1/out")
    assert everything_in(tmp_path) == [tmp_path / "collected"]


@pytest.mark.parametrize(("below", "where"), [("", "it"), ("/deep/er", "{file}")])
def test_a_file_in_the_way(tmp_path: Path, below: str, where: str) -> None:
    file = tmp_path / "taken"
    file.write_text("a file")
    with pytest.raises(UnusableOutput) as caught:
        try_output(f"{file}{below}")
    told = f"cannot write to {file}{below}: {where.format(file=file)} is a file, and wanted is a folder: choose another"
    assert str(caught.value).startswith(told)
    assert everything_in(tmp_path) == [file]
    assert file.read_text() == "a file"


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.EROFS, r"its file system is read-only: choose another folder, .* \(OSError: "),
        (errno.EACCES, r"this user may not write there: .* \(PermissionError: "),
        (errno.ENOSPC, "its disk is full"),
        (errno.EIO, r"OSError: \[Errno 5\]"),
    ],
)
def test_why_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: str) -> None:
    monkeypatch.setattr(Refusing, "number", number)
    for folder in (tmp_path, tmp_path / "new"):
        with pytest.raises(UnusableOutput, match=f"cannot write to refusing://{folder}: {told}"):
            try_output(f"refusing://{folder}")
    assert everything_in(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_the_right_to_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UnusableOutput, match="this user may not write there"):
        try_output(f"{tmp_path}/new")


@pytest.mark.parametrize("make", [try_output, lambda url: FileSource(url, "csv")])
def test_an_unknown_protocol_and_a_missing_package(make: Any) -> None:
    with pytest.raises(UnknownFileSystem, match=r"bogus://x/y: fsspec knows no protocol 'bogus': write a local path"):
        make("bogus://x/y")
    with pytest.raises(UnknownFileSystem, match=r"gs://x/y: gs:// needs the package gcsfs, which is not there: "):
        make("gs://x/y")


def test_a_missing_s3fs_is_installed_by_our_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(url: str) -> Any:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(file_locations, "url_to_fs", missing)
    with pytest.raises(UnknownFileSystem, match=r's3fs, which is not there: pip install "understudy\[s3\]"$'):
        locations.located("s3://bucket/folder")


def test_a_sink_of_other_machines_tries_only_what_they_share(tmp_path: Path) -> None:
    file = tmp_path / "taken"
    file.write_text("a file")
    FileSink(str(file)).check_at_submit(on_this_machine=False)
    with pytest.raises(UnusableOutput):
        FileSink(str(file)).check_at_submit(on_this_machine=True)
    with pytest.raises(UnknownFileSystem):
        FileSink("bogus://x/y").check_at_submit(on_this_machine=False)


def test_a_disk_that_has_bytes_and_no_inodes_is_not_called_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = os.statvfs_result((4096, 4096, 256, 256, 256, 600, 0, 0, 0, 255))
    monkeypatch.setattr("os.statvfs", lambda folder: disk)
    said = "its disk has no place for another file .1,048,576 of 1,048,576 bytes are free, and 0 of 600 files.: remove"
    for place in (str(tmp_path), f"file://{tmp_path}"):
        with pytest.raises(UnusableOutput, match=f"cannot write to {place}: {said}"), output_named(place):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("place", ["db.orders", "nowhere://lake/orders"])
def test_of_a_table_that_is_no_path_here_no_disk_is_looked_at(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog, or a library with a store of its own, knows its disk; that of the working directory is another."""
    monkeypatch.setattr(os, "statvfs", lambda _: pytest.fail("which disk is full?"))
    with (
        pytest.raises(UnusableOutput, match=rf"^cannot write to {place}: its disk is full: make space"),
        output_named(place),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(ConnectionError), output_named(place):
        raise ConnectionResetError(errno.ECONNRESET, "reset")
