"""From a savepoint's path to its checkpoint, and not to anything else."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from understudy.messages import (
    CheckpointId,
    JobId,
    KeyedStateHandle,
    OperatorId,
    OperatorSubtaskState,
    StateHandle,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state import CheckpointStorage, inline_handle
from understudy.state.checkpoints.checkpoint_metadata import encode_metadata
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint, VertexSnapshot
from understudy.state.checkpoints.savepoint_store import FilesystemSavepointStore, HeapSavepointStore
from understudy.state.checkpoints.savepoints import Savepoints
from understudy.state.errors import CorruptState, ForgedPointer, MissingSavepoint, MissingState, UnreachableRoot

JOB = JobId("job-1")


class Place:
    """A checkpoint directory and a savepoint directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints = CheckpointStorage(str(folder / "checkpoints"))
        self.pointers = CheckpointStorage(str(folder / "savepoints"))
        self.savepoints = Savepoints(FilesystemSavepointStore(self.pointers), CheckpointStorage)

    def checkpoint(self, checkpoint_id: int = 3, *more: StateHandle) -> CompletedCheckpoint:
        """A stored one with one file of state, and what is named besides."""
        own = self.checkpoints.write(f"{JOB}/chk-{checkpoint_id}/map-0-a", b"state")
        completed = CompletedCheckpoint(
            JOB,
            CheckpointId(checkpoint_id),
            timestamp_ms=10,
            completed_ms=20,
            state_size_bytes=5,
            vertices={VertexId("map"): VertexSnapshot(1, 128, {SubtaskIndex(0): state_of(own, *more)})},
            is_savepoint=True,
        )
        path = f"{JOB}/chk-{checkpoint_id}/_metadata"
        self.checkpoints.write_sealed(path, encode_metadata(completed))
        return replace(completed, metadata_path=path)

    def take(self, completed: CompletedCheckpoint) -> str:
        return self.savepoints.store(completed, self.checkpoints, None)

    def forge(self, path: str, **changes: Any) -> str:
        """The same pointer with other content."""
        store = FilesystemSavepointStore(self.pointers)
        return store.store(replace(store.load(path), **changes))


def state_of(*handles: StateHandle) -> SubtaskState:
    keyed = tuple(KeyedStateHandle(0, 127, {0: (0, 5)}, handle, "filesystem") for handle in handles)
    return SubtaskState({OperatorId("op"): OperatorSubtaskState(keyed)})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_savepoint_is_read_down_to_its_handles(place: Place) -> None:
    completed = place.checkpoint()
    path = place.take(completed)
    found = Savepoints(FilesystemSavepointStore(place.pointers), CheckpointStorage).load(f"file://{path}")
    assert found.path == path
    assert found.checkpoint == completed
    assert found.storage.location() == place.checkpoints.location()
    assert [file.path for file in found.files()] == ["job-1/chk-3/_metadata", "job-1/chk-3/map-0-a"]


def test_state_that_travelled_inside_the_acknowledgement_needs_no_file(place: Place) -> None:
    """With the memory backend the metadata holds all bytes: nothing of a savepoint is left in any process."""
    completed = replace(
        place.checkpoint(),
        vertices={VertexId("map"): VertexSnapshot(1, 128, {SubtaskIndex(0): state_of(inline_handle(b"hello"))})},
    )
    place.checkpoints.write_sealed(completed.metadata_path, encode_metadata(completed))
    found = place.savepoints.load(place.take(completed))
    assert [file.path for file in found.files()] == ["job-1/chk-3/_metadata"]
    (state,) = found.checkpoint.states()
    assert found.storage.read(state.operators[OperatorId("op")].keyed[0].handle) == b"hello"


def test_a_removed_savepoint_tells_its_files_and_deletes_none(place: Place) -> None:
    path = place.take(place.checkpoint())
    removed = place.savepoints.remove(path)
    assert (removed.path, removed.job_id) == (path, JOB)
    assert [file.path for file in removed.files] == ["job-1/chk-3/_metadata", "job-1/chk-3/map-0-a"]
    assert place.pointers.list_files() == []
    assert len(place.checkpoints.list_files()) == 2
    with pytest.raises(MissingSavepoint):
        place.savepoints.load(path)


def test_files_of_others_are_not_a_savepoints_to_delete(place: Place) -> None:
    """Metadata may name what it likes; only what lies in its job's folder is told."""
    elsewhere = place.checkpoints.write("job-2/chk-1/a", b"state")
    similar = place.checkpoints.write("job-10/a", b"state")
    climbing = replace(elsewhere, path="job-1/../job-2/chk-1/a")
    path = place.take(place.checkpoint(3, elsewhere, similar, climbing))
    assert [file.path for file in place.savepoints.remove(path).files] == [
        "job-1/chk-3/_metadata",
        "job-1/chk-3/map-0-a",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata_path": "job-1/chk-4/_metadata"},
        {"metadata_path": "../secret"},
        {"metadata_path": "job-1/chk-3/map-0-a"},
        {"job_id": JobId("..")},
        {"job_id": JobId("."), "metadata_path": "./chk-3/_metadata"},
        {"checkpoint_id": CheckpointId(4)},
    ],
)
def test_a_pointer_that_leads_elsewhere_is_refused_and_stays(place: Place, changes: dict[str, Any]) -> None:
    path = place.forge(place.take(place.checkpoint()), **changes)
    for use in (place.savepoints.load, place.savepoints.remove):
        with pytest.raises(ForgedPointer, match="leads to"):
            use(path)
    assert len(place.pointers.list_files()) == 2
    assert len(place.checkpoints.list_files()) == 2


def test_a_pointer_to_another_jobs_metadata_is_refused(place: Place) -> None:
    """The file is where the pointer says, but it is somebody else's."""
    path = place.take(place.checkpoint())
    shutil.copytree(place.folder / "checkpoints" / JOB, place.folder / "checkpoints" / "job-2")
    forged = place.forge(path, job_id=JobId("job-2"), metadata_path="job-2/chk-3/_metadata")
    with pytest.raises(ForgedPointer, match=r"leads to checkpoint 3 of job-1; wanted 3 of job-2"):
        place.savepoints.load(forged)


def test_a_pointer_in_the_file_of_another_is_refused_and_nothing_of_the_older_one_goes(place: Place) -> None:
    older, newer = (place.take(place.checkpoint(checkpoint_id)) for checkpoint_id in (3, 4))
    shutil.copy(older, newer)
    for use in (place.savepoints.load, place.savepoints.remove):
        with pytest.raises(ForgedPointer, match=rf"holds the pointer of {Path(older).name}, of checkpoint 3; wanted"):
            use(newer)
    assert place.savepoints.load(older).checkpoint.checkpoint_id == 3


def test_pointers_that_were_moved_with_their_folder_lead_where_they_did(place: Place) -> None:
    path = place.take(place.checkpoint())
    moved = shutil.move(place.pointers.location(), place.folder / "moved")
    there = Savepoints(FilesystemSavepointStore(CheckpointStorage(str(moved))), CheckpointStorage)
    assert there.load(f"{moved}/{Path(path).name}").checkpoint.checkpoint_id == 3


def test_a_job_folder_that_is_a_link_is_not_followed(place: Place) -> None:
    path = place.take(place.checkpoint())
    folder = place.folder / "checkpoints" / JOB
    folder.rename(folder.with_name("real"))
    folder.symlink_to(folder.with_name("real"))
    with pytest.raises(ForgedPointer):
        place.savepoints.remove(path)


@pytest.mark.parametrize("root", ["", "no-such-protocol://x", "memory://elsewhere"])
def test_a_root_that_is_none_is_an_error_by_name(place: Place, root: str) -> None:
    path = place.forge(place.take(place.checkpoint()), checkpoint_root=root)
    with pytest.raises((CorruptState, MissingState)):
        place.savepoints.load(path)


def test_without_its_metadata_it_cannot_be_used_but_removed(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    path = place.take(place.checkpoint())
    place.checkpoints.delete(f"{JOB}/chk-3/_metadata")
    with pytest.raises(MissingState, match="_metadata"):
        place.savepoints.load(path)
    assert place.savepoints.remove(path).files == ()
    assert "its state cannot be found" in caplog.text


def test_with_broken_metadata_it_can_be_removed_but_no_state_is_guessed(place: Place) -> None:
    path = place.take(place.checkpoint())
    place.checkpoints.write(f"{JOB}/chk-3/_metadata", b"broken")
    with pytest.raises(CorruptState):
        place.savepoints.load(path)
    assert place.savepoints.remove(path).files == ()


def test_with_its_disk_away_it_is_not_removed(place: Place) -> None:
    path = place.take(place.checkpoint())
    (place.folder / "checkpoints").rename(place.folder / "unmounted")
    with pytest.raises(UnreachableRoot):
        place.savepoints.remove(path)
    assert len(place.pointers.list_files()) == 1


def test_with_a_root_that_cannot_be_opened_here_it_is_not_removed(place: Place) -> None:
    """Its state may well be there for a cluster that has the file system's package."""
    path = place.forge(place.take(place.checkpoint()), checkpoint_root="no-such-protocol://x")
    kept = len(place.pointers.list_files())
    with pytest.raises(CorruptState, match="no-such-protocol"):
        place.savepoints.remove(path)
    assert len(place.pointers.list_files()) == kept


class TestRefusal:
    """Savepoints on files of a job whose checkpoints go with the cluster would lose their state."""

    def test_files_that_point_into_the_temporary_folder(self, tmp_path: Path) -> None:
        store = FilesystemSavepointStore(CheckpointStorage(str(tmp_path / "savepoints")))
        savepoints = Savepoints(store, CheckpointStorage, temporary=str(tmp_path / "work"))
        refusal = savepoints.refusal(str(tmp_path / "work" / "checkpoints"))
        assert refusal is not None
        assert "set checkpoint_dir" in refusal
        assert savepoints.refusal(str(tmp_path / "work")) is not None
        assert savepoints.refusal(str(tmp_path / "workshop")) is None

    def test_memory_that_points_there_is_lost_with_it(self, tmp_path: Path) -> None:
        savepoints = Savepoints(HeapSavepointStore(), CheckpointStorage, temporary=str(tmp_path))
        assert savepoints.refusal(str(tmp_path / "checkpoints")) is None

    def test_a_cluster_without_a_temporary_folder(self, tmp_path: Path) -> None:
        store = FilesystemSavepointStore(CheckpointStorage(str(tmp_path / "savepoints")))
        assert Savepoints(store, CheckpointStorage).refusal(str(tmp_path)) is None
