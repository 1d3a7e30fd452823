"""What a TaskManager keeps of attempts that have ended: figures for its heartbeats, and no operator."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from understudy import Operator
from understudy.actors.actor import Terminated
from understudy.actors.operators.collector import Collector
from understudy.actors.tasks.ended_attempts import GARBAGE_DELAY_MS, REPORTS_KEPT, EndedAttempts, GarbageDue
from understudy.actors.tasks.task_manager import _Hosted
from understudy.messages import (
    CancelTask,
    ExecutionAttemptId,
    ExecutionState,
    LeaderSessionMessage,
    StackTraceSample,
    TriggerStackTraceSample,
    UpdateTaskExecutionState,
)

from .task_stage import ATTEMPT, FIGURES, JOB, TaskStage, deployment
from .test_leader_link import ONE, Stage


class Echo(Operator):
    def process_batch(self, batch: list[Any], out: Collector) -> None:
        out.emit(batch)


class Failing(Operator):
    def process_batch(self, batch: list[Any], out: Collector) -> None:
        raise ValueError("on purpose")


def attempt(number: int) -> ExecutionAttemptId:
    return ExecutionAttemptId(f"attempt-{number}")


class Garbage:
    """What an EndedAttempts does with it."""

    def __init__(self) -> None:
        self.collected = 0
        self.scheduled: list[Any] = []
        self.context: Any = SimpleNamespace(
            schedule=lambda delay_ms, message: self.scheduled.append((delay_ms, message))
        )
        self.ended = EndedAttempts(self._collect)

    def _collect(self) -> None:
        self.collected += 1

    def left(self, *, others_run: bool) -> None:
        self.ended.leave_garbage(self.context, others_run=others_run)


def test_garbage_goes_at_once_where_nothing_else_runs() -> None:
    garbage = Garbage()
    garbage.left(others_run=False)
    assert (garbage.collected, garbage.scheduled) == (1, [])


def test_tasks_that_run_are_interrupted_once_for_all_that_end_within_a_second() -> None:
    garbage = Garbage()
    garbage.left(others_run=True)
    garbage.left(others_run=True)
    assert (garbage.collected, garbage.scheduled) == (0, [(GARBAGE_DELAY_MS, GarbageDue())])
    garbage.ended.delay_is_over()
    assert garbage.collected == 1
    garbage.left(others_run=True)
    assert len(garbage.scheduled) == 2


def test_what_has_gone_with_the_last_task_is_not_looked_for_again() -> None:
    garbage = Garbage()
    garbage.left(others_run=True)
    garbage.left(others_run=False)
    garbage.ended.delay_is_over()
    assert garbage.collected == 1


def test_of_many_attempts_the_last_stay_once_another_begins() -> None:
    ended = EndedAttempts(list)
    for number in range(REPORTS_KEPT + 2):
        ended.add(attempt(number), FIGURES)
    assert attempt(0) in ended, "their ends may have been lost"
    ended.forget_old()
    assert [each in ended for each in map(attempt, range(4))] == [False, False, True, True]
    assert ended.metrics(attempt(2), 7.0) == replace(FIGURES, clock_ms=7.0)
    assert ended.metrics(attempt(0), 7.0) is None


def test_a_task_that_has_ended_keeps_its_figures_and_no_operator(tmp_path: Path) -> None:
    stage = TaskStage(Echo(), deployment(inputs=1), str(tmp_path))
    operator = weakref.ref(stage.task._running_parts().chain.operators[0])
    stage.arrives(0, [1, 2])
    running = stage.task.metrics()
    assert (running.records_in, running.clock_ms) == (2, 0)
    stage.tell(CancelTask(JOB, ATTEMPT))
    gc.collect()
    assert operator() is None
    stage.context.ms = 5
    assert stage.task.metrics() == replace(running, status="canceled", clock_ms=5), "rates go down to 0"
    assert not stage.task.has_gauges
    assert stage.task.watermark_report() is None


def test_heartbeats_have_the_last_figures_of_a_task_that_has_left(tmp_path: Path) -> None:
    stage = TaskStage(Echo(), deployment(inputs=1), str(tmp_path))
    manager = Stage()
    manager.acknowledge(ONE)
    ref: Any = SimpleNamespace(address="task", tell=stage.tell)
    manager.actor._tasks[ATTEMPT] = _Hosted(stage.task, ref)
    stage.tell(CancelTask(JOB, ATTEMPT))
    for message in stage.owner.messages:
        manager.tell(message)
    said = manager.tell(Terminated("task", "stopped"))
    assert said == [], "it has said so itself"
    assert ATTEMPT not in manager.actor._tasks
    assert [each.status for each in manager.actor._next_metrics()] == ["canceled"]


def test_a_task_whose_thread_died_has_failed(tmp_path: Path) -> None:
    stage = TaskStage(Echo(), deployment(inputs=1), str(tmp_path))
    manager = Stage()
    manager.acknowledge(ONE)
    ref: Any = SimpleNamespace(address="task", tell=stage.tell)
    manager.actor._tasks[ATTEMPT] = _Hosted(stage.task, ref)
    (said,) = [each.message for _, each in manager.tell(Terminated("task", "SystemExit"))]
    assert (said.attempt_id, said.state) == (ATTEMPT, ExecutionState.FAILED)
    assert [each.status for each in manager.actor._next_metrics()] == ["failed"]


def test_of_an_attempt_that_has_ended_a_stack_is_empty_and_a_cancellation_nothing_new(tmp_path: Path) -> None:
    """The end may be on its way to the leader: it is not said to be another one."""
    stage = TaskStage(Echo(), deployment(inputs=1), str(tmp_path))
    manager = Stage()
    manager.acknowledge(ONE)
    manager.actor._tasks[ATTEMPT] = _Hosted(stage.task, SimpleNamespace(address="task"))  # type: ignore[arg-type]
    manager.tell(Terminated("task", "SystemExit"))
    wanted = TriggerStackTraceSample(JOB, ATTEMPT, 7, 3, 10, 5)
    ((_, sample),) = manager.tell(LeaderSessionMessage(ONE, wanted))
    assert sample.message == StackTraceSample(JOB, ATTEMPT, 7, (), ())
    assert manager.tell(LeaderSessionMessage(ONE, CancelTask(JOB, ATTEMPT))) == []


def test_a_task_that_dies_while_it_closes_has_failed_in_heartbeats(tmp_path: Path) -> None:
    stage = TaskStage(Echo(), deployment(inputs=1), str(tmp_path))
    manager = Stage()
    manager.acknowledge(ONE)
    manager.actor._tasks[ATTEMPT] = _Hosted(stage.task, SimpleNamespace(address="task"))  # type: ignore[arg-type]
    stage.task._closing_from = ExecutionState.RUNNING
    manager.tell(Terminated("task", "OSError"))
    assert [each.status for each in manager.actor._next_metrics()] == ["failed"]


def test_what_cannot_be_closed_does_not_hide_why_the_task_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = TaskStage(Failing(), deployment(inputs=1), str(tmp_path))
    parts, closed = stage.task._running_parts(), list[str]()

    def unclosable() -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(parts.outputs, "close", unclosable)
    monkeypatch.setattr(parts.state, "close", lambda: closed.append("state"))
    stage.arrives(0, [1])
    failed = stage.said(UpdateTaskExecutionState)[-1]
    assert failed.state is ExecutionState.FAILED
    assert "on purpose" in str(failed.failure)
    assert closed == ["state"]
