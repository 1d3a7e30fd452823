"""What a job does not need any more is deleted, whatever storage does meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from understudy.actors.checkpoints.checkpoint_effects import Discard
from understudy.actors.job_manager.job_files import delete_discarded, delete_files
from understudy.messages import KeyedStateHandle, OperatorSubtaskState, StateHandle, SubtaskState
from understudy.state import CheckpointStorage


class Failing(CheckpointStorage):
    """Storage that fails to delete some files, a number of times."""

    def __init__(self, url: str, failures: dict[str, int]) -> None:
        super().__init__(url)
        self.failures = failures
        self.tried: list[str | None] = []

    def delete(self, what: StateHandle | str) -> None:
        path = what if isinstance(what, str) else what.path
        self.tried.append(path)
        if self.failures.get(path or "", 0) > 0:
            self.failures[path or ""] -= 1
            raise OSError(5, "the disk failed", path)
        super().delete(what)


def stored(storage: CheckpointStorage, name: str, parts: int = 1) -> SubtaskState:
    """A subtask's state in one file, with several handles that point into it."""
    handle = storage.write(f"job/chk-1/{name}", b"state")
    keyed = tuple(KeyedStateHandle(0, 1, {0: (0, 5)}, handle, "filesystem") for _ in range(parts))
    return SubtaskState({"op": OperatorSubtaskState(keyed, ())})


def checkpoint(storage: CheckpointStorage) -> Discard:
    storage.write_sealed("job/chk-1/_metadata", b"metadata")
    return Discard((stored(storage, "a", parts=3), stored(storage, "b")), "job/chk-1/_metadata")


def test_each_file_goes_once_and_the_metadata_first(tmp_path: Path) -> None:
    storage = Failing(str(tmp_path), {})
    delete_discarded(storage, checkpoint(storage))
    assert storage.tried == ["job/chk-1/_metadata", "job/chk-1/a", "job/chk-1/b"]
    assert storage.list_files() == []


def test_a_file_that_cannot_be_deleted_keeps_no_other(tmp_path: Path) -> None:
    storage = Failing(str(tmp_path), {"job/chk-1/a": 1})
    discard = checkpoint(storage)
    with pytest.raises(OSError, match="the disk failed"):
        delete_discarded(storage, discard)
    assert storage.list_files() == ["job/chk-1/a"]
    delete_discarded(storage, discard)
    assert storage.list_files() == []


def test_without_its_metadata_gone_no_state_is_touched(tmp_path: Path) -> None:
    storage = Failing(str(tmp_path), {"job/chk-1/_metadata": 1})
    discard = checkpoint(storage)
    with pytest.raises(OSError, match="the disk failed"):
        delete_discarded(storage, discard)
    assert storage.list_files() == ["job/chk-1/_metadata", "job/chk-1/a", "job/chk-1/b"]


def test_metadata_among_other_files_go_first(tmp_path: Path) -> None:
    storage = Failing(str(tmp_path), {"job/chk-1/_metadata": 1})
    checkpoint(storage)
    paths = ["job/chk-1/b", "job/chk-1/_metadata", "job/chk-1/a"]
    with pytest.raises(OSError, match="the disk failed"):
        delete_files(storage, paths)
    assert storage.tried == ["job/chk-1/_metadata"]
    delete_files(storage, paths)
    assert storage.list_files() == []


def test_inline_state_has_no_file(tmp_path: Path) -> None:
    storage = Failing(str(tmp_path), {})
    inline: Any = StateHandle(None, b"state", 5, 0)
    keyed = KeyedStateHandle(0, 1, {0: (0, 5)}, inline, "memory")
    delete_discarded(storage, Discard((SubtaskState({"op": OperatorSubtaskState((keyed,), ())}),)))
    assert storage.tried == []
