"""One file per subtask: parts of several operators share it, and each reads back its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    OperatorId,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state.backends.backend import SnapshotTarget
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.backends.operator_state import OperatorStateBackend
from understudy.state.checkpoints.snapshot_file import (
    SubtaskSnapshot,
    state_handles,
    state_size_bytes,
    store_in_file,
)
from understudy.state.checkpoints.state_backends import FILESYSTEM, MEMORY, MemoryStateBackend
from understudy.state.errors import CorruptState, SnapshotTooLarge
from understudy.state.kinds.descriptors import ListState, OperatorListState, ValueState
from understudy.state.storage import CheckpointStorage, handle_reader


def into_file(state: SubtaskState, target: SnapshotTarget) -> SubtaskState:
    return store_in_file(state, replace(target, inline_below_bytes=1))


"""Whatever the size."""

COUNT = ValueState(int, 0, name="count")
ITEMS = ListState(str, name="items")
OFFSETS = OperatorListState(dict, name="offsets")
SHARED = OperatorListState(str, mode="union", name="shared")
OPERATORS = [OperatorId("first"), OperatorId("second")]


@pytest.fixture
def target(tmp_path: Path) -> SnapshotTarget:
    return SnapshotTarget(
        CheckpointStorage(str(tmp_path)),
        JobId("job"),
        CheckpointId(3),
        VertexId("map / filter"),
        SubtaskIndex(1),
        ExecutionAttemptId("try-1"),
    )


def snapshot(*, data_ended: bool = False) -> SubtaskSnapshot:
    """Two operators; each has keyed state and a list."""
    parts = SubtaskSnapshot(data_ended=data_ended)
    for number, operator_id in enumerate(OPERATORS):
        keyed, lists = HeapBackend(0, 127, 128), OperatorStateBackend()
        for key in range(50):
            keyed.current_key = key
            keyed.state(COUNT).update(key + number)
            keyed.state(ITEMS).add(f"{number}-{key}")
        lists.state(OFFSETS).update([{"partition": number, "offset": 17}])
        parts.add(operator_id, keyed.snapshot(CheckpointId(3)), lists.snapshot())
    return parts


def check(state: SubtaskState, storage: CheckpointStorage | None) -> None:
    read = handle_reader(storage)
    for number, operator_id in enumerate(OPERATORS):
        keyed, lists = HeapBackend(0, 127, 128), OperatorStateBackend()
        keyed.restore(state.operators[operator_id].keyed, read)
        lists.restore(state.operators[operator_id].lists, read)
        for key in range(50):
            keyed.current_key = key
            assert keyed.state(COUNT).value() == key + number
            assert keyed.state(ITEMS).get() == [f"{number}-{key}"]
        assert lists.state(OFFSETS).get() == [{"partition": number, "offset": 17}]


def test_many_states_make_one_file(target: SnapshotTarget) -> None:
    state = snapshot().write(target, into_file)
    assert target.storage is not None
    assert target.storage.list_files() == [target.path] == ["job/chk-3/map%20%2F%20filter-1-try-1"]
    assert {handle.path for handle in state_handles(state)} == {target.path}
    assert state_size_bytes(state) == (Path(target.storage.root) / target.path).stat().st_size
    check(state, target.storage)


def test_small_lists_of_all_subtasks_stay_out_of_the_file(target: SnapshotTarget) -> None:
    """Every subtask restores them, and needs no other file than its own."""
    target = replace(target, inline_below_bytes=100)
    parts, shared = snapshot(), OperatorStateBackend()
    shared.state(SHARED).update(["of all"])
    parts.add(OperatorId("shared"), None, shared.snapshot())
    state = parts.write(target, FILESYSTEM.store)
    assert [handle.path for handle in state_handles(state)] == [target.path] * 4 + [None]
    check(state, target.storage)
    read_back = OperatorStateBackend()
    read_back.restore(state.operators[OperatorId("shared")].lists, handle_reader(None))
    assert read_back.state(SHARED).get() == ["of all"]


def test_large_lists_of_all_subtasks_go_to_the_file(target: SnapshotTarget) -> None:
    target = replace(target, inline_below_bytes=100)
    parts, shared = SubtaskSnapshot(), OperatorStateBackend()
    shared.state(SHARED).update(["of all" * 20])
    parts.add(OperatorId("shared"), None, shared.snapshot())
    state = parts.write(target, FILESYSTEM.store)
    assert [handle.path for handle in state_handles(state)] == [target.path]


def test_small_snapshots_make_no_file(target: SnapshotTarget) -> None:
    state = snapshot().write(target, FILESYSTEM.store)
    assert target.storage is not None
    assert target.storage.list_files() == []
    check(state, None)


def test_the_memory_backend_needs_no_storage_and_has_a_limit() -> None:
    nowhere = SnapshotTarget(None, JobId("j"), CheckpointId(1), VertexId("v"), SubtaskIndex(0), ExecutionAttemptId("a"))
    state = snapshot().write(nowhere, MEMORY.store)
    check(state, None)
    size = state_size_bytes(state)
    with pytest.raises(SnapshotTooLarge, match=rf"{size} bytes.*at most {size - 1}.*filesystem"):
        MemoryStateBackend(max_snapshot_bytes=size - 1).store(state, nowhere)


def test_an_operator_without_state_leaves_no_entry(target: SnapshotTarget) -> None:
    parts = SubtaskSnapshot(data_ended=True)
    parts.add(OperatorId("map"), HeapBackend(0, 127, 128).snapshot(CheckpointId(3)), ())
    assert parts.write(target, store_in_file) == SubtaskState({}, data_ended=True)


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: content + b"x",
        lambda content: b"",
        lambda content: bytes([content[0] ^ 1]) + content[1:],
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    ],
)
def test_a_harmed_file_is_refused_by_name(target: SnapshotTarget, harm: Callable[[bytes], bytes]) -> None:
    state = snapshot().write(target, into_file)
    assert target.storage is not None
    file = Path(target.storage.root) / target.path
    file.write_bytes(harm(file.read_bytes()))
    with pytest.raises(CorruptState, match="job/chk-3/map%20%2F%20filter-1-try-1"):
        check(state, target.storage)
