"""What was in flight: written with the rest of a snapshot, read back in order, refused when it is damaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    OperatorId,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state import (
    CheckpointStorage,
    CorruptState,
    OperatorListState,
    OperatorStateBackend,
    SnapshotTarget,
    SubtaskSnapshot,
    assign_state,
    channel_handle,
    handle_reader,
    pack_batch,
    read_channel,
    state_handles,
    state_size_bytes,
    unpack_batch,
)
from understudy.state.checkpoints.snapshot_file import store_in_file

BATCHES: list[Any] = [[(1, "a"), (2, "b")], [{"n": 1}], pa.record_batch({"n": [1, 2, 3]})]
OFFSETS = OperatorListState(int, name="offsets")


def handle(producer: int, batches: list[Any], edge: int = 3) -> Any:
    return channel_handle(edge, SubtaskIndex(producer), map(pack_batch, batches))


def target_in(folder: Path) -> SnapshotTarget:
    storage = CheckpointStorage(str(folder))
    ids = (JobId("job"), CheckpointId(1), VertexId("v"), SubtaskIndex(0), ExecutionAttemptId("try"))
    return SnapshotTarget(storage, *ids, inline_below_bytes=0)


def same(one: Any, other: Any) -> bool:
    return bool(one.equals(other)) if isinstance(one, pa.RecordBatch) else one == other


@given(st.lists(st.lists(st.integers(), min_size=1)))
def test_batches_come_back_in_order(batches: list[list[int]]) -> None:
    assert read_channel(handle(0, batches), handle_reader(None), unpack_batch) == batches


def test_it_goes_into_the_subtasks_one_file_with_the_operators_state(tmp_path: Path) -> None:
    lists = OperatorStateBackend()
    lists.state(OFFSETS).update([17])
    parts = SubtaskSnapshot()
    parts.add(OperatorId("op"), None, lists.snapshot())
    target = target_in(tmp_path)
    channels = (handle(0, BATCHES), handle(1, [["x"]]))
    state = parts.write(target, store_in_file, channels)
    assert target.storage is not None
    assert target.storage.list_files() == [target.path]
    assert state_size_bytes(state) == (Path(target.storage.root) / target.path).stat().st_size
    read = handle_reader(target.storage)
    found = [read_channel(channel, read, unpack_batch) for channel in state.channels]
    assert all(same(*pair) for pair in zip(found[0], BATCHES, strict=True))
    assert found[1] == [["x"]]
    restored = OperatorStateBackend()
    restored.restore(state.operators[OperatorId("op")].lists, read)
    assert restored.state(OFFSETS).get() == [17]


def test_it_is_discarded_with_its_state(tmp_path: Path) -> None:
    target = target_in(tmp_path)
    state = SubtaskSnapshot().write(target, store_in_file, (handle(0, BATCHES),))
    assert target.storage is not None
    assert target.storage.list_files() == [target.path]
    for each in state_handles(state):
        target.storage.delete(each)
    assert target.storage.list_files() == []


@pytest.mark.parametrize("offsets", [(0, 5), (3, 1), (0, 10**9), (-4, 2)])
def test_offsets_that_do_not_fit_are_corrupt(offsets: tuple[int, ...]) -> None:
    broken = replace(handle(2, BATCHES), offsets=offsets)
    with pytest.raises(CorruptState, match="in flight on edge 3 from subtask 2"):
        read_channel(broken, handle_reader(None), unpack_batch)


def test_other_bytes_are_corrupt() -> None:
    whole = handle(2, BATCHES)
    damaged = replace(whole, handle=replace(whole.handle, data=b"\x00" + whole.handle.data[1:]))
    with pytest.raises(CorruptState, match="CRC-32"):
        read_channel(damaged, handle_reader(None), unpack_batch)


def test_each_subtask_gets_back_what_was_in_flight_to_it() -> None:
    states = {SubtaskIndex(index): SubtaskState({}, channels=(handle(index, BATCHES),)) for index in (0, 1)}
    assert assign_state(states, 3, 3, 128) == [states[SubtaskIndex(0)], states[SubtaskIndex(1)], None]
