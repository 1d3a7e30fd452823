"""What a task cannot send or store fails it, or its checkpoint, with the name of the operator at fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from understudy.actors.flow.elements import CheckpointBarrier
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.operator import Operator
from understudy.actors.operators.source import Source
from understudy.messages import (
    ChannelId,
    CheckpointId,
    DeclineCheckpoint,
    ExecutionState,
    TriggerCheckpoint,
    UpdateTaskExecutionState,
    pack_plain,
)
from understudy.state import OperatorListState, ValueState

from .task_stage import ATTEMPT, JOB, TaskStage, deployment

BARRIER = CheckpointBarrier(CheckpointId(1), 5)


def deep(depth: int = 100_000) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


def loop() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["again"] = made
    return made


class Making(Operator):
    """Emits what a test wants instead of what it takes."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        out.emit([self.make() for _ in batch])


class Keeping(Making):
    """Keeps it in a list of its own instead."""

    held = OperatorListState(object)

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        self.held.add(self.make())


VALUES = pytest.mark.parametrize(
    ("make", "why"),
    [
        (object, "an object cannot be sent or stored"),
        (deep, "nested deeper than 500"),
        (loop, "a dict contains itself"),
        (lambda: {"owner": [len]}, "['owner'][0]: a builtin_function_or_method cannot"),
    ],
    ids=["object", "deep", "loop", "inside"],
)


def failure_of(stage: TaskStage) -> Any:
    (last,) = [each for each in stage.said(UpdateTaskExecutionState) if each.state is ExecutionState.FAILED]
    return last.failure


@VALUES
def test_a_record_that_cannot_be_sent_fails_the_attempt_and_names_its_operator(
    tmp_path: Path, make: Any, why: str
) -> None:
    stage = TaskStage(Making(make), deployment(inputs=1), str(tmp_path))
    wire = stage.plane.wires[ChannelId(9)]
    wire.send = pack_plain  # type: ignore[assignment]  # a channel to another process, which writes what it is sent
    stage.arrives(0, [1])
    failure = failure_of(stage)
    name = stage.task.deployment.operators[-1].name
    assert failure.operator_name == name
    assert failure.error_message.startswith(f"operator {name!r} emitted a record that cannot be sent: ")
    assert why in failure.error_message


@VALUES
def test_a_value_that_cannot_be_stored_names_operator_and_state(tmp_path: Path, make: Any, why: str) -> None:
    stage = TaskStage(Keeping(make), deployment(inputs=1), str(tmp_path))
    stage.arrives(0, [1], BARRIER)
    failure = failure_of(stage)
    assert failure.operator_name == stage.task.deployment.operators[-1].name
    assert failure.cause.error_message.startswith("state 'held': ")
    assert why in failure.cause.error_message


class Numbering(Source):
    """One record, then nothing before the test is over."""

    left = 1

    def poll(self) -> Any:
        if not self.left:
            return None
        self.left = 0
        return [1]

    def offset(self) -> Any:
        return object()

    def seek(self, offset: Any) -> None: ...


def test_an_offset_that_cannot_be_stored_names_the_source(tmp_path: Path) -> None:
    stage = TaskStage(Numbering(), deployment(), str(tmp_path))
    stage.tell(TriggerCheckpoint(JOB, ATTEMPT, CheckpointId(1), 5))
    failure = failure_of(stage)
    assert failure.operator_name == stage.task.deployment.operators[-1].name
    assert "source-offset" in failure.cause.error_message


class Counting(KeyedOperator):
    held = ValueState(object)

    def process(self, record: Any, out: Collector) -> None:
        self.held.update(object())


def test_a_keyed_value_that_cannot_be_stored_declines_the_checkpoint_by_name(tmp_path: Path) -> None:
    operator = Counting()
    stage = TaskStage(operator, deployment(inputs=1), str(tmp_path))
    (running,) = stage.task._parts.chain.operators  # type: ignore[union-attr]
    running._backend.current_key = "k"  # type: ignore[attr-defined]
    running.process(1, Collector())  # type: ignore[attr-defined]
    stage.arrives(0, BARRIER)
    (declined,) = stage.said(DeclineCheckpoint)
    name = stage.task.deployment.operators[-1].name
    assert f"operator {name!r}, state 'held': value of key 'k': an object" in declined.detail
