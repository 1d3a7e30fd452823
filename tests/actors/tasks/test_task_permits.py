"""Task: permits for one of its operators reach that one, and what operators report reaches the TaskManager."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from understudy.actors.flow.elements import Batch
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.messages import ExecutionState, GrantPermits, OperatorId, RequestPermits, UpdateTaskExecutionState

from .task_stage import ATTEMPT, JOB, TaskStage, deployment


class Asking(Operator):
    """Asks for a permit for each record, and emits how many it got; it has no use for thirteen."""

    def open(self) -> None:
        self.granted: list[int] = []

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        self.context.report(RequestPermits(JOB, ATTEMPT, self.context.operator_id, len(batch)))

    def _permits_granted(self, message: GrantPermits) -> None:
        if message.count == 13:
            raise LookupError("no use for thirteen")
        self.granted.append(message.count)

    def on_idle(self, out: Collector) -> None:
        if self.granted:
            out.emit([(self.context.operator_id, *self.granted)])
            self.granted.clear()


class Passing(Operator):
    def process_batch(self, batch: Batch, out: Collector) -> None:
        out.emit(batch)


def granted(operator: str, count: int) -> GrantPermits:
    return GrantPermits(JOB, ATTEMPT, OperatorId(operator), count, 1.0)


def test_an_operator_asks_through_its_task_and_gets_what_is_granted_to_it(tmp_path: Path) -> None:
    stage = TaskStage([Passing(), Asking(), Passing()], deployment(1), str(tmp_path))
    stage.arrives(0, ["a", "b"])
    assert stage.said(RequestPermits) == [RequestPermits(JOB, ATTEMPT, OperatorId("op-1"), 2)]
    stage.tell(granted("op-1", 2))
    assert stage.emitted() == [[("op-1", 2)]]


def test_permits_for_another_operator_change_nothing(tmp_path: Path) -> None:
    stage = TaskStage([Passing(), Asking()], deployment(1), str(tmp_path))
    stage.tell(granted("op", 2), granted("op-7", 2))
    assert stage.emitted() == []


def test_what_goes_wrong_with_permits_fails_the_attempt_and_names_the_operator(tmp_path: Path) -> None:
    stage = TaskStage([Passing(), Asking()], deployment(1), str(tmp_path))
    stage.tell(granted("op-1", 13))
    (*_, last) = stage.said(UpdateTaskExecutionState)
    assert last.state is ExecutionState.FAILED
    assert "no use for thirteen" in str(last.failure)
    assert "op-1" in str(last.failure)
    stage.tell(granted("op-1", 1))
    assert stage.said(UpdateTaskExecutionState)[-1] is last, "it is over"
