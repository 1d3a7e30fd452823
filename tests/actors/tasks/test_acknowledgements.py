"""Acknowledgements of one TaskManager go together, and a checkpoint waits for none of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from understudy.actors.tasks.acknowledgements import Acknowledgements
from understudy.actors.tasks.task_manager import ACKNOWLEDGEMENT_DELAY_MS
from understudy.messages import (
    AbortReason,
    AcknowledgeCheckpoint,
    AcknowledgeTogether,
    CheckpointId,
    DeclineCheckpoint,
    ExecutionAttemptId,
    ExecutionState,
    JobId,
)

from .test_task_manager_output import Stage

MAP, REDUCE, SINK = (ExecutionAttemptId(name) for name in ("map-0", "reduce-0", "sink-0"))
RUNNING = (MAP, REDUCE, SINK)


def ack(attempt: ExecutionAttemptId, checkpoint: int = 1) -> AcknowledgeCheckpoint:
    return AcknowledgeCheckpoint(JobId("job-1"), attempt, CheckpointId(checkpoint), None, 0)


def test_the_last_one_takes_the_others_along_at_once() -> None:
    acks = Acknowledgements()
    assert [acks.add(ack(each), RUNNING) for each in RUNNING] == [False, False, True]
    assert acks.take() == AcknowledgeTogether((ack(MAP), ack(REDUCE), ack(SINK)))
    assert not acks.are_any


def test_one_that_is_alone_is_sent_as_it_is() -> None:
    acks = Acknowledgements()
    assert acks.add(ack(MAP), [MAP])
    assert acks.take() == ack(MAP)


def test_those_that_were_sent_are_not_waited_for_again() -> None:
    acks = Acknowledgements()
    acks.add(ack(MAP), RUNNING)
    assert acks.take() == ack(MAP)
    assert [acks.add(ack(each), RUNNING) for each in (REDUCE, SINK)] == [False, True]


def test_a_repeated_one_stands_for_nobody_else() -> None:
    acks = Acknowledgements()
    assert [acks.add(ack(MAP), [MAP, SINK]), acks.add(ack(MAP), [MAP, SINK])] == [False, False]
    assert acks.take() == AcknowledgeTogether((ack(MAP), ack(MAP)))


def test_one_of_a_task_that_runs_no_more_waits_for_nobody_that_does_not_run() -> None:
    assert Acknowledgements().add(ack(MAP), [])


def test_the_next_checkpoint_waits_for_all_again_and_keeps_the_order() -> None:
    acks = Acknowledgements()
    acks.add(ack(MAP, 1), RUNNING)
    assert [acks.add(ack(each, 2), RUNNING) for each in RUNNING] == [False, False, True]
    assert acks.take() == AcknowledgeTogether((ack(MAP, 1), ack(MAP, 2), ack(REDUCE, 2), ack(SINK, 2)))


def test_nothing_that_is_said_later_overtakes_one_that_waits() -> None:
    stage = Stage()
    stage.register()
    stage.actor._tasks |= {each: hosted() for each in (MAP, SINK)}
    declined = DeclineCheckpoint(JobId("job-1"), SINK, CheckpointId(1), AbortReason.SNAPSHOT_FAILED)
    stage.actor.on_receive(ack(MAP))
    assert stage.sent() == []
    stage.actor.on_receive(declined)
    assert stage.sent() == [ack(MAP), declined]


def test_one_that_waits_is_sent_when_its_time_is_over() -> None:
    stage = Stage()
    stage.register()
    stage.actor._tasks |= {each: hosted() for each in (MAP, SINK)}
    stage.actor.on_receive(ack(MAP))
    [(_, due)] = [each for each in stage.context.scheduled if each[0] == ACKNOWLEDGEMENT_DELAY_MS]
    stage.actor.on_receive(due)
    assert stage.sent() == [ack(MAP)]
    stage.actor.on_receive(due)
    assert stage.sent() == [ack(MAP)]


def hosted() -> Any:
    return SimpleNamespace(task=SimpleNamespace(state=ExecutionState.RUNNING), is_over=False)
