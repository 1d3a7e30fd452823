"""A task keeps small batches while it has more to take, and sends them when it rests, when they are due, and before
anything that must not overtake them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from understudy.actors.actor import Step
from understudy.actors.flow.elements import (
    END_OF_TIME,
    CancelCheckpointMarker,
    CheckpointBarrier,
    Element,
    EndOfData,
    EndOfPartition,
    Watermark,
)
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.messages import (
    CancelTask,
    ChannelId,
    CheckpointId,
    NotifyCheckpointComplete,
    SwitchToUnaligned,
)

from .task_stage import ATTEMPT, JOB, TaskStage, deployment

BARRIER = CheckpointBarrier(CheckpointId(1), 5)
MARKER = CancelCheckpointMarker(CheckpointId(1))

END = Watermark(END_OF_TIME)


class Echo(Operator):
    """Hands on what it takes."""

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        out.emit(batch)


Start: TypeAlias = Callable[..., TaskStage]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return lambda inputs=1: TaskStage(Echo(), deployment(inputs=inputs), str(tmp_path), buffer_timeout_ms=5)


def lies_ready(stage: TaskStage, *elements: Element, wire: int = 0) -> None:
    """Elements on an input channel that the task has not looked at."""
    stage.plane.wires[ChannelId(wire)].elements.extend(elements)


def test_what_came_at_once_leaves_together_when_there_is_nothing_more_to_take(start: Start) -> None:
    stage = start()
    stage.arrives(0, [1], [2], [3])
    assert stage.emitted() == [[1, 2, 3]]


def test_a_calm_stream_does_not_wait(start: Start) -> None:
    stage = start()
    for number in range(3):
        stage.arrives(0, [number])
        assert stage.emitted() == [[number]]


@pytest.mark.usual_sizes
def test_a_busy_task_sends_what_is_due(start: Start) -> None:
    stage = start()
    lies_ready(stage, *([n] for n in range(100)))
    for ms in (0.0, 3.0, 4.9):
        stage.context.ms = ms
        assert stage.task.step() is Step.BUSY
    assert stage.emitted() == []
    taken = 100 - len(stage.plane.wires[ChannelId(0)].elements)
    stage.context.ms = 5.0
    assert stage.task.step() is Step.BUSY
    assert stage.emitted() == [list(range(taken))]


def test_a_task_that_is_held_back_sends_what_is_due(start: Start) -> None:
    stage = start()
    lies_ready(stage, [1], [2], [3])
    assert stage.task.step() is Step.BUSY
    stage.plane.wires[ChannelId(9)].has_credit = False
    stage.context.ms = 2.0
    assert stage.task.step() is Step.IDLE
    assert stage.task.idle_ms == 3.0
    assert stage.emitted() == []
    stage.context.ms = 5.0
    assert stage.task.step() is Step.IDLE
    assert stage.task.idle_ms is None
    assert stage.emitted() == [[1, 2]]


def test_what_it_kept_is_before_the_barrier(start: Start) -> None:
    stage = start()
    stage.arrives(0, [1], BARRIER, [2])
    assert stage.emitted() == [[1], BARRIER, [2]]


def test_what_it_kept_is_before_a_barrier_that_overtakes_its_input(start: Start) -> None:
    stage = start(inputs=2)
    lies_ready(stage, [1], [2], [3])
    assert stage.task.step() is Step.BUSY
    stage.task.on_receive(SwitchToUnaligned(JOB, ATTEMPT, BARRIER.checkpoint_id, BARRIER.timestamp_ms))
    assert stage.emitted() == [[1, 2], BARRIER]
    stage.settle()
    assert stage.emitted() == [[3]]


def test_what_it_kept_is_before_a_marker_that_cancels_a_checkpoint(start: Start) -> None:
    stage = start(inputs=2)
    stage.arrives(0, [1], MARKER, [2])
    assert stage.emitted() == [[1], MARKER, [2]]


def test_nothing_is_lost_at_the_end(start: Start) -> None:
    stage = start()
    stage.arrives(0, [1], [2], EndOfData())
    assert stage.emitted() == [[1, 2], END, EndOfData()]
    lies_ready(stage, [3], [4], [5])
    assert stage.task.step() is Step.BUSY
    stage.tell(NotifyCheckpointComplete(JOB, ATTEMPT, CheckpointId(1), 5, final=True))
    assert stage.emitted() == [[3, 4], EndOfPartition()]


def test_nothing_is_sent_by_a_task_that_was_cancelled(start: Start) -> None:
    stage = start()
    lies_ready(stage, [1], [2], [3])
    assert stage.task.step() is Step.BUSY
    stage.tell(CancelTask(JOB, ATTEMPT))
    stage.context.ms = 100.0
    stage.settle()
    assert stage.emitted() == []
