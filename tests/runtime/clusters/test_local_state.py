"""The folders of a TaskManager's process on its own machine: whose they are, and who removes them."""

from __future__ import annotations

import importlib.util
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from understudy import InvalidSetting, MissingExtra, StreamEnvironment, UnwritableRoot
from understudy.messages import JobId, LocalState, TaskManagerId
from understudy.runtime.clusters.local_state import local_state_of
from understudy.state import WorkingState


def started(
    folder: Path, name: str, backend: str = "rocksdb", *, copies: bool = True, job: str = "job 1"
) -> AbstractContextManager[WorkingState]:
    wanted = LocalState(str(folder), 16, copies)
    return local_state_of(wanted, backend, JobId(job), TaskManagerId(name), slots=2, otherwise=None)


def working(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*/working/*") if path.is_dir()}


def test_a_process_has_a_folder_of_its_own_and_shares_the_copies(tmp_path: Path) -> None:
    with started(tmp_path, "tm-0") as one, started(tmp_path, "tm-1") as other:
        assert one.folder != other.folder
        assert one.copies == other.copies
        assert one.memory_mb == 32, "of two slots"
        assert working(tmp_path) == {"tm-0", "tm-1"}
    assert list(tmp_path.iterdir()) == []


def test_jobs_share_nothing(tmp_path: Path) -> None:
    with started(tmp_path, "tm-0") as one, started(tmp_path, "tm-0", job="job 2") as other:
        assert (one.folder, one.copies) != (other.folder, other.copies)
        assert one.copies != other.copies


def test_copies_stay_as_long_as_a_process_of_the_job_is_there(tmp_path: Path) -> None:
    with started(tmp_path, "tm-0"):
        with started(tmp_path, "tm-1") as other:
            assert other.copies is not None
            (Path(other.copies) / "copy").write_text("of a snapshot")
        assert (Path(other.copies) / "copy").exists()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_process_goes_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    with started(tmp_path, "tm-0") as living:
        assert living.folder is not None
        dead = Path(living.folder).parent / "tm-dead"
        dead.mkdir()
        (dead / "000001.sst").write_text("of a process that was killed")
        (dead.parent / "tm-dead.lock").write_text("")
        with started(tmp_path, "tm-1"):
            assert working(tmp_path) == {"tm-0", "tm-1"}


def test_without_rocksdb_and_copies_there_is_no_folder(tmp_path: Path) -> None:
    with started(tmp_path, "tm-0", "filesystem", copies=False) as found:
        assert found == WorkingState()
        assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(UnwritableRoot, match=r"file.*state_dir"), started(tmp_path / "file", "tm-0"):
        pass


def test_rocksdb_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name == "rocksdict" else find(name, package)

    monkeypatch.setattr("understudy.runtime.connectors.errors.find_spec", without)
    wanted = r'state_backend="rocksdb" needs rocksdict: pip install "understudy\[rocksdb\]"'
    with pytest.raises(MissingExtra, match=wanted):
        StreamEnvironment(state_backend="rocksdb")
    with pytest.raises(MissingExtra, match=wanted), started(tmp_path, "tm-0"):
        pass
    StreamEnvironment(local_recovery=True)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="state_memory_mb"):
        StreamEnvironment(state_backend="rocksdb", state_memory_mb=7)
    with pytest.raises(InvalidSetting, match="state_dir"):
        StreamEnvironment(state_backend="rocksdb", state_dir="")
    with pytest.raises(InvalidSetting, match="local_recovery: wanted True or False, found 'no'"):
        StreamEnvironment(local_recovery="no")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="state_backend"):
        StreamEnvironment(state_backend="rocks")
