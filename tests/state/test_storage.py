"""CheckpointStorage: files are whole or absent, verified when read, and never outside of the root."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from understudy.messages import JobId, StateHandle
from understudy.state.durable_files import DurableFiles
from understudy.state.errors import CorruptState, MissingState, OutsideRoot, UnwritableRoot
from understudy.state.handle_bytes import inline_handle
from understudy.state.root_mark import MARK
from understudy.state.storage import CheckpointStorage, handle_reader
from understudy.state.store_requests import why_unusable

JOB = JobId("job-1")


@pytest.fixture(params=["path", "file", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStorage:
    urls = {
        "path": f"{tmp_path}/checkpoints",
        "file": f"file://{tmp_path}/checkpoints",
        "memory": f"memory://storage-{uuid4().hex}",
    }
    made = CheckpointStorage(urls[request.param])
    made.check()
    return made


@pytest.fixture
def local(tmp_path: Path) -> CheckpointStorage:
    return CheckpointStorage(str(tmp_path / "checkpoints"))


def on_disk(storage: CheckpointStorage, path: str) -> Path:
    return Path(storage.root) / path


def test_torn_files_of_writers_that_are_dead_are_deleted_and_no_others(tmp_path: Path) -> None:
    storage = CheckpointStorage(str(tmp_path))
    storage.write("outlets/a/whole", b"1")
    for name in (".writing-dead-.1", ".writing-alive-.2", ".writing-dead-too-.3"):
        (tmp_path / "outlets/a" / name).write_bytes(b"torn")
    storage.delete_torn("outlets/a", lambda name: name.startswith("dead"))
    assert sorted(path.name for path in (tmp_path / "outlets/a").iterdir()) == [".writing-alive-.2", "whole"]
    storage.delete_torn("outlets/missing", lambda name: True)


def test_a_location_is_one_path_that_leads_back(storage: CheckpointStorage) -> None:
    storage.write("job-1/a", b"x")
    there = storage.location("job-1/../job-1/a")
    assert storage.resolve(there) == "job-1/a"
    assert CheckpointStorage(storage.location()).location("job-1/a") == there
    assert CheckpointStorage(storage.location()).exists("job-1/a")


def test_what_is_written_is_read(storage: CheckpointStorage) -> None:
    handle = storage.write("job-1/chk-1/v-0-a", [b"one", b"", b"two"])
    assert (handle.path, handle.data, handle.size_bytes) == ("job-1/chk-1/v-0-a", None, 6)
    assert storage.read(handle) == b"onetwo"
    assert storage.exists("job-1/chk-1/v-0-a")


def test_a_second_write_replaces_the_file_whole(storage: CheckpointStorage) -> None:
    first, second = storage.write("job-1/x", b"a longer first"), storage.write("job-1/x", b"second")
    assert storage.read(second) == b"second"
    with pytest.raises(CorruptState):
        storage.read(first)


def test_inline_handles_are_verified_too(storage: CheckpointStorage) -> None:
    handle = inline_handle(b"data")
    assert storage.read(handle) == b"data"
    with pytest.raises(CorruptState, match="inline state: corrupt state: expected CRC-32"):
        storage.read(StateHandle(None, b"dbta", 4, handle.checksum))


def test_a_flipped_byte_is_found(local: CheckpointStorage) -> None:
    handle = local.write("job-1/chk-1/v", b"a state of some bytes")
    file = on_disk(local, "job-1/chk-1/v")
    content = bytearray(file.read_bytes())
    for at in range(len(content)):
        content[at] ^= 1
        file.write_bytes(content)
        with pytest.raises(CorruptState, match=r"job-1/chk-1/v: corrupt state: expected CRC-32 .{8}, found .{8}"):
            local.read(handle)
        content[at] ^= 1


def test_a_torn_file_is_found(local: CheckpointStorage) -> None:
    handle = local.write("job-1/chk-1/v", b"a state of some bytes")
    os.truncate(on_disk(local, "job-1/chk-1/v"), 7)
    with pytest.raises(CorruptState, match="expected 21 bytes, found 7 bytes"):
        local.read(handle)


def test_a_missing_file_is_named(storage: CheckpointStorage) -> None:
    handle = storage.write("job-1/chk-1/v", b"data")
    storage.delete(handle)
    with pytest.raises(MissingState, match="job-1/chk-1/v: missing state"):
        storage.read(handle)
    with pytest.raises(MissingState):
        storage.read(StateHandle("job-1/chk-1", None, 1, 0))


def test_a_sealed_file_needs_no_handle(storage: CheckpointStorage) -> None:
    storage.write_sealed("job-1/chk-1/_metadata", b"metadata")
    assert storage.read_sealed("job-1/chk-1/_metadata") == b"metadata"
    with pytest.raises(MissingState):
        storage.read_sealed("job-1/chk-2/_metadata")


@pytest.mark.parametrize("size", range(24))
def test_a_torn_sealed_file_is_found(local: CheckpointStorage, size: int) -> None:
    local.write_sealed("job-1/_metadata", b"metadata")
    os.truncate(on_disk(local, "job-1/_metadata"), size)
    with pytest.raises(CorruptState, match="job-1/_metadata"):
        local.read_sealed("job-1/_metadata")


def test_a_sealed_file_with_a_flipped_byte_is_found(local: CheckpointStorage) -> None:
    local.write_sealed("job-1/_metadata", b"metadata")
    file = on_disk(local, "job-1/_metadata")
    content = bytearray(file.read_bytes())
    for at in range(len(content)):
        content[at] ^= 0x80
        file.write_bytes(content)
        with pytest.raises(CorruptState):
            local.read_sealed("job-1/_metadata")
        content[at] ^= 0x80


@pytest.mark.parametrize("head", [b"", b"USS1"])
def test_a_huge_file_in_place_of_a_sealed_one_is_refused_unread(local: CheckpointStorage, head: bytes) -> None:
    """A TiB of nothing, which does not fit into memory; a pointer's path comes from outside."""
    local.write_sealed("job-1/_metadata", b"metadata")
    file = on_disk(local, "job-1/_metadata")
    file.write_bytes(head)
    os.truncate(file, 1 << 40)
    with pytest.raises(CorruptState, match="job-1/_metadata"):
        local.read_sealed("job-1/_metadata")


def test_a_pipe_in_place_of_a_file_is_refused_unopened(local: CheckpointStorage) -> None:
    """To open it would wait until somebody writes to it."""
    local.check()
    os.mkfifo(on_disk(local, "_metadata"))
    for read in (local.read_sealed, lambda path: local.read(StateHandle(path, None, 1, 0))):
        with pytest.raises(CorruptState, match="expected a regular file, found a named pipe"):
            read("_metadata")


def test_deleting_what_is_gone_is_fine(storage: CheckpointStorage) -> None:
    storage.delete("job-1/chk-1/never")
    storage.delete(inline_handle(b"x"))
    storage.delete_job(JOB)


def test_a_job_that_is_deleted_keeps_what_is_wanted_and_nothing_else(storage: CheckpointStorage) -> None:
    for path in ["job-1/chk-1/a", "job-1/chk-1/b", "job-1/chk-2/a", "job-1/chk-3/.writing-a-1", "job-2/chk-1/a"]:
        storage.write(path, b"x")
    storage.delete_job(JOB, keep={"job-1/chk-1/b", "job-2/chk-1/a", "job-1/chk-9/gone"})
    assert sorted(path for path in storage._files.find(storage.root) if not path.endswith(MARK)) == [
        f"{storage.root}/job-1/chk-1/b",
        f"{storage.root}/job-2/chk-1/a",
    ]
    storage.delete_job(JOB, keep={"job-2/chk-1/a"})
    assert storage.list_files() == ["job-2/chk-1/a"]


def test_where_a_job_is_deleted_in_part_no_metadata_lead_to_files_that_are_gone(
    storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ["job-1/chk-1/_metadata", "job-1/chk-2/b", "job-1/shared/f"]:
        storage.write(path, b"x")
    remove, allowed = storage._files.remove, ["one"]

    def once(path: str) -> None:
        if not allowed:
            raise OSError("the process is about to die")
        allowed.pop()
        remove(path)

    monkeypatch.setattr(storage._files, "remove", once)
    with pytest.raises(OSError, match="about to die"):
        storage.delete_job(JOB, keep={"job-1/chk-2/b"})
    assert storage.list_files() == ["job-1/chk-2/b", "job-1/shared/f"]


def test_logs_of_inlets_stay_also_where_no_checkpoint_does(storage: CheckpointStorage) -> None:
    for path in ["job-1/inlets/orders/0/1", "job-1/chk-1/.writing-a-1"]:
        storage.write(path, b"x")
    storage.delete_job(JOB, keep_inlets=True)
    assert storage.list_files() == ["job-1/inlets/orders/0/1"]
    storage.delete_job(JOB)
    assert storage.list_files() == []


def test_a_folder_goes_with_its_last_file(local: CheckpointStorage) -> None:
    for path in ["job-1/chk-1/a", "job-1/chk-1/b", "job-1/chk-2/a"]:
        local.write(path, b"x")
    local.delete("job-1/chk-1/a")
    assert on_disk(local, "job-1/chk-1").is_dir()
    local.delete("job-1/chk-1/b")
    assert not on_disk(local, "job-1/chk-1").exists()
    local.delete("job-1/chk-2/a")
    assert list(Path(local.root).iterdir()) == []
    local.write("job-1/chk-3/a", b"x")
    assert local.list_files() == ["job-1/chk-3/a"]


def test_files_are_listed_in_order(storage: CheckpointStorage) -> None:
    assert storage.list_files() == []
    for path in ["job-1/chk-10/b", "job-1/chk-10/a", "job-1/chk-9/a", "job-1/other/x", "job-2/chk-1/a"]:
        storage.write(path, b"x")
    assert storage.list_files("job-1/chk-10") == ["job-1/chk-10/a", "job-1/chk-10/b"]
    assert len(storage.list_files()) == 5


def test_a_job_is_deleted_without_its_neighbours(storage: CheckpointStorage) -> None:
    for path in ["job-1/chk-1/a", "job-1/chk-2/a", "job-10/chk-1/a"]:
        storage.write(path, b"x")
    storage.delete_job(JOB)
    assert storage.list_files() == ["job-10/chk-1/a"]


def test_a_job_goes_whole_though_others_delete_its_files_at_the_same_time(
    local: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by a chaos run: removing a tree stops at a file or folder that has gone since it was listed."""
    first, _ = (local.write(f"job-1/chk-{number}/a", b"x") for number in (1, 2))

    def others_are_quicker(path: str, **options: Any) -> None:
        monkeypatch.undo()
        local.delete(first)
        raise FileNotFoundError(first.path)

    monkeypatch.setattr(shutil, "rmtree", others_are_quicker)
    local.delete_job(JOB)
    assert not on_disk(local, "job-1").exists()


class DiskFull(Exception):
    pass


def chunks_until_the_disk_is_full() -> Iterator[bytes]:
    yield b"half of it"
    raise DiskFull


def test_a_failed_write_leaves_nothing_behind(storage: CheckpointStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.write("job-1/x", b"before")
    real = storage._put

    def put(path: str, parts: object) -> None:
        real(path, [b"half"])
        raise DiskFull

    monkeypatch.setattr(storage, "_put", put)
    with pytest.raises(DiskFull):
        storage.write("job-1/x", b"after")
    with pytest.raises(DiskFull):
        storage.write("job-1/y", chunks_until_the_disk_is_full())
    assert storage.list_files() == ["job-1/x"]
    assert [path for path in storage._fs.find(storage.root) if ".writing" in path] == []
    monkeypatch.undo()
    assert storage.read(storage.write("job-1/x", b"after")) == b"after"


@pytest.mark.parametrize("write", ["write", "write_sealed", "create_sealed"])
def test_a_folder_that_another_writer_removes_as_it_fails_is_made_again(
    write: str, local: CheckpointStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there when this one looked, and is gone when it opens its file. The other one's error is its own."""
    another, make_folder = CheckpointStorage(local.root), DurableFiles.make_folder
    monkeypatch.setattr(another, "_put", cannot_put)
    failed: list[BaseException] = []

    def and_the_other_one_fails(files: DurableFiles, path: str) -> None:
        make_folder(files, path)
        if not failed:
            failed.append(DiskFull())
            with pytest.raises(DiskFull):
                another.write("job-1/chk-1/b", b"x")

    monkeypatch.setattr(DurableFiles, "make_folder", and_the_other_one_fails)
    getattr(local, write)("job-1/chk-1/a", b"x")
    assert failed
    assert local.list_files() == ["job-1/chk-1/a"]


def cannot_put(path: str, parts: object) -> None:
    raise DiskFull


def test_temporary_files_of_a_crash_are_never_seen(local: CheckpointStorage) -> None:
    local.write("job-1/chk-1/v", b"x")
    on_disk(local, "job-1/chk-1/.writing-w-123").write_bytes(b"torn")
    on_disk(local, "job-1/chk-2").mkdir()
    on_disk(local, "job-1/chk-2/.writing-w-123").write_bytes(b"torn")
    assert local.list_files() == ["job-1/chk-1/v"]
    local.delete_job(JOB)
    assert not on_disk(local, "job-1").exists()


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "job/../../x",
        "/etc/passwd",
        "file:///etc/passwd",
        "",
        ".",
        "job/..",
        "memory://other/x",
        "a\0b",
        "s3://bucket/x",
        "nothing://x",
        "simplecache::file:///etc/passwd",
    ],
)
def test_paths_outside_of_the_root_are_refused(local: CheckpointStorage, path: str) -> None:
    for refused in (local.resolve, local.delete, local.read_sealed, lambda it: local.write(it, b"x")):
        with pytest.raises(OutsideRoot):
            refused(path)


def test_a_link_out_of_the_root_is_refused(local: CheckpointStorage, tmp_path: Path) -> None:
    local.check()
    (tmp_path / "secret").write_bytes(b"secret")
    on_disk(local, "link").symlink_to(tmp_path)
    with pytest.raises(OutsideRoot):
        local.resolve("link/secret")


@pytest.mark.parametrize("job", ["..", ".", "", "/", "../checkpoints-of-others"])
def test_a_job_id_never_leads_out_of_the_root(local: CheckpointStorage, job: str) -> None:
    local.write("job-1/x", b"x")
    with suppress(OutsideRoot):
        local.delete_job(JobId(job))
    assert local.list_files() == ["job-1/x"]


def test_absolute_paths_and_urls_below_the_root_are_accepted(storage: CheckpointStorage) -> None:
    storage.write_sealed("job-1/chk-1/_metadata", b"m")
    assert storage.resolve(f"{storage.root}/job-1/chk-1/_metadata") == "job-1/chk-1/_metadata"
    if "://" in storage.url:
        assert storage.read_sealed(f"{storage.url}/job-1/chk-1/_metadata") == b"m"


def test_an_unwritable_root_is_told_early(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(UnwritableRoot, match="cannot be written"):
        CheckpointStorage(str(tmp_path / "file" / "checkpoints")).check()


def test_check_leaves_its_mark_behind_and_nothing_else(storage: CheckpointStorage) -> None:
    assert storage._fs.find(storage.root) == ([f"{storage.root}/{MARK}"] if storage._files.is_local else [])


def test_several_threads_write_and_read_at_once(storage: CheckpointStorage) -> None:
    def work(number: int) -> bool:
        data = bytes([number]) * 10_000
        handle = storage.write(f"job-1/chk-{number % 3}/v-{number}", data)
        return storage.read(handle) == data

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))
    assert len(storage.list_files()) == 64


def test_a_shared_file_is_read_once_per_restore(local: CheckpointStorage) -> None:
    handle = local.write("job-1/x", b"data")
    read = handle_reader(local)
    assert read(handle) == b"data"
    on_disk(local, "job-1/x").unlink()
    assert read(handle) == b"data"
    with pytest.raises(MissingState):
        handle_reader(None)(handle)


def test_a_file_whose_folder_cannot_be_synced_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote it is told that it failed, so nobody would ever delete it."""
    storage = CheckpointStorage(str(tmp_path))
    storage.write("job/chk-1/a", b"state")

    def fail(self: DurableFiles, path: str) -> None:
        raise OSError(5, "the disk failed", path)

    monkeypatch.setattr(DurableFiles, "sync_folder", fail)
    with pytest.raises(OSError, match="the disk failed"):
        storage.write("job/chk-1/b", b"state")
    assert storage.list_files() == ["job/chk-1/a"]


def test_a_file_system_that_connects_at_once_and_cannot_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of ftp://."""

    def unreachable(_url: str) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr(DurableFiles, "at", unreachable)
    with pytest.raises(UnwritableRoot, match=r"ftp://me:\*\*\*@host/x: .* cannot be written: Name or"):
        CheckpointStorage("ftp://me:hunter2@host/x")


@pytest.mark.parametrize("prefix", ["", "file://"])
@pytest.mark.parametrize("inner", ["", "/checkpoints"])
def test_a_file_where_a_folder_is_wanted_is_said_to_be_one(tmp_path: Path, prefix: str, inner: str) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(UnwritableRoot, match=r"there is a file (of this name|on this path).*: correct the path"):
        CheckpointStorage(f"{prefix}{tmp_path}/taken{inner}").check()


@pytest.mark.parametrize("url", ["/srv/checkpoints", "file:///srv/checkpoints"])
def test_a_folder_that_may_not_be_written_is_no_matter_of_credentials(url: str) -> None:
    said = why_unusable(url, PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/srv"))
    assert said == (
        "[Errno 13] Permission denied: '/srv': the user of this process may not write there: choose another folder, or "
        "change its permissions"
    )
    assert "credentials" in why_unusable("s3://bucket/checkpoints", PermissionError("Access Denied"))


def test_a_folder_that_this_user_may_not_look_into_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a job that goes on from its newest checkpoint would go on from an older one. The root may hold more."""
    storage, scandir = CheckpointStorage(str(tmp_path)), os.scandir
    for path in ("job-1/chk-1/_metadata", "job-1/chk-2/_metadata"):
        storage.write_sealed(path, b"x")
    barred = tmp_path / "job-1" / "chk-2"

    def scan(path: str) -> Any:
        if Path(path) == barred:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)
    with pytest.raises(PermissionError, match=rf"cannot look into {barred}: user \d+ of this host may not: let that"):
        storage.list_files("job-1")
    assert storage.list_files() == ["job-1/chk-1/_metadata"]
    monkeypatch.undo()
    assert storage.list_files("job-1") == storage.list_files() == ["job-1/chk-1/_metadata", "job-1/chk-2/_metadata"]
    assert storage.list_files("job-2") == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_a_file_that_nobody_can_look_at_is_not_taken_for_missing(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the checkpoint that a failed job leaves: it would be reported as deleted or moved."""
    storage, look = CheckpointStorage(str(tmp_path)), os.stat

    def barred(path: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("_metadata"):
            raise OSError(number, os.strerror(number), path)
        return look(path, **options)

    monkeypatch.setattr(os, "stat", barred)
    with pytest.raises(OSError, match=os.strerror(number)):
        storage.exists("job-1/chk-1/_metadata")
    assert not storage.exists("job-1/chk-1/other")
    assert not storage.exists("job-1/chk-1/" + "long" * 100)
