"""A checkpoint directory whose volume is not there: an empty folder in its place must not be taken for it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from understudy.messages import JobId, StateHandle
from understudy.state import CheckpointStorage, MissingState, UnreachableRoot
from understudy.state.checkpoints.job_runs import Claimant, JobRuns, RunOwner
from understudy.state.durable_files import DurableFiles
from understudy.state.root_mark import MARK, VARIABLE, RootMark

NO_FILE = StateHandle("job-1/chk-1/count-0", None, 1, 0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


def opened(root: Path) -> CheckpointStorage:
    """As submit and the JobManager do: each has its own."""
    CheckpointStorage(str(root)).check()
    return CheckpointStorage(str(root))


def unmount(root: Path) -> None:
    """Its volume: what is left is the folder at which it was mounted."""
    root.rename(root.with_name("volume"))
    root.mkdir()


def mount(root: Path) -> None:
    shutil.rmtree(root)
    root.with_name("volume").rename(root)


def test_the_mark_is_none_of_the_stored_files(root: Path) -> None:
    assert opened(root).list_files() == []
    assert (root / MARK).is_file()


def test_nothing_is_written_beside_the_volume_and_all_is_well_when_it_is_back(root: Path) -> None:
    storage = opened(root)
    storage.write("job-1/chk-1/count-0", b"x")
    unmount(root)
    said = rf"{root}: the file {MARK} .* is gone.* mount it again.* touch {root}/{MARK}"
    with pytest.raises(UnreachableRoot, match=said):
        storage.write("job-1/chk-2/count-0", b"y")
    with pytest.raises(UnreachableRoot):
        storage.write_sealed("job-1/chk-2/_metadata", b"z")
    with pytest.raises(UnreachableRoot):
        storage.create_sealed("names/flights/1", b"z")
    assert list(root.iterdir()) == []
    mount(root)
    storage.write_sealed("job-1/chk-2/_metadata", b"z")


def test_what_is_not_found_there_is_no_lost_checkpoint(root: Path) -> None:
    """Else a restart would take an older one, and then give up."""
    storage = opened(root)
    with pytest.raises(MissingState):
        storage.read(NO_FILE)
    unmount(root)
    with pytest.raises(UnreachableRoot):
        storage.read(NO_FILE)


def test_a_process_that_starts_meanwhile_expects_the_mark_where_it_is_told_to(root: Path) -> None:
    """A TaskManager: the job's submit has made it."""
    opened(root)
    unmount(root)
    storage = CheckpointStorage(str(root))
    with pytest.raises(MissingState):
        storage.read(NO_FILE)
    storage = CheckpointStorage(str(root), has_mark=True)
    with pytest.raises(UnreachableRoot):
        storage.read(NO_FILE)


def test_the_owner_of_a_name_does_not_take_it_for_lost(root: Path) -> None:
    owner = RunOwner("host", 1, "app.py", "machine", "1")
    claimant = Claimant(owner, lambda _: False, lambda: 1000)
    claim = JobRuns(opened(root), "flights", claimant).claim(JobId("job-1"))
    unmount(root)
    for ask in (claim.confirm, claim.renew):
        with pytest.raises(UnreachableRoot):
            ask()
    mount(root)
    claim.confirm()
    claim.renew()


def test_a_directory_in_use_keeps_a_young_mark(root: Path) -> None:
    """So a cleaner that goes by age leaves it alone."""
    storage = opened(root)
    os.utime(root / MARK, (0, 0))
    storage.mark.renew()
    assert (root / MARK).stat().st_mtime > 0


def test_a_directory_without_a_mark_gets_one_with_its_next_checkpoint(root: Path) -> None:
    """One of an earlier version, or one that whoever submits the job does not share."""
    root.mkdir()
    storage = CheckpointStorage(str(root))
    storage.write_sealed("job-1/chk-1/_metadata", b"z")
    storage.mark.renew()
    unmount(root)
    with pytest.raises(UnreachableRoot):
        storage.write_sealed("job-1/chk-2/_metadata", b"z")


def test_a_volume_that_has_a_mark_has_it_for_all_that_is_on_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    (root.parent / MARK).touch()
    CheckpointStorage(str(root / "history")).check()


def test_what_goes_with_its_cluster_need_not_be_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    CheckpointStorage(str(root)).check(with_mark=False)
    assert not (root / MARK).exists()


def test_where_the_mark_must_be_there_an_empty_folder_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    said = rf"{root}: neither it nor a folder above it has a file {MARK}, and {VARIABLE} is set.*mkdir -p {root} &&"
    for _ in range(2):
        with pytest.raises(UnreachableRoot, match=said):
            CheckpointStorage(str(root)).check()
        assert not root.exists()
    root.mkdir()
    with pytest.raises(UnreachableRoot, match=said):
        CheckpointStorage(str(root)).check()
    (root / MARK).touch()
    CheckpointStorage(str(root)).check()


def test_what_was_used_before_may_be_told_to_be_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(root)
    monkeypatch.setenv(VARIABLE, "1")
    CheckpointStorage(str(root)).check()


def test_a_mark_that_a_checkpoint_makes_lasts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is in its folder, which is synced after it was made."""
    root.mkdir()
    synced = []
    monkeypatch.setattr(DurableFiles, "sync_folder", lambda _, path: synced.append((path, (root / MARK).exists())))
    CheckpointStorage(str(root)).mark.renew()
    assert synced == [(str(root), True)]


def test_a_mark_of_another_user_is_left_as_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two who share a directory only one has made it, and the other may not write to it."""
    opened(root)
    write = DurableFiles.write

    def refused(files: DurableFiles, path: str, *parts: Any) -> None:
        if path.endswith(MARK):
            raise PermissionError(1, "not yours", path)
        write(files, path, *parts)

    monkeypatch.setattr(DurableFiles, "touch", refused)
    monkeypatch.setattr(DurableFiles, "write", refused)
    opened(root).mark.renew()


def test_the_log_of_an_inlet_does_not_begin_beside_the_volume(root: Path) -> None:
    """What it acknowledged would be hidden once the volume is back."""
    log = opened(root).log("job-1/inlets/orders")
    unmount(root)
    with pytest.raises(UnreachableRoot):
        log.writer("a").append([b"x"])
    assert list(root.iterdir()) == []


def test_the_mark_is_looked_for_only_where_a_folder_is_made(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the volume is away, its folders are too; to ask for each file costs a request to a shared disk."""
    asked = []
    monkeypatch.setattr(RootMark, "confirm", lambda mark: asked.append(mark))
    storage = opened(root)
    asked.clear()
    for number in range(3):
        storage.write(f"job-1/chk-1/count-{number}", b"x")
    assert len(asked) == 1
