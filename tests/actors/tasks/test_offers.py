"""What an attempt says of itself to a leader that has not deployed it, and says again to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.actors.actor import Terminated
from understudy.actors.ask_errors import NotRunning
from understudy.actors.flow.elements import Batch, CheckpointBarrier, EndOfData
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.actors.tasks.offers import AnotherLeads
from understudy.actors.tasks.task_manager import _Hosted, _is_the_end
from understudy.messages import (
    AskOperator,
    AskTask,
    CheckpointId,
    ExecutionAttemptId,
    ExecutionState,
    LeaderSessionId,
    LeaderSessionMessage,
    Message,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    NotifyEndOfData,
    OrderTogether,
    PutIntoInlet,
    SendToInlet,
    StopTask,
    SubtaskIndex,
    TriggerCheckpoint,
)

from .task_stage import ATTEMPT, JOB, TaskStage, deployment
from .test_leader_link import FIRST, ONE, Stage


class Passing(Operator):
    def process_batch(self, batch: Batch, out: Collector) -> None:
        out.emit(batch)


@pytest.fixture
def stage(tmp_path: Path) -> TaskStage:
    return TaskStage([Passing()], deployment(1), str(tmp_path))


def test_an_offer_says_where_it_runs_and_how_far_it_is(stage: TaskStage) -> None:
    offered = stage.task.offered(is_stopping=False)
    given = stage.task.deployment
    assert (offered.attempt_id, offered.vertex_id, offered.slot) == (ATTEMPT, given.vertex_id, given.slot)
    assert (offered.inputs, offered.outputs) == (given.inputs, given.outputs)
    assert (offered.state, offered.newest_checkpoint, offered.data_ended) == (ExecutionState.RUNNING, 0, False)
    stage.arrives(0, CheckpointBarrier(CheckpointId(3), 0))
    assert stage.task.offered(is_stopping=False).newest_checkpoint == 3
    stage.arrives(0, EndOfData())
    assert stage.task.offered(is_stopping=False).data_ended


def test_one_that_has_only_to_commit_the_last_checkpoint_is_stopping(tmp_path: Path) -> None:
    given = replace(deployment(1), finishing=True, restored_checkpoint_id=CheckpointId(3))
    assert TaskStage([Passing()], given, str(tmp_path)).task.offered(is_stopping=False).is_stopping


def test_the_end_of_its_data_is_said_to_each_leader(stage: TaskStage) -> None:
    stage.tell(AnotherLeads())
    assert stage.said(NotifyEndOfData) == []
    stage.arrives(0, EndOfData())
    stage.tell(AnotherLeads())
    assert stage.said(NotifyEndOfData) == [NotifyEndOfData(JOB, ATTEMPT)] * 2


@pytest.mark.parametrize(
    ("order", "ends"),
    [
        (StopTask(JOB, ATTEMPT), True),
        (TriggerCheckpoint(JOB, ATTEMPT, CheckpointId(1), 0, True), True),
        (TriggerCheckpoint(JOB, ATTEMPT, CheckpointId(1), 0, False), False),
        (NotifyCheckpointComplete(JOB, ATTEMPT, CheckpointId(1), 0, True), True),
        (NotifyCheckpointComplete(JOB, ATTEMPT, CheckpointId(1), 0, False), False),
        (NotifyCheckpointAborted(JOB, ATTEMPT, CheckpointId(1), "late"), False),
    ],
)
def test_what_is_about_to_end_is_known_by_its_orders(order: Message, ends: bool) -> None:
    assert _is_the_end(order) is ends


def test_a_job_that_was_ordered_to_stop_is_offered_as_such(stage: TaskStage) -> None:
    manager = Stage()
    manager.acknowledge(ONE)
    told: list[Any] = []
    hosted = _Hosted(stage.task, SimpleNamespace(address="task", tell=told.append))  # type: ignore[arg-type]
    manager.actor._tasks[ATTEMPT] = hosted
    (offer,) = manager.actor._offers()
    assert not offer.is_stopping
    manager.tell(LeaderSessionMessage(ONE, StopTask(JOB, ATTEMPT)))
    (offer,) = manager.actor._offers()
    assert offer.is_stopping
    assert told == [StopTask(JOB, ATTEMPT)]


def test_orders_that_come_together_are_given_to_each_task_as_if_they_came_alone(stage: TaskStage) -> None:
    manager = Stage()
    manager.acknowledge(ONE)
    told: dict[str, list[Any]] = {"one": [], "two": []}
    attempts = {name: ExecutionAttemptId(name) for name in told}
    for name, attempt in attempts.items():
        ref: Any = SimpleNamespace(address=name, tell=told[name].append)
        manager.actor._tasks[attempt] = _Hosted(stage.task, ref)
    one, two, gone = attempts["one"], attempts["two"], ExecutionAttemptId("gone")
    first, second = CheckpointId(1), CheckpointId(2)
    orders = (
        NotifyCheckpointComplete(JOB, one, first, 0),
        NotifyCheckpointComplete(JOB, gone, first, 0),
        NotifyCheckpointComplete(JOB, two, first, 0),
        TriggerCheckpoint(JOB, one, second, 0, True),
    )
    manager.tell(LeaderSessionMessage(ONE, OrderTogether(orders)))
    assert told == {"one": [orders[0], orders[3]], "two": [orders[2]]}
    assert [manager.actor._tasks[each].is_stopping for each in attempts.values()] == [True, False]


@pytest.mark.parametrize(
    "question",
    [
        AskTask(ATTEMPT, AskOperator(JOB, "count", False, None, None, "how many?")),
        PutIntoInlet(ATTEMPT, SendToInlet(JOB, "orders", SubtaskIndex(0), b"")),
    ],
)
def test_a_question_of_another_leader_is_not_answered_with_nothing(question: Message) -> None:
    """As while it looks for the next leader. None would be taken for the operator's answer."""
    manager = Stage()
    manager.acknowledge(ONE)
    for session in (LeaderSessionId("another"), ONE):
        with pytest.raises(NotRunning, match=r"another JobManager.*ask again"):
            manager.tell(LeaderSessionMessage(session, question))
        manager.tell(Terminated(FIRST, "the connection broke"))  # from here on it has no leader


def test_orders_of_another_leader_are_dropped_together(stage: TaskStage) -> None:
    manager = Stage()
    manager.acknowledge(ONE)
    told: list[Any] = []
    ref: Any = SimpleNamespace(address="task", tell=told.append)
    manager.actor._tasks[ATTEMPT] = _Hosted(stage.task, ref)
    orders = (TriggerCheckpoint(JOB, ATTEMPT, CheckpointId(1), 0),) * 2
    manager.tell(LeaderSessionMessage(LeaderSessionId("another"), OrderTogether(orders)))
    assert told == []
    assert manager.actor.stale_messages == 1
