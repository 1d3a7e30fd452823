"""Where the pointers of savepoints are kept. Flink: SavepointStoreFactory, FsSavepointStore, HeapSavepointStore."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import encode
from understudy.messages.job import ListJobs
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.savepoint_store import FilesystemSavepointStore, HeapSavepointStore, SavepointStore
from understudy.state.errors import (
    CorruptState,
    MissingSavepoint,
    OutsideRoot,
    UnreachableRoot,
    UnwritableRoot,
    WrongSavepointStore,
)
from understudy.state.root_mark import MARK, VARIABLE

from ...contracts.savepoint_store import SavepointStoreContract, pointer


def filesystem_store(folder: Path) -> FilesystemSavepointStore:
    store = FilesystemSavepointStore(CheckpointStorage(str(folder / "savepoints")))
    store.check()
    return store


class TestHeapStore(SavepointStoreContract):
    foreign_path = "/savepoints/savepoint-job-1"

    def make_store(self, folder: Path) -> SavepointStore:
        return HeapSavepointStore()

    def test_warns_once_that_savepoints_are_lost_with_the_process(self, caplog: pytest.LogCaptureFixture) -> None:
        store = HeapSavepointStore()
        with caplog.at_level(logging.WARNING):
            path = store.store(pointer())
            store.store(pointer())
        assert len(caplog.messages) == 1
        assert path in caplog.text
        assert "lost with its process" in caplog.text

    def test_has_no_directories(self) -> None:
        store = HeapSavepointStore()
        for use in (store.target, lambda folder: store.store(pointer(), folder)):
            with pytest.raises(WrongSavepointStore, match=r"daily: .*no directories"):
                use("daily")

    def test_closing_loses_all(self) -> None:
        store = HeapSavepointStore()
        path = store.store(pointer())
        store.close()
        with pytest.raises(MissingSavepoint):
            store.load(path)


class TestFilesystemStore(SavepointStoreContract):
    foreign_path = "jobmanager://savepoints/savepoint-job-1"

    def make_store(self, folder: Path) -> SavepointStore:
        return filesystem_store(folder)

    def test_another_process_loads_it_later(self, tmp_path: Path) -> None:
        path = filesystem_store(tmp_path).store(pointer())
        assert filesystem_store(tmp_path).load(path) == pointer()

    def test_the_path_names_the_job_and_the_directory(self, tmp_path: Path) -> None:
        store = filesystem_store(tmp_path)
        assert store.store(pointer()).startswith(f"{tmp_path}/savepoints/savepoint-job-12345678-")
        assert store.store(pointer(), "daily/a").startswith(f"{tmp_path}/savepoints/daily/a/savepoint-job-")

    @pytest.mark.parametrize("form", ["{root}/daily", "file://{root}/daily", "daily", "./x/../daily", "daily/"])
    def test_a_directory_below_the_root_may_be_written_in_any_way(self, tmp_path: Path, form: str) -> None:
        store = filesystem_store(tmp_path)
        target = form.format(root=f"{tmp_path}/savepoints")
        store.target(target)
        assert os.path.dirname(store.store(pointer(), target)) == f"{tmp_path}/savepoints/daily"

    def test_one_savepoint_is_found_by_all_ways_to_write_its_path(self, tmp_path: Path) -> None:
        store = filesystem_store(tmp_path)
        path = store.store(pointer())
        for written in (path, f"file://{path}", os.path.basename(path), f"x/../{os.path.basename(path)}"):
            assert store.load(written) == pointer()
            assert store.canonical(written) == path

    @pytest.mark.parametrize("target", ["..", "/etc", "a/../../b", "memory://x", "link"])
    def test_what_leads_out_of_the_root_is_refused(self, tmp_path: Path, target: str) -> None:
        store = filesystem_store(tmp_path)
        (tmp_path / "savepoints" / "link").symlink_to(tmp_path)
        (tmp_path / "savepoint-x").write_bytes(b"somebody else's")
        uses = [
            lambda: store.target(target),
            lambda: store.store(pointer(), target),
            lambda: store.load(f"{target}/savepoint-x"),
            lambda: store.dispose(f"{target}/savepoint-x"),
        ]
        for use in uses:
            with pytest.raises(OutsideRoot, match=r"outside of the savepoint directory .*: wanted a path below it"):
                use()
        assert (tmp_path / "savepoint-x").exists()
        assert sorted(os.listdir(tmp_path / "savepoints")) == [MARK, "link"]

    @given(st.data())
    def test_a_file_that_was_cut_or_changed_is_corrupt_and_stays(self, data: st.DataObject) -> None:
        store, files = _in_memory()
        path = store.store(pointer())
        (name,) = files.list_files()
        content = files._fs.cat_file(path)
        position = data.draw(st.integers(0, len(content) - 1))
        changed = data.draw(st.sampled_from([content[:position], _flipped(content, position)]))
        files._fs.pipe_file(path, changed)
        for use in (store.load, store.dispose):
            with pytest.raises(CorruptState, match="corrupt state"):
                use(path)
        assert files.list_files() == [name]

    def test_what_is_no_pointer_is_corrupt_and_is_not_deleted(self) -> None:
        store, files = _in_memory()
        files.write_sealed("a", encode(ListJobs()))
        files.write_sealed("b", b"something else")
        for path in ("a", "b"):
            with pytest.raises(CorruptState, match="expected a savepoint's pointer"):
                store.dispose(path)
        assert files.list_files() == ["a", "b"]

    def test_a_pointer_of_another_format_is_refused_by_name(self) -> None:
        store, files = _in_memory()
        files.write_sealed("old", encode(replace(pointer(), format_version=9)))
        with pytest.raises(CorruptState, match="expected a pointer of format 1, found format 9"):
            store.load("old")

    def test_disposing_leaves_no_empty_folder_but_the_root(self, tmp_path: Path) -> None:
        store = filesystem_store(tmp_path)
        store.dispose(store.store(pointer(), "a/b"))
        assert os.listdir(tmp_path / "savepoints") == [MARK]

    def test_a_root_that_is_gone_is_told_from_a_savepoint_that_is_gone(self, tmp_path: Path) -> None:
        store = filesystem_store(tmp_path)
        path = store.store(pointer())
        (tmp_path / "savepoints").rename(tmp_path / "elsewhere")
        with pytest.raises(UnreachableRoot, match=r"savepoint directory .* is not there"):
            store.load(path)

    @pytest.mark.parametrize("folder", [None, "daily"])
    def test_no_pointer_is_written_beside_a_volume_that_is_away(self, tmp_path: Path, folder: str | None) -> None:
        """Whoever mounts it again would look for the savepoint in vain."""
        store, root = filesystem_store(tmp_path), tmp_path / "savepoints"
        path = store.store(pointer())
        root.rename(tmp_path / "volume")
        root.mkdir()
        with pytest.raises(UnreachableRoot, match="mount it again"):
            store.store(pointer(), folder)
        with pytest.raises(UnreachableRoot, match="mount it again"):
            store.load(path)
        assert list(root.iterdir()) == []
        root.rmdir()
        (tmp_path / "volume").rename(root)
        store.load(store.store(pointer(), folder))

    def test_where_the_mark_must_be_there_an_empty_root_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(VARIABLE, "1")
        (tmp_path / "savepoints").mkdir()
        with pytest.raises(UnreachableRoot, match=r"mount the volume.*touch .*/savepoints/.understudy-root"):
            filesystem_store(tmp_path)

    def test_a_root_that_cannot_be_made_is_told_early(self, tmp_path: Path) -> None:
        (tmp_path / "savepoints").write_text("a file")
        with pytest.raises(UnwritableRoot, match="savepoint directory"):
            filesystem_store(tmp_path)

    def test_what_could_not_be_stored_leaves_nothing(self, tmp_path: Path) -> None:
        files = _FailingAtLast(str(tmp_path / "savepoints"))
        with pytest.raises(OSError, match="the disk failed"):
            FilesystemSavepointStore(files).store(pointer(), "daily")
        assert files.list_files() == []


class _FailingAtLast(CheckpointStorage):
    """The file is in place when the error comes."""

    def write_sealed(self, path: str, data: bytes) -> None:
        super().write_sealed(path, data)
        raise OSError(5, "the disk failed")


def _in_memory() -> tuple[FilesystemSavepointStore, CheckpointStorage]:
    files = CheckpointStorage(f"memory://savepoints-{uuid4().hex}")
    return FilesystemSavepointStore(files), files


def _flipped(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
