"""A TaskManager was without a leader for a while: what was said to it and by it meanwhile is lost, and made good."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from understudy.actors.checkpoints import checkpoint_events as checkpoint
from understudy.actors.checkpoints.checkpoint_effects import Publish
from understudy.messages import (
    AcknowledgeCheckpoint,
    CheckpointAborted,
    ExecutionState,
    JobStatus,
    NotifyCheckpointComplete,
    StopTask,
    SubtaskState,
    TaskDeployment,
    TriggerCheckpoint,
)

from .job_stage import Stage, graph
from .test_adoption import offers_of


@pytest.fixture
def stage() -> Stage:
    return Stage(graph(attempts=3))


def register_again(stage: Stage, runs: list[TaskDeployment], search: int = 2) -> list[Any]:
    """Of TaskManager 0, with those of its tasks that it still runs."""
    first, _ = offers_of(runs)
    return stage.tell(replace(first, search=search))


def given_up(stage: Stage) -> list[CheckpointAborted]:
    return [each.message for each in stage.of(Publish) if isinstance(each.message, CheckpointAborted)]


def acknowledge(stage: Stage, deployments: list[TaskDeployment]) -> None:
    (checkpoint_id,) = {each.checkpoint_id for each in stage.said(TriggerCheckpoint)}
    for each in deployments:
        state = SubtaskState({}, data_ended=False)
        stage.tell(AcknowledgeCheckpoint("job-1", each.attempt_id, checkpoint_id, state, 0))


def test_a_registration_that_is_only_repeated_changes_nothing(stage: Stage) -> None:
    running = stage.running()
    stage.checkpoint(running)
    stage.tell(checkpoint.TriggerCheckpointNow())
    assert register_again(stage, running, search=0) == []
    assert register_again(stage, running, search=2) != []
    assert register_again(stage, running, search=2) == []


def test_a_checkpoint_that_it_may_never_hear_of_is_given_up_and_the_next_one_completes(stage: Stage) -> None:
    running = stage.running()
    stage.tell(checkpoint.TriggerCheckpointNow())
    register_again(stage, running)
    (aborted,) = given_up(stage)
    assert aborted.reason.startswith("orders_lost: the TaskManager of ")
    assert aborted.reason.endswith(" was without a JobManager for a while")
    assert stage.checkpoint(running) == aborted.checkpoint_id + 1
    assert stage.master.status is JobStatus.RUNNING
    assert stage.master.restarts == 0


def test_one_that_waits_only_for_tasks_elsewhere_goes_on(stage: Stage) -> None:
    running = stage.running()
    stage.tell(checkpoint.TriggerCheckpointNow())
    acknowledge(stage, [each for each in running if each.subtask_index == 0])
    register_again(stage, running)
    assert given_up(stage) == []
    assert len(stage.master.coordinator.pending) == 1


def test_the_newest_checkpoint_is_said_again(stage: Stage) -> None:
    running = stage.running()
    complete = stage.checkpoint(running)
    register_again(stage, running)
    assert {each.checkpoint_id for each in stage.said(NotifyCheckpointComplete)} == {complete}


def test_so_is_that_sources_are_to_stop(stage: Stage) -> None:
    running = stage.running()
    stage.master.stop(stage.now, int(stage.now))
    register_again(stage, running)
    sources = {each.attempt_id for each in running if each.vertex_id.startswith("source") and not each.subtask_index}
    assert sources <= {each.attempt_id for each in stage.said(StopTask)}


def test_a_task_that_it_does_not_run_has_failed(stage: Stage) -> None:
    """Its deployment never came, or its failure was not heard of: nothing else would be heard of it."""
    running = stage.running()
    register_again(stage, running[1:] if running[0].subtask_index == 0 else running[:-1])
    assert stage.master.status is JobStatus.RESTARTING
    assert "does not run this task now" in str(stage.master.latest_failure)


def test_tasks_that_have_ended_are_not_missed(stage: Stage) -> None:
    running = stage.running()
    mine = [each for each in running if each.subtask_index == 0]
    for each in mine:
        stage.report(each, ExecutionState.FINISHED)
    register_again(stage, [each for each in running if each.subtask_index == 1])
    assert stage.master.restarts == 0
    assert stage.master.status is JobStatus.RUNNING
