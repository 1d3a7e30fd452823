"""The store of completed checkpoints, the id counter and the metadata file.

The store and counter scripts are `completed_store` and `id_counter` of tests/vectors/checkpoint_coordinator.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import (
    MAX_MESSAGE_BYTES,
    CheckpointId,
    JobId,
    JobStatus,
    OperatorId,
    OperatorListHandle,
    OperatorSubtaskState,
    StateHandle,
    SubtaskIndex,
    SubtaskState,
    VertexId,
    encode,
)
from understudy.state import checkpoint_metadata
from understudy.state.checkpoint_ids import StandaloneCheckpointIdCounter
from understudy.state.checkpoint_metadata import decode_metadata, encode_metadata
from understudy.state.completed_checkpoints import (
    CompletedCheckpoint,
    StandaloneCompletedCheckpointStore,
    VertexSnapshot,
)
from understudy.state.errors import CorruptState

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "checkpoint_coordinator.json").read_text())
STATUSES = {"FINISHED": JobStatus.FINISHED, "SUSPENDED": JobStatus.RUNNING}
MAP = VertexId("map")


def standalone_scripts() -> list[Any]:
    scripts = [script for script in VECTORS["completed_store"] if script.get("backend", "standalone") == "standalone"]
    return [pytest.param(script, id=script["name"]) for script in scripts]


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
    @pytest.mark.parametrize("script", standalone_scripts())
    def test_vectors(self, script: dict[str, Any]) -> None:
        if script.get("expect", {}).get("constructor") == "error":
            with pytest.raises(ValueError, match="retain=0"):
                StandaloneCompletedCheckpointStore(script["retain"])
            return
        store = StandaloneCompletedCheckpointStore(script["retain"])
        discarded: list[int] = []
        for step, expected in zip(script["steps"], script.get("expect_after", []), strict=True):
            if "add" in step:
                discarded += ids(store.add(make_checkpoint(step["add"])))
            else:
                discarded += ids(store.shutdown(STATUSES[step["shutdown"]]))
            self.check(store, discarded, expected)
        self.check(store, discarded, script.get("expect", {}))

    def check(self, store: StandaloneCompletedCheckpointStore, discarded: list[int], expected: dict[str, Any]) -> None:
        latest = store.latest()
        found = {
            "retained": ids(store.retained()),
            "latest": latest and latest.checkpoint_id,
            "discarded": discarded,
        }
        assert {key: found[key] for key in expected} == expected

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

    def test_an_older_savepoint_that_completes_late_is_not_restored_from(self) -> None:
        store = StandaloneCompletedCheckpointStore(1)
        store.add(make_checkpoint(5, savepoint=True))
        store.add(make_checkpoint(4, savepoint=True))
        assert ids(store.restorable()) == [5]
        store.add(make_checkpoint(6))
        store.add(make_checkpoint(3, savepoint=True))
        assert ids(store.restorable()) == [6]

    def test_a_disposed_savepoint_is_forgotten(self) -> None:
        store = StandaloneCompletedCheckpointStore(1)
        store.add(make_checkpoint(1))
        store.add(make_checkpoint(2, savepoint=True))
        store.forget_savepoint("chk-1")
        assert ids(store.restorable()) == [2, 1]
        store.forget_savepoint("chk-2")
        assert ids(store.restorable()) == [1]

    def test_shutdown_leaves_savepoints_to_their_user(self) -> None:
        store = StandaloneCompletedCheckpointStore(2)
        store.add(make_checkpoint(1))
        store.add(make_checkpoint(2, savepoint=True))
        assert ids(store.shutdown(JobStatus.FINISHED)) == [1]
        assert ids(store.restorable()) == []


class TestStandaloneIdCounter:
    @pytest.mark.parametrize("name", ["serial", "set_count"])
    def test_vectors(self, name: str) -> None:
        (script,) = (script for script in VECTORS["id_counter"] if script["name"] == name)
        counter = StandaloneCheckpointIdCounter()
        counter.start()
        returned: list[int | None] = []
        for call in script["calls"]:
            if call == "get_and_increment":
                returned.append(counter.get_and_increment())
            else:
                counter.set_count(call["set_count"])
                returned.append(None)
        counter.shutdown(JobStatus.FINISHED)
        assert returned == script["returns"]

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
        completed = make_checkpoint(12, *states, savepoint=savepoint)
        assert decode_metadata(encode_metadata(completed), "chk-12") == completed

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
        data = encode_metadata(make_checkpoint(1))
        monkeypatch.setattr(checkpoint_metadata, "FORMAT_VERSION", 2)
        with pytest.raises(CorruptState, match="format 1; this release reads 2"):
            decode_metadata(data, "chk-1")

    def test_a_state_of_a_subtask_that_does_not_exist_is_corrupt(self) -> None:
        data = encode_metadata(make_checkpoint(1, make_state(), make_state(), parallelism=1))
        with pytest.raises(CorruptState, match="subtask 1"):
            decode_metadata(data, "chk-1")

    def test_another_message_is_no_metadata(self) -> None:
        frame = encode(make_state())
        with pytest.raises(CorruptState, match="found SubtaskState; wanted CheckpointMetadata"):
            decode_metadata(len(frame).to_bytes(4, "big") + frame, "chk-1")
