"""SavepointStoreContract: what every store of savepoint pointers must do. Subclass it and say how to make one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

import pytest

from understudy.messages import CheckpointId, JobId
from understudy.state.checkpoints.savepoint_store import POINTER_VERSION, SavepointPointer, SavepointStore
from understudy.state.errors import MissingSavepoint, StorageError, WrongSavepointStore


def pointer(checkpoint_id: int = 7, job_id: str = "job-1234567890") -> SavepointPointer:
    path = f"{job_id}/chk-{checkpoint_id}/_metadata"
    return SavepointPointer(
        POINTER_VERSION, JobId(job_id), CheckpointId(checkpoint_id), "/checkpoints", path, timestamp_ms=1_000
    )


class SavepointStoreContract(ABC):
    @abstractmethod
    def make_store(self, folder: Path) -> SavepointStore:
        """A fresh store, which may use the folder."""

    @property
    @abstractmethod
    def foreign_path(self) -> str:
        """A savepoint's path in a store of another kind."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> SavepointStore:
        return self.make_store(tmp_path)

    def test_what_is_stored_is_loaded(self, store: SavepointStore) -> None:
        path = store.store(pointer())
        assert store.load(path) == pointer()
        assert store.load(path) == pointer()

    def test_each_savepoint_has_a_path_of_its_own(self, store: SavepointStore) -> None:
        paths = [store.store(pointer(checkpoint_id)) for checkpoint_id in (7, 7, 8)]
        assert len(set(paths)) == 3
        assert [store.load(path).checkpoint_id for path in paths] == [7, 7, 8]

    def test_a_stored_path_is_canonical(self, store: SavepointStore) -> None:
        path = store.store(pointer())
        assert store.canonical(path) == path

    def test_a_disposed_savepoint_is_missing(self, store: SavepointStore) -> None:
        path, other = store.store(pointer(7)), store.store(pointer(8))
        store.dispose(path)
        with pytest.raises(MissingSavepoint, match="disposed of"):
            store.load(path)
        with pytest.raises(MissingSavepoint, match="disposed of"):
            store.dispose(path)
        assert store.load(other) == pointer(8)

    def test_a_path_of_another_kind_of_store_is_refused_by_name(self, store: SavepointStore) -> None:
        for use in (store.load, store.dispose, store.canonical):
            with pytest.raises(WrongSavepointStore, match="savepoints are kept in"):
                use(self.foreign_path)

    def test_the_usual_target_is_always_fine(self, store: SavepointStore) -> None:
        store.target(None)

    def test_stores_know_nothing_of_each_other(self, tmp_path: Path) -> None:
        first, second = self.make_store(tmp_path / "a"), self.make_store(tmp_path / "b")
        path = first.store(pointer())
        with pytest.raises(StorageError):
            second.load(path)
        assert first.load(path) == pointer()
