"""The store of completed checkpoints, the id counter and the metadata file.

Flink's scripts for the store and the counter are played in tests/conformance.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import (
    MAX_MESSAGE_BYTES,
    CheckpointId,
    CheckpointRetention,
    JobEdge,
    JobId,
    JobStatus,
    OperatorDescription,
    OperatorId,
    OperatorListHandle,
    OperatorSubtaskState,
    Partitioning,
    Predecessor,
    StateDescription,
    StateHandle,
    SubtaskIndex,
    SubtaskState,
    VertexId,
    encode,
)
from understudy.state.checkpoints import checkpoint_metadata
from understudy.state.checkpoints.checkpoint_ids import StandaloneCheckpointIdCounter
from understudy.state.checkpoints.checkpoint_metadata import decode_metadata, encode_metadata, read_checkpoint
from understudy.state.checkpoints.completed_checkpoints import (
    CompletedCheckpoint,
    StandaloneCompletedCheckpointStore,
    VertexSnapshot,
)
from understudy.state.errors import CorruptState
from understudy.state.storage import CheckpointStorage

MAP = VertexId("map")


def make_state(data: bytes = b"state") -> SubtaskState:
    handle = StateHandle(path=None, data=data, size_bytes=len(data), checksum=0)
    offsets = OperatorListHandle("offsets", "split", (0,), handle)
    return SubtaskState({OperatorId("op"): OperatorSubtaskState(lists=(offsets,))})


def make_checkpoint(
    checkpoint_id: int, *states: SubtaskState | None, parallelism: int = 0, savepoint: bool = False
) -> CompletedCheckpoint:
    subtasks = {SubtaskIndex(index): state for index, state in enumerate(states) if state is not None}
    return CompletedCheckpoint(
        JobId("job"),
        CheckpointId(checkpoint_id),
        timestamp_ms=1,
        completed_ms=2,
        state_size_bytes=3,
        vertices={MAP: VertexSnapshot(parallelism or len(states), 128, subtasks)},
        is_savepoint=savepoint,
        metadata_path=f"chk-{checkpoint_id}",
    )


def ids(checkpoints: Any) -> list[int]:
    return [completed.checkpoint_id for completed in checkpoints]


class TestStandaloneStore:
    def test_restores_from_newest_to_oldest(self) -> None:
        store = StandaloneCompletedCheckpointStore(3)
        for each in (1, 2, 3, 4):
            store.add(make_checkpoint(each))
        assert ids(store.restorable()) == [4, 3, 2]

    def test_a_savepoint_is_restored_from_while_nothing_newer_completed_but_is_never_retained(self) -> None:
        """Sinks have committed what it covers: to restore from an older cut would commit that twice."""
        store = StandaloneCompletedCheckpointStore(1)
        store.add(make_checkpoint(1))
        assert store.add(make_checkpoint(2, savepoint=True)) == []
        assert ids(store.retained()) == [1]
        assert ids(store.restorable()) == [2, 1]
        assert ids(store.add(make_checkpoint(3))) == [1]
        assert ids(store.restorable()) == [3]

    def test_a_savepoint_is_remembered_as_long_as_an_older_checkpoint_is_retained(self) -> None:
        """If the newest checkpoint is corrupt, the next one to try is the savepoint, not what is older than it."""
        store = StandaloneCompletedCheckpointStore(2)
        store.add(make_checkpoint(1))
        store.add(make_checkpoint(2, savepoint=True))
        store.add(make_checkpoint(3))
        assert ids(store.restorable()) == [3, 2, 1]
        store.add(make_checkpoint(4))
        assert ids(store.restorable()) == [4, 3]

    def test_an_older_savepoint_that_completes_late_is_not_restored_from(self) -> None:
        store = StandaloneCompletedCheckpointStore(1)
        store.add(make_checkpoint(5, savepoint=True))
        store.add(make_checkpoint(4, savepoint=True))
        assert ids(store.restorable()) == [5]
        store.add(make_checkpoint(6))
        store.add(make_checkpoint(3, savepoint=True))
        assert ids(store.restorable()) == [6]

    def test_shutdown_leaves_savepoints_to_their_user(self) -> None:
        store = StandaloneCompletedCheckpointStore(2)
        store.add(make_checkpoint(1))
        store.add(make_checkpoint(2, savepoint=True))
        assert ids(store.shutdown(JobStatus.FINISHED)) == [1]
        assert ids(store.restorable()) == []

    @pytest.mark.parametrize(
        ("retention", "kept"),
        [
            (CheckpointRetention.ON_CANCELLATION, {JobStatus.FAILED, JobStatus.CANCELED}),
            (CheckpointRetention.ON_FAILURE, {JobStatus.FAILED}),
            (CheckpointRetention.NEVER, set()),
        ],
    )
    def test_shutdown_keeps_all_that_is_restorable_as_the_job_has_ended(
        self, retention: CheckpointRetention, kept: set[JobStatus]
    ) -> None:
        """Flink: CheckpointProperties.discardOnJobFailed and its like. A job that is suspended has not ended."""
        for status in JobStatus:
            store = StandaloneCompletedCheckpointStore(2, retention)
            for each in (1, 2):
                store.add(make_checkpoint(each))
            store.add(make_checkpoint(3, savepoint=True))
            assert ids(store.shutdown(status)) == ([] if status in kept else [1, 2])
            assert ids(store.restorable()) == ([3, 2, 1] if status in kept else [])


class TestStandaloneIdCounter:
    def test_setting_it_back_hands_out_no_id_twice(self) -> None:
        counter = StandaloneCheckpointIdCounter(CheckpointId(10))
        counter.set_count(CheckpointId(3))
        assert counter.get_and_increment() == 10


class TestMetadataFile:
    @given(
        st.lists(st.none() | st.binary(max_size=40).map(make_state), min_size=1, max_size=5),
        st.booleans(),
    )
    def test_round_trip(self, states: list[SubtaskState | None], savepoint: bool) -> None:
        predecessors = (Predecessor(JobId("job-0"), CheckpointId(7)),) if savepoint else ()
        completed = replace(make_checkpoint(12, *states, savepoint=savepoint), predecessors=predecessors)
        assert decode_metadata(encode_metadata(completed), "chk-12") == completed

    @pytest.mark.parametrize(
        ("folder", "is_refused"),
        [
            ("job-2/chk-7", False),
            ("job-2/chk-6", True),
            ("job-1/chk-7", True),
            ("backup/chk-7", False),
            ("job-1/kept", False),
            ("chk-7", False),
        ],
    )
    def test_one_in_the_place_of_another_is_refused(self, tmp_path: Path, folder: str, is_refused: bool) -> None:
        """A folder that was swapped by that of another job was restored without a word: its records were lost."""
        storage = CheckpointStorage(str(tmp_path))
        path = f"{folder}/_metadata"
        completed = replace(make_checkpoint(7, make_state()), job_id=JobId("job-2"), metadata_path=path)
        storage.write_sealed(path, encode_metadata(completed))
        if not is_refused:
            assert read_checkpoint(storage, path) == completed
            return
        with pytest.raises(CorruptState, match=r"found those of checkpoint 7 of job job-2: put back what was there"):
            read_checkpoint(storage, path)

    def test_may_be_larger_than_one_message(self) -> None:
        state = make_state(bytes(MAX_MESSAGE_BYTES // 2))
        completed = make_checkpoint(1, state, state, state)
        data = encode_metadata(completed)
        assert len(data) > MAX_MESSAGE_BYTES
        assert decode_metadata(data, "chk-1") == completed

    def test_has_a_limit_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = encode_metadata(make_checkpoint(1, make_state()))
        monkeypatch.setattr(checkpoint_metadata, "MAX_METADATA_BYTES", len(data) - 1)
        with pytest.raises(ValueError, match="inline_threshold_bytes"):
            encode_metadata(make_checkpoint(1, make_state()))
        with pytest.raises(CorruptState, match="limit"):
            decode_metadata(data, "chk-1")

    @given(st.data())
    def test_a_cut_file_is_corrupt(self, data: st.DataObject) -> None:
        whole = encode_metadata(make_checkpoint(1, make_state(), make_state()))
        cut = data.draw(st.integers(0, len(whole) - 1))
        with pytest.raises(CorruptState):
            decode_metadata(whole[:cut], "chk-1")

    @given(st.binary(max_size=200))
    def test_garbage_is_corrupt(self, garbage: bytes) -> None:
        with pytest.raises(CorruptState):
            decode_metadata(garbage, "chk-1")

    def test_another_format_version_is_refused_by_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as before:
            before.setattr(checkpoint_metadata, "FORMAT_VERSION", 1)
            data = encode_metadata(make_checkpoint(1))
        with pytest.raises(CorruptState, match="format 1; this release reads 2"):
            decode_metadata(data, "chk-1")

    def test_it_says_what_each_vertex_is_made_of(self) -> None:
        """So that another program can be matched with it."""
        total = StateDescription("total", "ValueState", {"list": "int"})
        operator = OperatorDescription(OperatorId("op"), "sum", "operator", (total,))
        edge = JobEdge(VertexId("source"), MAP, Partitioning.HASH, 1, "late")
        vertex = VertexSnapshot(1, 128, {SubtaskIndex(0): make_state()}, (operator,), {3: edge})
        completed = replace(make_checkpoint(1), vertices={MAP: vertex})
        assert decode_metadata(encode_metadata(completed), "chk-1") == completed

    def test_a_state_of_a_subtask_that_does_not_exist_is_corrupt(self) -> None:
        data = encode_metadata(make_checkpoint(1, make_state(), make_state(), parallelism=1))
        with pytest.raises(CorruptState, match="subtask 1"):
            decode_metadata(data, "chk-1")

    def test_another_message_is_no_metadata(self) -> None:
        frame = encode(make_state())
        with pytest.raises(CorruptState, match="found SubtaskState; wanted CheckpointMetadata"):
            decode_metadata(len(frame).to_bytes(4, "big") + frame, "chk-1")
