"""The oracle of dangling metadata sees what is missing, once, and nothing where all is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from understudy.messages import (
    CheckpointId,
    JobId,
    KeyedStateHandle,
    OperatorId,
    OperatorSubtaskState,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.runtime.simulation.world.dangling_metadata import DanglingMetadata
from understudy.runtime.simulation.world.disk import SimulatedDisk
from understudy.runtime.simulation.world.file_system import using
from understudy.state import CheckpointStorage
from understudy.state.checkpoints.checkpoint_metadata import encode_metadata
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint, VertexSnapshot

STATE = "/checkpoints/job-1/chk-1/state"
METADATA = "/checkpoints/job-1/chk-1/_metadata"


@pytest.fixture
def disk() -> Iterator[SimulatedDisk]:
    with using(SimulatedDisk()) as found:
        yield found


@pytest.fixture
def found() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def oracle(disk: SimulatedDisk, found: list[tuple[str, str]]) -> DanglingMetadata:
    """Of one checkpoint, with one file of state."""
    storage = CheckpointStorage("sim://checkpoints")
    keyed = KeyedStateHandle(0, 15, {}, storage.write("job-1/chk-1/state", [b"state"]), "memory")
    state = SubtaskState({OperatorId("count"): OperatorSubtaskState((keyed,))})
    vertex = VertexSnapshot(1, 16, {SubtaskIndex(0): state})
    checkpoint = CompletedCheckpoint(JobId("job-1"), CheckpointId(1), 0, 0, 5, {VertexId("count"): vertex})
    storage.write_sealed("job-1/chk-1/_metadata", encode_metadata(checkpoint))
    return DanglingMetadata(disk, storage, lambda oracle, problem: found.append((oracle, problem)))


def test_where_all_is_there_nothing_dangles(oracle: DanglingMetadata, found: list[tuple[str, str]]) -> None:
    oracle.look()
    assert found == []


def test_state_that_is_gone_before_its_metadata(
    oracle: DanglingMetadata, disk: SimulatedDisk, found: list[tuple[str, str]]
) -> None:
    disk.remove(STATE)
    oracle.look()
    oracle.look()
    assert found == [("no-dangling-metadata", f"{METADATA} leads to {STATE}, not there")]


def test_metadata_that_are_gone_before_their_state(
    oracle: DanglingMetadata, disk: SimulatedDisk, found: list[tuple[str, str]]
) -> None:
    disk.remove(METADATA)
    oracle.look()
    disk.remove(STATE)
    oracle.look()
    assert found == []
