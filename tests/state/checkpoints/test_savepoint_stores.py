"""Where each job's savepoints are kept by default, and where the path of one may lead."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from understudy.messages import CheckpointId, JobId
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.checkpoint_metadata import encode_metadata
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint
from understudy.state.checkpoints.savepoint_store import HEAP_PATHS, FilesystemSavepointStore, HeapSavepointStore
from understudy.state.checkpoints.savepoints import Savepoints
from understudy.state.errors import (
    CorruptState,
    ForgedPointer,
    MissingSavepoint,
    MissingState,
    OutsideRoot,
    UnknownSavepointRoot,
    WrongSavepointStore,
)

JOB = JobId("job-1")


class Place:
    """A cluster whose configuration names no store, and one job with a checkpoint of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "checkpoints"
        self.storage = CheckpointStorage(str(self.root))
        self.savepoints = self.fresh()
        self.savepoints.job_begins(JOB, self.storage)
        self.completed = CompletedCheckpoint(JOB, CheckpointId(3), 1, 2, 0, {}, metadata_path=f"{JOB}/chk-3/_metadata")
        self.storage.write_sealed(self.completed.metadata_path, encode_metadata(self.completed))

    def fresh(self) -> Savepoints:
        """Those of another JobManager, which knows of no job."""
        return Savepoints(None, CheckpointStorage, temporary=str(self.folder / "work"))

    def take(self, target: str | None = None) -> str:
        return self.savepoints.store(self.completed, self.storage, target)

    def forge(self, path: str, **changes: object) -> str:
        store = FilesystemSavepointStore(self.storage, folder="savepoints")
        return store.store(replace(store.load(path), **changes))  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_job_keeps_them_in_a_folder_of_its_checkpoint_directory(place: Place) -> None:
    assert place.take().startswith(f"{place.root}/savepoints/savepoint-job-1-")
    assert place.take("daily").startswith(f"{place.root}/savepoints/daily/savepoint-job-1-")
    place.savepoints.check_target(JOB, "daily/a")


def test_a_job_whose_checkpoints_go_with_the_cluster_keeps_them_in_memory(place: Place) -> None:
    storage = CheckpointStorage(str(place.folder / "work" / "checkpoints"))
    job = JobId("job-2")
    place.savepoints.job_begins(job, storage)
    assert place.savepoints.refusal(storage.location()) is None
    path = place.savepoints.store(replace(place.completed, job_id=job), storage, None)
    assert path.startswith(HEAP_PATHS)
    with pytest.raises(WrongSavepointStore, match="set checkpoint_dir on the StreamEnvironment"):
        place.savepoints.check_target(job, "daily")


def test_a_store_that_was_configured_is_the_one_of_all_jobs(place: Place) -> None:
    store = HeapSavepointStore()
    savepoints = Savepoints(store, CheckpointStorage)
    savepoints.job_begins(JOB, place.storage)
    assert savepoints.store(place.completed, place.storage, None).startswith(HEAP_PATHS)
    with pytest.raises(WrongSavepointStore):
        savepoints.load(place.take(), checkpoints=place.storage)


def test_one_in_the_memory_of_another_job_manager_says_where_it_was(place: Place) -> None:
    path = Savepoints(HeapSavepointStore(), CheckpointStorage).store(place.completed, place.storage, None)
    with pytest.raises(MissingSavepoint, match=r"memory of the JobManager that took it.*a checkpoint_dir"):
        Savepoints(HeapSavepointStore(), CheckpointStorage).load(path)


def test_a_later_cluster_finds_one_below_the_checkpoint_directory_of_the_job_that_starts(place: Place) -> None:
    path = place.take("daily")
    name = path.removeprefix(f"{place.root}/savepoints/")
    for written in (path, f"file://{path}", name, f"{place.root}/savepoints/x/../{name}"):
        assert place.fresh().load(written, checkpoints=place.storage).path == path


def test_one_of_another_job_of_this_cluster_is_found_and_disposed_of(place: Place) -> None:
    """Also when that job is over."""
    path = place.take()
    place.savepoints.job_is_over(JOB)
    other = CheckpointStorage(str(place.folder / "other"))
    assert place.savepoints.load(path, checkpoints=other).checkpoint == place.completed
    removed = place.savepoints.remove(path)
    assert [file.path for file in removed.files] == [place.completed.metadata_path]
    with pytest.raises(MissingSavepoint):
        place.savepoints.remove(path)
    assert not (place.root / "savepoints").exists(), "no empty folder is left"


def test_where_no_job_has_been_nothing_is_looked_for(place: Place) -> None:
    path = place.take()
    for use in (place.fresh().load, place.fresh().remove):
        with pytest.raises(UnknownSavepointRoot, match=r"\(there are none\): set the checkpoint_dir of its job"):
            use(path)
    other = CheckpointStorage(str(place.folder / "other"))
    with pytest.raises(UnknownSavepointRoot, match=f"{other.root}/savepoints"):
        place.fresh().load(path, checkpoints=other)
    assert Path(path).exists()


@pytest.mark.parametrize("path", ["job-1/chk-3/secret", "savepoints/../job-1/chk-3/secret", "savepoints/link/secret"])
def test_what_lies_beside_the_folder_is_outside(place: Place, path: str) -> None:
    """The checkpoint directory itself is not the savepoints' root."""
    folder = place.root / JOB / "chk-3"
    shutil.copy(place.take(), folder / "secret")
    (place.root / "savepoints" / "link").symlink_to(folder)
    for use in (place.savepoints.load, place.savepoints.remove):
        with pytest.raises(OutsideRoot):
            use(f"{place.root}/{path}")
    for target in ("..", "../job-1", "link", "/etc", "memory://x"):
        with pytest.raises(OutsideRoot, match="savepoint directory"):
            place.savepoints.check_target(JOB, target)
    assert (folder / "secret").exists()


def test_a_folder_that_is_a_link_out_of_the_checkpoint_directory_is_not_followed(place: Place) -> None:
    path = Path(place.take())
    path.parent.rename(place.folder / "elsewhere")
    path.parent.symlink_to(place.folder / "elsewhere")
    for use in (place.savepoints.load, place.savepoints.remove):
        with pytest.raises(OutsideRoot):
            use(str(path))
    assert (place.folder / "elsewhere" / path.name).exists()


def test_a_pointer_leads_to_no_other_checkpoint_directory(place: Place) -> None:
    """Whatever it says: so nothing outside is read or deleted, and the directory may be moved as a whole."""
    elsewhere = place.folder / "elsewhere"
    shutil.copytree(place.root, elsewhere)
    (elsewhere / JOB / "chk-3").rename(elsewhere / JOB / "chk-4")
    path = place.forge(place.take(), checkpoint_root=str(elsewhere))
    assert place.savepoints.load(path).storage.location() == str(place.root)
    assert {file.root for file in place.savepoints.remove(path).files} == {str(place.root)}
    only_there = place.forge(
        place.take(), checkpoint_root=str(elsewhere), checkpoint_id=4, metadata_path="job-1/chk-4/_metadata"
    )
    with pytest.raises(MissingState):
        place.savepoints.load(only_there)


def test_a_checkpoint_directory_may_be_moved_with_its_savepoints(place: Place) -> None:
    path = place.take()
    moved = CheckpointStorage(str(place.root.rename(place.folder / "moved")))
    found = place.fresh().load(Path(path).name, checkpoints=moved)
    assert found.storage.location() == moved.location()


@pytest.mark.parametrize("changes", [{"metadata_path": "../secret"}, {"job_id": ".."}, {"checkpoint_id": 4}])
def test_a_forged_pointer_is_refused(place: Place, changes: dict[str, object]) -> None:
    path = place.forge(place.take(), **changes)
    for use in (place.savepoints.load, place.savepoints.remove):
        with pytest.raises(ForgedPointer):
            use(path)


class TestRelativePaths:
    def test_one_below_the_working_directory_comes_first(self, place: Place) -> None:
        here = place.take("daily")
        name = Path(here).name
        shutil.copy(here, f"{place.root}/savepoints/{name}")
        assert place.savepoints.load(name, f"{place.root}/savepoints/daily").path == here
        assert place.savepoints.load(name).path == f"{place.root}/savepoints/{name}"

    def test_a_file_of_the_working_directory_that_is_not_below_the_root_is_passed_over(self, place: Place) -> None:
        path = place.take()
        name = Path(path).name
        (place.folder / name).write_text("something else")
        assert place.savepoints.load(name, str(place.folder)).path == path
        assert place.savepoints.load(f"checkpoints/savepoints/{name}", str(place.folder)).path == path

    def test_what_is_nowhere_is_missing_below_the_root(self, place: Place) -> None:
        with pytest.raises(MissingSavepoint, match=f"{place.root}/savepoints/nosuch: "):
            place.savepoints.load("nosuch")
        (place.folder / "nosuch").mkdir()
        both = f"^nosuch: missing .* none at {place.root}/savepoints/nosuch; {place.folder}/nosuch is not below "
        with pytest.raises(MissingSavepoint, match=both):
            place.savepoints.load("nosuch", str(place.folder))

    def test_what_is_missing_below_its_root_is_not_said_to_be_outside_of_the_others(self, place: Place) -> None:
        """Who has mounted an empty disk, or renamed a folder, would look for the mistake in the path."""
        (place.folder / "others").mkdir()
        place.savepoints.job_begins(JobId("job-2"), CheckpointStorage(str(place.folder / "others")))
        path = f"{place.folder}/others/savepoints/nosuch"
        with pytest.raises(MissingSavepoint) as refused:
            place.savepoints.load(path)
        assert "is not below" not in str(refused.value)

    def test_all_roots_are_named_where_a_path_is_below_none_of_them(self, place: Place) -> None:
        """The last one alone would send somebody to the folder of another job."""
        place.take()
        (place.folder / "others").mkdir()
        place.savepoints.job_begins(JobId("job-2"), CheckpointStorage(str(place.folder / "others")))
        roots = f"{place.root}/savepoints, {place.folder}/others/savepoints"
        with pytest.raises(UnknownSavepointRoot, match=re.escape(f"({roots})")):
            place.savepoints.load("/nosuch")
        passed = re.escape(f"{place.folder}/nosuch is not below {roots.replace(', ', ' or ')}")
        with pytest.raises(MissingSavepoint, match=passed):
            place.savepoints.load("nosuch", str(place.folder))

    def test_a_broken_one_is_told_as_that(self, place: Place) -> None:
        path = Path(place.take())
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(CorruptState):
            place.savepoints.load(path.name, str(place.folder))


def test_the_folder_in_place_of_a_savepoint_is_named_as_such(place: Place) -> None:
    path = place.take()
    text = r"this is a folder of savepoints; name one of them, .*/checkpoints/savepoints/savepoint-\.\.\.$"
    for folder in (place.root, f"{place.root}/", f"{place.root}/savepoints", f"{place.root}/savepoints/"):
        for use in (place.savepoints.load, place.savepoints.remove):
            with pytest.raises(MissingSavepoint, match=text):
                use(str(folder))
    with pytest.raises(MissingSavepoint, match=text):
        place.savepoints.load("checkpoints", working_directory=str(place.folder))
    configured = FilesystemSavepointStore(CheckpointStorage(str(place.folder / "all")))
    with pytest.raises(MissingSavepoint, match=r"name one of them, .*/all/savepoint-"):
        configured.load(str(place.folder / "all"))
    assert place.savepoints.load(path).path == path
