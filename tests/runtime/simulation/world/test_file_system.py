"""SimulatedFileSystem: fsspec on the simulated disk, and our own storage and sinks on it, crashes included."""

from __future__ import annotations

import errno
import gc
import io
import pickle
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet
import pytest

from understudy.messages import JobId
from understudy.runtime.connectors import CollectSink, FileSource, LostTransaction, read_collected
from understudy.runtime.connectors.files.file_writers import WRITE_FORMATS
from understudy.runtime.connectors.files.output_directory import OutputDirectory
from understudy.runtime.simulation.world.disk import DiskOperation, SimulatedDisk, TornWrite
from understudy.runtime.simulation.world.file_system import SimulatedFileSystem, current_disk, using
from understudy.state import CheckpointStorage, DurableFileSystem, MissingState, UnreachableRoot, UnwritableRoot

from ...connectors.harness import Running

JOB = JobId("job-1")
SEEDS = range(20)


class Killed(BaseException):
    pass


class Process:
    """The hook of a disk that one process uses. It dies before its operation with the number `dies_at`."""

    def __init__(self, dies_at: int | None = None) -> None:
        self.is_alive = True
        self.dies_at = dies_at
        self.operations: list[DiskOperation] = []
        self.failing: OSError | None = None

    def revive(self) -> None:
        self.is_alive, self.dies_at = True, None

    def before(self, operation: DiskOperation) -> None:
        self.operations.append(operation)
        if not self.is_alive or len(self.operations) == self.dies_at:
            self.is_alive = False
            raise Killed
        if self.failing:
            raise TornWrite(1, self.failing) if operation.kind == "write" else self.failing


def disk_for(process: Process) -> SimulatedDisk:
    return SimulatedDisk(hooks=process, owner=lambda: process)


@pytest.fixture
def disk() -> Iterator[SimulatedDisk]:
    with using(SimulatedDisk(now=lambda: 3.0)) as disk:
        yield disk


@pytest.fixture
def fs(disk: SimulatedDisk) -> Any:
    return fsspec.url_to_fs("sim://storage")[0]


# -- fsspec


def test_files_come_and_go(fs: Any) -> None:
    fs.makedirs("sim://storage/a/b", exist_ok=True)
    fs.makedirs("/storage/a/b", exist_ok=True)
    with fs.open("/storage/a/b/x", "wb") as file:
        assert file.write(b"one") == 3
        assert file.tell() == 3
    with fs.open("/storage/a/b/x", "ab") as file:
        file.write(memoryview(b"two"))
        assert file.tell() == 6
    assert file.closed
    with fs.open("/storage/a/b/x", "rb") as file:
        file.seek(2)
        assert file.read() == b"etwo"
    assert fs.cat_file("/storage/a/b/x", 1, 3) == b"ne"
    assert fs.info("sim://storage/a/b/x") == {
        "name": "/storage/a/b/x",
        "size": 6,
        "type": "file",
        "mtime": 3.0,
        "created": 3.0,
    }
    fs.mv("/storage/a/b/x", "/storage/a")
    assert fs.find("/storage") == ["/storage/a/x"]
    fs.rm("/storage", recursive=True)
    assert not fs.exists("/storage")


def test_questions_about_paths(fs: Any) -> None:
    fs.makedirs("/storage/a/empty")
    fs.pipe("/storage/a/x", b"x")
    fs.pipe("/storage/y", b"y")
    assert (fs.exists("/storage/a"), fs.isdir("/storage/a"), fs.isfile("/storage/a")) == (True, True, False)
    assert (fs.exists("/storage/y"), fs.isdir("/storage/y"), fs.isfile("/storage/y")) == (True, False, True)
    for missing in ("/none", "/none/x", "/storage/y/z"):
        assert (fs.exists(missing), fs.isdir(missing), fs.isfile(missing), fs.find(missing)) == (
            False,
            False,
            False,
            [],
        )
    assert fs.ls("/storage", detail=False) == ["/storage/a", "/storage/y"]
    assert [each["type"] for each in fs.ls("/storage")] == ["directory", "file"]
    assert fs.ls("/storage/y", detail=False) == ["/storage/y"]
    assert fs.ls("/", detail=False) == ["/storage"]
    assert fs.find("/storage") == ["/storage/a/x", "/storage/y"]
    assert fs.find("/storage", maxdepth=1) == ["/storage/y"]
    assert fs.find("/storage/y") == ["/storage/y"]
    assert fs.glob("/storage/*") == ["/storage/a", "/storage/y"]
    assert fs.glob("/storage/**/x") == ["/storage/a/x"]
    assert [names for _, _, names in fs.walk("/storage")] == [["y"], ["x"], []]
    with pytest.raises(FileNotFoundError):
        fs.ls("/none")


def test_text_and_copies(fs: Any) -> None:
    fs.mkdir("/storage/texts")
    with fs.open("/storage/texts/x", "w", encoding="utf-8") as file:
        file.write("größer\n")
    assert fs.read_text("/storage/texts/x", encoding="utf-8") == "größer\n"
    fs.cp("/storage/texts/x", "/storage/texts/y")
    assert fs.cat("/storage/texts/y") == "größer\n".encode()
    fs.touch("/storage/texts/z")
    assert fs.size("/storage/texts/z") == 0


def test_folders_refuse_what_an_operating_system_refuses(fs: Any) -> None:
    fs.makedirs("/storage/a")
    fs.pipe("/storage/a/x", b"x")
    with pytest.raises(FileExistsError):
        fs.makedirs("/storage/a")
    with pytest.raises(FileExistsError):
        fs.makedirs("/storage/a/x", exist_ok=True)
    with pytest.raises(OSError, match="not empty"):
        fs.rmdir("/storage/a")
    with pytest.raises(FileNotFoundError):
        fs.mkdir("/storage/none/b", create_parents=False)
    with pytest.raises(FileNotFoundError):
        fs.open("/storage/none/x", "wb")
    with pytest.raises(IsADirectoryError):
        fs.open("/storage/a", "rb")
    with pytest.raises(ValueError, match="wanted rb, wb or ab"):
        fs.open("/storage/a/x", "r+b")


def test_worlds_may_be_nested_and_know_only_their_own_disk() -> None:
    with using(SimulatedDisk()) as outer:
        outer_fs = fsspec.filesystem("sim")
        outer_fs.pipe("/x", b"outer")
        with using(SimulatedDisk()) as inner:
            assert current_disk() is inner
            assert not fsspec.filesystem("sim").exists("/x")
            assert outer_fs.exists("/x")
        assert current_disk() is outer
        assert pickle.loads(pickle.dumps(outer_fs)).cat_file("/x") == b"outer"
    with pytest.raises(RuntimeError, match="sim:// is the disk of a simulated cluster"):
        fsspec.filesystem("sim")


def test_it_offers_what_durable_files_need(fs: Any) -> None:
    assert isinstance(fs, SimulatedFileSystem)
    assert isinstance(fs, DurableFileSystem)


# -- files that are open, and whose owner is dead


def test_small_writes_are_gathered(disk: SimulatedDisk, fs: Any) -> None:
    file = fs.open("/x", "wb")
    file.write(b"small")
    assert disk.used_bytes == 0
    file.flush()
    assert disk.used_bytes == 5
    file.write(bytes(70_000))
    assert disk.used_bytes == 70_005
    file.close()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.write(b"more")


def test_a_file_that_is_forgotten_writes_nothing(disk: SimulatedDisk, fs: Any) -> None:
    fs.open("/x", "wb").write(b"never flushed")
    gc.collect()
    assert dict(disk.files()) == {"/x": 0}


def test_a_failed_write_spoils_the_file() -> None:
    process = Process()
    with using(disk_for(process)) as disk:
        fs = fsspec.filesystem("sim")
        file = fs.open("/x", "wb")
        file.write(b"data")
        process.failing = OSError(errno.EIO, "broken")
        with pytest.raises(OSError, match="broken"):
            file.flush()
        process.failing = None
        for act in (file.flush, lambda: file.write(b"more"), lambda: fs.sync_file(file), file.close):
            with pytest.raises(OSError, match="broken"):
                act()
        assert file.closed
        assert disk.read("/x") == b"d"


def test_the_dead_write_nothing_and_ask_nothing() -> None:
    process = Process()
    with using(disk_for(process)) as disk:
        fs = fsspec.filesystem("sim")
        files = [fs.open(f"/{number}", "wb") for number in range(3)]
        text, writer = io.TextIOWrapper(files[0]), pa.parquet.ParquetWriter(files[1], pa.schema([("n", pa.int64())]))
        text.write("x")
        files[2].write(b"x")
        before, asked = dict(disk.files()), len(process.operations)
        process.is_alive = False
        files[2].write(bytes(100_000))
        files[2].close()
        assert files[2].closed
        writer.write_table(pa.table({"n": list(range(50_000))}))
        del files, text, writer
        gc.collect()
        assert (dict(disk.files()), len(process.operations)) == (before, asked)


def test_death_passes_through_the_writers_of_files() -> None:
    """Also through those that are not written in Python."""
    for dies_at in range(2, 6):
        process = Process(dies_at)
        with using(disk_for(process)):
            writer = pa.parquet.ParquetWriter(fsspec.filesystem("sim").open("/x", "wb"), pa.schema([("n", pa.int64())]))
            with pytest.raises(Killed):  # noqa: PT012
                for _ in range(10):
                    writer.write_table(pa.table({"n": list(range(100_000))}))


# -- CheckpointStorage


def storage_on(disk: SimulatedDisk) -> CheckpointStorage:
    with using(disk):
        return CheckpointStorage("sim://storage/checkpoints", new_suffix=iter("abcdefghijklmnop").__next__)


def test_checkpoints_are_stored_and_deleted(disk: SimulatedDisk) -> None:
    storage = CheckpointStorage("sim://storage/checkpoints")
    storage.check()
    handle = storage.write("job-1/chk-1/v", b"state")
    storage.write_sealed("job-1/chk-1/_metadata", b"metadata")
    assert storage.read(handle) == b"state"
    assert storage.read_sealed("sim://storage/checkpoints/job-1/chk-1/_metadata") == b"metadata"
    assert storage.resolve(f"{storage.root}/job-1/x") == "job-1/x"
    storage.delete(handle)
    storage.delete("job-1/chk-1/_metadata")
    assert current_disk().list("/storage/checkpoints") == []
    storage.write("job-1/chk-2/v", b"state")
    storage.delete_job(JOB)
    assert storage.list_files() == []
    with pytest.raises(MissingState):
        storage.read(handle)
    disk.rmdir("/storage/checkpoints")
    with pytest.raises(UnreachableRoot):
        storage.read(handle)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_stored_survives_a_crash(seed: int) -> None:
    disk = SimulatedDisk()
    storage = storage_on(disk)
    storage.check()
    handle = storage.write("job-1/chk-1/v", b"state")
    disk.crash(Random(seed))
    assert storage.read(handle) == b"state"
    storage.write("job-1/chk-1/v", b"other")
    disk.crash(Random(seed))
    assert disk.read("/storage/checkpoints/job-1/chk-1/v") == b"other"


@pytest.mark.parametrize("seed", SEEDS)
def test_metadata_survives_in_folders_whose_makers_died(seed: int) -> None:
    """Each folder may be made by a process that dies before it has synced the one above."""
    for dies_at in range(1, 30):
        process = Process(dies_at)
        disk = disk_for(process)
        storage = storage_on(disk)
        with suppress(Killed):
            storage.check()
            storage.write("job-1/chk-1/v", b"state")
        process.revive()
        storage.check()
        storage.write_sealed("job-1/chk-1/_metadata", b"metadata")
        disk.crash(Random(seed))
        assert storage.read_sealed("job-1/chk-1/_metadata") == b"metadata"


def test_a_writer_may_die_anywhere_and_leave_the_old_file_or_the_new() -> None:
    outcomes = set()
    for dies_at in range(1, 60):
        process = Process()
        disk = disk_for(process)
        storage = storage_on(disk)
        storage.write("job-1/x", b"old")
        process.dies_at = len(process.operations) + dies_at
        with suppress(Killed):
            storage.write("job-1/x", b"new")
        process.revive()
        outcomes.add(disk.read("/storage/checkpoints/job-1/x"))
        assert storage.list_files() == ["job-1/x"]
        disk.crash(Random(dies_at))
        assert disk.read("/storage/checkpoints/job-1/x") in (b"old", b"new")
    assert outcomes == {b"old", b"new"}


def test_a_full_disk_fails_the_write_and_keeps_the_file() -> None:
    disk = SimulatedDisk(capacity_bytes=8)
    storage = storage_on(disk)
    storage.write("job-1/x", b"old")
    with pytest.raises(OSError, match="No space left"):
        storage.write("job-1/x", b"much too long")
    assert dict(disk.files()) == {"/storage/checkpoints/job-1/x": 3}


def test_a_root_that_cannot_be_made_is_told(disk: SimulatedDisk) -> None:
    fsspec.filesystem("sim").pipe("/storage", b"a file")
    with pytest.raises(UnwritableRoot):
        CheckpointStorage("sim://storage/checkpoints").check()


# -- sinks and sources


def seal(directory: OutputDirectory, name: str, data: bytes) -> None:
    file = directory.create(name)
    file.write(data)
    directory.seal(file, name)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_sealed_and_published_survives_a_crash(disk: SimulatedDisk, seed: int) -> None:
    directory = OutputDirectory("sim://out/result", ".hidden")
    seal(directory, "1", b"one")
    seal(directory, "2", b"two")
    directory.create("3").write(b"three")
    disk.crash(Random(seed))
    assert {"1", "2"} <= set(directory.in_progress())
    directory.publish("1", "part-1")
    disk.crash(Random(seed))
    directory.publish("1", "part-1")
    assert directory.committed("part") == ["part-1"]
    assert (disk.read("/out/result/part-1"), disk.read("/out/result/.hidden/2")) == (b"one", b"two")
    directory.remove("2")
    directory.remove("3")
    directory.remove_hidden_if_empty()
    directory.take_back("part-1")
    disk.crash(Random(seed))
    assert directory.committed("part") == []
    with pytest.raises(LostTransaction):
        directory.publish("1", "part-1")


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_sealed_survives_whoever_made_the_folders(seed: int) -> None:
    for dies_at in range(1, 25):
        process = Process(dies_at)
        disk = disk_for(process)
        with using(disk):
            with suppress(Killed):
                seal(OutputDirectory("sim://out", ".hidden"), "1", b"one")
            process.revive()
            seal(OutputDirectory("sim://out", ".hidden"), "2", b"two")
        disk.crash(Random(seed))
        assert disk.read("/out/.hidden/2") == b"two"


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_a_source_reads_what_a_sink_would_write(disk: SimulatedDisk, format: str) -> None:
    fs = fsspec.filesystem("sim")
    fs.makedirs("/in")
    rows = pa.table({"n": [1, 2, 3], "text": ["a", "b", "c"]})
    with fs.open(f"/in/one.{format}", "wb") as file:
        writer = WRITE_FORMATS[format].open(file, rows.schema)
        for batch in rows.to_batches():
            writer.write(batch)
        writer.close()
    for path in ("sim://in", f"sim://in/one.{format}", "sim://in/*"):
        source = FileSource(path, format)
        assert (source.schema.names, len(source.splits)) == (["n", "text"], 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sink_commits_after_a_crash_what_it_had_prepared(disk: SimulatedDisk, seed: int) -> None:
    running = Running(CollectSink("sim://out"))
    running.take("a")
    snapshot = running.checkpoint(1)
    running.take("lost")
    running.checkpoint(2)
    disk.crash(Random(seed))
    restored = Running(CollectSink("sim://out"), snapshot, attempt=1)
    disk.crash(Random(seed))
    assert read_collected("sim://out") == ["a"]
    restored.operator.close()
    assert read_collected("sim://out") == ["a"]
