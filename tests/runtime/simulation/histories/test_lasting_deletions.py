"""What is deleted for good does not come back when the power fails: simulated histories found pointers of savepoints
that did, and led to state that was gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from understudy.actors.job_manager.job_files import delete_files
from understudy.messages import CheckpointId, JobId
from understudy.runtime.simulation.world.disk import SimulatedDisk
from understudy.runtime.simulation.world.file_system import using
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.savepoint_store import POINTER_VERSION, FilesystemSavepointStore, SavepointPointer
from understudy.state.errors import MissingSavepoint

JOB = JobId("job-1")
SEEDS = range(10)


@pytest.fixture
def disk() -> Iterator[SimulatedDisk]:
    with using(SimulatedDisk()) as found:
        yield found


def pointer(checkpoint_id: int) -> SavepointPointer:
    path = f"{JOB}/chk-{checkpoint_id}/_metadata"
    return SavepointPointer(POINTER_VERSION, JOB, CheckpointId(checkpoint_id), "sim://checkpoints", path, 1_000)


@pytest.mark.parametrize("folder", [None, "some/folder"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_savepoint_that_was_disposed_of(disk: SimulatedDisk, seed: int, folder: str | None) -> None:
    store = FilesystemSavepointStore(CheckpointStorage("sim://savepoints"))
    kept, disposed = store.store(pointer(7)), store.store(pointer(8), folder)
    store.dispose(disposed)
    disk.crash(Random(seed))
    assert store.load(kept) == pointer(7)
    with pytest.raises(MissingSavepoint):
        store.load(disposed)


def stored(*paths: str) -> CheckpointStorage:
    storage = CheckpointStorage("sim://checkpoints")
    for path in paths:
        storage.write_sealed(path, b"state")
    return storage


@pytest.mark.parametrize("seed", SEEDS)
def test_the_files_of_a_checkpoint_that_nobody_needs(disk: SimulatedDisk, seed: int) -> None:
    storage = stored("job-1/chk-1/a", "job-1/chk-1/b", "job-1/chk-2/a", "job-1/chk-2/b")
    delete_files(storage, ["job-1/chk-1/a", "job-1/chk-1/b", "job-1/chk-2/a"])
    disk.crash(Random(seed))
    assert storage.list_files() == ["job-1/chk-2/b"]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_job_had_removed_before_it_left_something(disk: SimulatedDisk, seed: int) -> None:
    """A simulated history found a file that could not be written back after the job's end: its removal was undone."""
    storage = stored("job-1/chk-1/a", "job-1/chk-2/a", "job-1/chk-3/a")
    storage.delete("job-1/chk-2/a")
    disk.remove("/checkpoints/job-1/chk-3/a")
    storage.delete_job(JOB, keep=["job-1/chk-1/a"])
    disk.crash(Random(seed))
    assert storage.list_files() == ["job-1/chk-1/a"]
    assert disk.list("/checkpoints/job-1") == ["chk-1"]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_job_leaves_that_nobody_needs(disk: SimulatedDisk, seed: int) -> None:
    storage = stored("job-1/chk-1/a", "job-1/chk-2/a", "job-1/chk-2/b")
    storage.delete_job(JOB, keep=["job-1/chk-2/b"])
    disk.crash(Random(seed))
    assert storage.list_files() == ["job-1/chk-2/b"]
