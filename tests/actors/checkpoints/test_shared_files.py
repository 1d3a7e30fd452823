"""A backend of several files per handle, some held by several checkpoints: no file goes while somebody needs it, and
none stays when nobody does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from understudy.actors.checkpoints.checkpoint_effects import Discard
from understudy.actors.checkpoints.checkpoint_files import CheckpointFiles
from understudy.actors.job_manager.job_files import delete_discarded, delete_files
from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    OperatorId,
    SharedFileId,
    SharedStateHandle,
    StateHandle,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state import CheckpointStorage, SnapshotTarget, SubtaskSnapshot, handle_reader
from understudy.state.backends.backend import KeyedSnapshot, ReadState
from understudy.state.checkpoints.assignment import assign_state
from understudy.state.checkpoints.checkpoint_metadata import decode_metadata, encode_metadata
from understudy.state.checkpoints.completed_checkpoints import (
    CompletedCheckpoint,
    StandaloneCompletedCheckpointStore,
    VertexSnapshot,
)
from understudy.state.checkpoints.savepoint_store import FilesystemSavepointStore
from understudy.state.checkpoints.savepoints import Savepoints
from understudy.state.checkpoints.shared_state import DoomedMetadata, SavepointAt, SharedStateRegistry
from understudy.state.checkpoints.snapshot_file import state_handles, state_size_bytes
from understudy.state.checkpoints.state_backends import FILESYSTEM
from understudy.state.errors import StateNotStorable
from understudy.state.handle_bytes import inline_handle

JOB, MAP, OPERATOR, FIRST = JobId("job"), VertexId("map"), OperatorId("op"), SubtaskIndex(0)
A, B, C = SharedFileId("a"), SharedFileId("b"), SharedFileId("c")


class Tables:
    """Keyed state as sorted tables, of which most stay as they are from one snapshot to the next."""

    def __init__(self) -> None:
        self.tables: dict[SharedFileId, bytes] = {}
        self.stored: dict[SharedFileId, StateHandle] = {}
        """Those of the last checkpoint that has completed."""

    def snapshot(self) -> KeyedSnapshot:
        tables, stored = dict(self.tables), dict(self.stored)

        def write(target: SnapshotTarget) -> KeyedStateHandle:
            assert target.storage is not None
            shared = tuple(
                SharedStateHandle(name, stored.get(name) or target.storage.write(target.shared_path(name), table))
                for name, table in tables.items()
            )
            names = inline_handle(" ".join(tables).encode())
            return KeyedStateHandle(0, 127, {0: (0, names.size_bytes)}, names, "tables", shared)

        return write

    def completed(self, state: SubtaskState) -> None:
        self.stored = {each.file_id: each.handle for handle in keyed(state) for each in handle.shared}

    @classmethod
    def restored(cls, handles: Sequence[KeyedStateHandle], read: ReadState) -> Tables:
        made = cls()
        for handle in handles:
            start, length = handle.offsets[0]
            text = read(handle.handle)[start : start + length].decode()
            names = [SharedFileId(name) for name in text.split()]
            files = {each.file_id: each.handle for each in handle.shared}
            made.tables |= {name: read(files[name]) for name in names}
        return made


def keyed(state: SubtaskState) -> tuple[KeyedStateHandle, ...]:
    return state.operators[OPERATOR].keyed


class Stage:
    """One job with one subtask, and everything that its files are kept and deleted by."""

    def __init__(self, folder: Path) -> None:
        self.storage = CheckpointStorage(str(folder / "checkpoints"))
        self.pointers = CheckpointStorage(str(folder / "savepoints"))
        self.savepoints = Savepoints(FilesystemSavepointStore(self.pointers), CheckpointStorage)
        self.registry = SharedStateRegistry()
        self.files = CheckpointFiles(JOB, self.storage.location(), self.registry)
        self.store = StandaloneCompletedCheckpointStore(1)
        self.backend = Tables()

    def target(self, number: int) -> SnapshotTarget:
        ids = (JOB, CheckpointId(number), MAP, FIRST, ExecutionAttemptId("try-1"))
        return SnapshotTarget(self.storage, *ids, inline_below_bytes=1)

    def acknowledge(self, number: int) -> SubtaskState:
        parts = SubtaskSnapshot()
        parts.add(OPERATOR, self.backend.snapshot())
        state = parts.write(self.target(number), FILESYSTEM.store)
        self.files.acknowledged(CheckpointId(number), state)
        return state

    def complete(self, number: int, *, is_savepoint: bool = False) -> tuple[CompletedCheckpoint, str]:
        """Returns the path of its savepoint, too, if it is one."""
        state = self.acknowledge(number)
        vertices = {MAP: VertexSnapshot(1, 128, {FIRST: state})}
        size = state_size_bytes(state)
        path = f"{JOB}/chk-{number}/_metadata"
        draft = CompletedCheckpoint(JOB, CheckpointId(number), 1, 2, size, vertices, is_savepoint)
        self.storage.write_sealed(path, encode_metadata(draft))
        made = replace(draft, metadata_path=path)
        pointer = self.savepoints.store(made, self.storage, None) if is_savepoint else ""
        self.files.completed(made, [pointer] if pointer else [])
        self.discard(*map(self.files.drop, self.store.add(made)))
        self.discard(*self.files.superseded([each.checkpoint_id for each in self.store.restorable()]))
        self.backend.completed(state)
        return made, pointer

    def discard(self, *discards: Discard | None) -> None:
        for each in discards:
            if each is not None:
                delete_discarded(self.storage, each)
                freed = self.registry.release(DoomedMetadata(self.storage.location(), each.metadata_path))
                delete_files(self.storage, [file.path for file in freed if file.path in each.kept])

    def dispose(self, pointer: str) -> None:
        removed = self.savepoints.remove(pointer)
        delete_files(self.storage, [file.path for file in self.registry.release(SavepointAt(removed.path))])

    def restored(self, completed: CompletedCheckpoint, parallelism: int = 1) -> list[dict[SharedFileId, bytes]]:
        """What each subtask reads of a checkpoint, by its metadata file."""
        found = decode_metadata(self.storage.read_sealed(completed.metadata_path), completed.metadata_path)
        vertex = found.vertices[MAP]
        shares = assign_state(vertex.subtasks, vertex.parallelism, parallelism, vertex.max_parallelism)
        return [
            Tables.restored(keyed(share), handle_reader(self.storage)).tables for share in shares if share is not None
        ]

    def tables(self) -> list[str]:
        """Those that are stored, by checkpoint and name."""
        found = [path.removeprefix(f"{JOB}/shared/") for path in self.storage.list_files(f"{JOB}/shared")]
        return [f"{path.partition('-')[0]}:{path.rpartition('-')[2]}" for path in found]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    made.backend.tables = {A: b"first", B: b"second"}
    return made


def test_a_state_names_all_its_files_and_counts_each_once(stage: Stage) -> None:
    state = stage.acknowledge(1)
    own = stage.target(1).path
    assert [handle.path for handle in state_handles(state)] == [
        own,
        f"{JOB}/shared/1-map-0-try-1-a",
        f"{JOB}/shared/1-map-0-try-1-b",
    ]
    assert state_size_bytes(state) == len(b"a b" + b"first" + b"second")


def test_a_subsumed_checkpoint_leaves_the_files_that_the_next_one_holds(stage: Stage) -> None:
    stage.complete(1)
    stage.backend.tables = {B: b"second", C: b"third"}
    second, _ = stage.complete(2)
    assert stage.tables() == ["1:b", "2:c"]
    assert stage.restored(second) == [{B: b"second", C: b"third"}]


def test_every_share_of_a_rescaled_state_keeps_all_shared_files(stage: Stage) -> None:
    stage.complete(1)
    stage.backend.tables[C] = b"third"
    second, _ = stage.complete(2)
    state = second.vertices[MAP].subtasks[FIRST]
    shares = assign_state({FIRST: state}, 1, 2, 128)
    assert [keyed(share)[0].shared for share in shares if share is not None] == [keyed(state)[0].shared] * 2


def test_an_aborted_checkpoint_takes_only_its_own_files(stage: Stage) -> None:
    first, _ = stage.complete(1)
    stage.backend.tables[C] = b"third"
    state = stage.acknowledge(2)
    stage.discard(stage.files.give_up(CheckpointId(2), (state,)))
    assert stage.tables() == ["1:a", "1:b"]
    assert stage.restored(first) == [{A: b"first", B: b"second"}]


def test_state_that_comes_too_late_takes_only_its_own_files(stage: Stage) -> None:
    first, _ = stage.complete(1)
    stage.backend.tables[C] = b"third"
    parts = SubtaskSnapshot()
    parts.add(OPERATOR, stage.backend.snapshot())
    stage.discard(stage.files.unowned(parts.write(stage.target(2), FILESYSTEM.store)))
    assert stage.tables() == ["1:a", "1:b"]
    assert stage.restored(first) == [{A: b"first", B: b"second"}]


def test_a_snapshot_that_cannot_be_written_leaves_no_new_file_and_all_older_ones(stage: Stage) -> None:
    first, _ = stage.complete(1)
    stage.backend.tables[C] = b"third"

    def failing(target: SnapshotTarget) -> KeyedStateHandle:
        raise StateNotStorable("the disk of the test is full")

    parts = SubtaskSnapshot()
    parts.add(OPERATOR, stage.backend.snapshot())
    parts.add(OperatorId("failing"), failing)
    with pytest.raises(StateNotStorable, match="'failing', the disk"):
        parts.write(stage.target(2), FILESYSTEM.store)
    assert stage.tables() == ["1:a", "1:b"]
    assert stage.restored(first) == [{A: b"first", B: b"second"}]


def test_a_savepoint_keeps_its_files_until_it_is_disposed_of(stage: Stage) -> None:
    stage.complete(1)
    savepoint, pointer = stage.complete(2, is_savepoint=True)
    stage.backend.tables = {C: b"third"}
    stage.complete(3)
    assert stage.tables() == ["1:a", "1:b", "3:c"]
    assert stage.restored(savepoint) == [{A: b"first", B: b"second"}]
    stage.dispose(pointer)
    assert stage.tables() == ["3:c"]


def test_disposing_of_a_savepoint_leaves_what_a_checkpoint_holds(stage: Stage) -> None:
    _, pointer = stage.complete(1, is_savepoint=True)
    stage.backend.tables[C] = b"third"
    second, _ = stage.complete(2)
    stage.dispose(pointer)
    assert stage.restored(second) == [{A: b"first", B: b"second", C: b"third"}]
    stage.discard(stage.files.drop(second))
    assert stage.storage.list_files() == stage.pointers.list_files() == []
