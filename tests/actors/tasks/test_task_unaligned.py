"""A task whose checkpoint does not wait for barriers: it snapshots at once, and acknowledges when it knows what is in
flight.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from understudy.actors.barriers.in_flight_elements import unpack_in_flight
from understudy.actors.flow.elements import CancelCheckpointMarker, CheckpointBarrier, EndOfPartition
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.messages import (
    AbortReason,
    AcknowledgeCheckpoint,
    ChannelId,
    CheckpointId,
    DeclineCheckpoint,
    ExecutionState,
    NotifyCheckpointAborted,
    SubtaskState,
    SwitchToUnaligned,
    TriggerCheckpoint,
    UpdateTaskExecutionState,
)
from understudy.runtime.connectors import CollectionSource
from understudy.state import channel_handle, handle_reader, inline_handle, pack_batch, read_channel

from .task_stage import ATTEMPT, JOB, TaskStage, deployment


class Echo(Operator):
    """Hands on what it takes; at a barrier it says which."""

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        out.emit(batch)

    def before_barrier(self, checkpoint_id: CheckpointId, out: Collector) -> None:
        out.collect(f"held back before {checkpoint_id}")


def barrier(number: int) -> CheckpointBarrier:
    return CheckpointBarrier(CheckpointId(number), 5)


def switch(number: int) -> SwitchToUnaligned:
    return SwitchToUnaligned(JOB, ATTEMPT, CheckpointId(number), 5)


def aborted(number: int) -> NotifyCheckpointAborted:
    return NotifyCheckpointAborted(JOB, ATTEMPT, CheckpointId(number), "expired")


def in_flight(state: SubtaskState | None) -> dict[int, list[Any]]:
    """By producer subtask, the batches that are part of a snapshot."""
    assert state is not None
    return {each.producer_subtask: read_channel(each, handle_reader(None), unpack_in_flight) for each in state.channels}


@pytest.fixture
def stage(tmp_path: Path) -> TaskStage:
    """Two input channels, 0 and 1."""
    return TaskStage(Echo(), deployment(inputs=2), str(tmp_path))


def hold_back(stage: TaskStage, *, held: bool = True) -> None:
    """No credit for the output: the task takes no input."""
    stage.plane.wires[ChannelId(9)].has_credit = not held


def acknowledged(stage: TaskStage) -> list[AcknowledgeCheckpoint]:
    return stage.said(AcknowledgeCheckpoint)


def test_it_snapshots_at_once_and_acknowledges_when_the_barriers_have_come(stage: TaskStage) -> None:
    hold_back(stage)
    stage.arrives(0, ["a"])
    stage.tell(switch(1))
    assert stage.emitted() == [["held back before 1"], barrier(1)]
    assert acknowledged(stage) == []
    stage.arrives(1, ["b"], ["c"], barrier(1), ["d"])
    stage.arrives(0, barrier(1))
    (ack,) = acknowledged(stage)
    assert in_flight(ack.state) == {0: [["a"]], 1: [["b"], ["c"]]}
    hold_back(stage, held=False)
    stage.settle()
    assert sorted(stage.emitted()) == [["a"], ["b"], ["c"], ["d"]]
    assert len(acknowledged(stage)) == 1


def test_a_barrier_that_was_overtaken_is_not_taken_again(stage: TaskStage) -> None:
    stage.tell(switch(1))
    stage.emitted()
    for wire in (0, 1):
        stage.arrives(wire, barrier(1), ["after"])
    assert stage.emitted() == [["after"], ["after"]]


def test_metrics_say_how_it_was_taken(stage: TaskStage) -> None:
    stage.arrives(0, barrier(1))
    stage.context.ms = 40.0
    stage.tell(switch(1))
    stage.context.ms = 100.0
    stage.arrives(1, ["b"], barrier(1))
    metrics = acknowledged(stage)[0].metrics
    assert metrics.unaligned
    assert metrics.alignment_ms == 40.0
    assert metrics.async_ms == 60.0
    assert metrics.in_flight_bytes == len(pack_batch(["b"]))


def test_an_aligned_snapshot_says_how_long_it_was_aligned(stage: TaskStage) -> None:
    stage.arrives(0, ["a"], barrier(1))
    stage.context.ms = 30.0
    stage.arrives(1, barrier(1))
    metrics = acknowledged(stage)[0].metrics
    assert (metrics.unaligned, metrics.alignment_ms, metrics.in_flight_bytes) == (False, 30.0, 0)


def test_a_switch_for_a_snapshot_that_is_taken_does_nothing(stage: TaskStage) -> None:
    for wire in (0, 1):
        stage.arrives(wire, barrier(2))
    stage.emitted()
    stage.tell(switch(2), switch(1))
    assert stage.emitted() == []
    assert [each.checkpoint_id for each in acknowledged(stage)] == [2]


def test_it_is_said_when_a_newer_checkpoint_ends_an_unaligned_one(stage: TaskStage) -> None:
    stage.tell(switch(1))
    stage.arrives(0, ["a"])
    stage.tell(switch(2))
    assert [each.checkpoint_id for each in stage.said(DeclineCheckpoint)] == [1]
    for wire in (0, 1):
        stage.arrives(wire, barrier(2))
    (ack,) = acknowledged(stage)
    assert ack.checkpoint_id == 2
    assert in_flight(ack.state) == {}
    assert stage.emitted().count(["a"]) == 1


def test_it_is_declined_when_a_barrier_will_not_come(stage: TaskStage) -> None:
    stage.tell(switch(1))
    stage.arrives(0, ["a"], CancelCheckpointMarker(CheckpointId(1)))
    (decline,) = stage.said(DeclineCheckpoint)
    assert (decline.checkpoint_id, decline.reason) == (1, AbortReason.CANCELLED)
    assert CancelCheckpointMarker(CheckpointId(1)) in stage.emitted()
    stage.arrives(1, barrier(1), EndOfPartition())
    assert acknowledged(stage) == []


def test_an_abort_drops_the_snapshot_and_not_the_data(stage: TaskStage) -> None:
    hold_back(stage)
    stage.arrives(0, ["a"])
    stage.tell(switch(1), aborted(1))
    for wire in (0, 1):
        stage.arrives(wire, barrier(1))
    hold_back(stage, held=False)
    stage.settle()
    assert acknowledged(stage) == stage.said(DeclineCheckpoint) == []
    assert stage.emitted() == [["held back before 1"], barrier(1), ["a"]]


def test_a_checkpoint_that_was_aborted_is_not_ended_again_by_the_next_one(stage: TaskStage) -> None:
    stage.tell(switch(1), aborted(1))
    stage.emitted()
    for wire in (0, 1):
        stage.arrives(wire, barrier(2))
    assert stage.said(DeclineCheckpoint) == []
    assert stage.emitted() == [["held back before 2"], barrier(2)]
    assert [each.checkpoint_id for each in acknowledged(stage)] == [2]


def test_records_that_cannot_be_written_decline_the_checkpoint(stage: TaskStage) -> None:
    record = object()
    hold_back(stage)
    stage.arrives(0, [record])
    stage.tell(switch(1))
    assert "UnsupportedValue" in stage.said(DeclineCheckpoint)[0].detail
    hold_back(stage, held=False)
    stage.settle()
    assert stage.emitted()[-1] == [record]


def test_restored_elements_come_first_and_in_order(tmp_path: Path) -> None:
    channels = (channel_handle(0, 1, map(pack_batch, [["b"], ["c"]])),)  # type: ignore[arg-type]
    stage = TaskStage(Echo(), deployment(inputs=2, restored=(SubtaskState({}, channels=channels),)), str(tmp_path))
    stage.arrives(1, ["d"])
    assert stage.emitted() == [["b"], ["c"], ["d"]]


def test_restored_elements_that_are_damaged_fail_the_attempt(tmp_path: Path) -> None:
    handle = channel_handle(0, 1, [b"\x15nothing"])  # type: ignore[arg-type]
    assert handle.handle == inline_handle(b"\x15nothing")
    stage = TaskStage(Echo(), deployment(inputs=2, restored=(SubtaskState({}, channels=(handle,)),)), str(tmp_path))
    failed = stage.said(UpdateTaskExecutionState)[-1]
    assert failed.state is ExecutionState.FAILED
    assert failed.failure.error_type == "CorruptState"


def test_a_source_that_missed_its_trigger_takes_the_snapshot(tmp_path: Path) -> None:
    stage = TaskStage(CollectionSource([]), deployment(), str(tmp_path))
    stage.tell(switch(3), TriggerCheckpoint(JOB, ATTEMPT, CheckpointId(3), 5))
    assert [each.checkpoint_id for each in acknowledged(stage)] == [3]
    assert barrier(3) in stage.emitted()
