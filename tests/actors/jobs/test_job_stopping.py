"""JobMaster: a job that is stopped, with a savepoint or without: held sources, repeated words, restarts in between."""

from __future__ import annotations

import pytest

from understudy.actors.checkpoints import checkpoint_events as checkpoint
from understudy.actors.checkpoints.checkpoint_effects import AnswerSavepoint, Schedule
from understudy.actors.checkpoints.pending_checkpoint import CheckpointKind
from understudy.actors.checkpoints.savepoint_request import Afterwards, SavepointRequest
from understudy.actors.jobs.job_effects import JobEnded, RepeatFinalNotify, RestartDue
from understudy.actors.jobs.job_ending import RELEASES_REPEATED
from understudy.messages import (
    AbortReason,
    AcknowledgeCheckpoint,
    DeclineCheckpoint,
    ExecutionState,
    JobStatus,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    NotifyEndOfData,
    StopTask,
    SubmitTask,
    SubtaskState,
    TaskDeployment,
    TriggerCheckpoint,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
)

from ..savepoint_requests import savepoint_now
from .job_stage import FAILURE, Stage, graph

STOP = savepoint_now("stop", stop=True)


def stopped(stage: Stage, deployments: list[TaskDeployment]) -> int:
    """Take the stop's checkpoint to its end; returns its id."""
    return stage.checkpoint(deployments, lambda: stage.tell(STOP))


def answers(stage: Stage) -> list[TriggerSavepointSuccess | TriggerSavepointFailure]:
    return [effect.answer for effect in stage.of(AnswerSavepoint)]


def restarted(stage: Stage, deployments: list[TaskDeployment]) -> list[TaskDeployment]:
    """The deployments after all these attempts have failed."""
    region = stage.master.graph.region_of(deployments[0].vertex_id)
    for each in deployments:
        stage.report(each, ExecutionState.FAILED, FAILURE)
    stage.tell(RestartDue(region))
    return [message.deployment for message in stage.said(SubmitTask)]


# ---------------------------------------------------------------------------------------------- stop without drain


def test_a_stopped_job_holds_its_sources_answers_commits_and_finishes() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    stage.tell(STOP)
    held = stage.said(TriggerCheckpoint)
    assert sorted(message.attempt_id for message in held) == sorted(
        each.attempt_id for each in deployments if not each.inputs
    )
    assert all(message.stop for message in held)
    for each in deployments:
        stage.tell(AcknowledgeCheckpoint("job-1", each.attempt_id, held[0].checkpoint_id, SubtaskState({}), 0))
    stage.tell(checkpoint.MetadataStored(held[0].checkpoint_id, "chk-1"))
    assert answers(stage) == [TriggerSavepointSuccess("job-1", "chk-1")]
    assert [message.final for message in stage.said(NotifyCheckpointComplete)] == [True] * 4
    for each in deployments:
        stage.report(each, ExecutionState.FINISHED)
    assert [ended.status for ended in stage.of(JobEnded)] == [JobStatus.FINISHED]


def test_a_region_that_fails_after_the_stop_only_commits_and_finishes() -> None:
    stage = Stage(graph(pipelines=2))
    deployments = stage.running()
    assert not any(each.finishing for each in deployments)
    savepoint = stopped(stage, deployments)
    region = stage.master.graph.region_of("source-0")
    others = [each for each in deployments if each.vertex_id not in region]
    for each in others:
        stage.report(each, ExecutionState.FINISHED)
    again = restarted(stage, [each for each in deployments if each.vertex_id in region])
    assert {(each.finishing, each.restored_checkpoint_id) for each in again} == {(True, savepoint)}
    for each in again:
        stage.report(each, ExecutionState.RUNNING)
    assert [(n.attempt_id, n.checkpoint_id, n.final) for n in stage.said(NotifyCheckpointComplete)] == [
        (each.attempt_id, savepoint, True) for each in again
    ]
    stage.tell(savepoint_now("late"))
    assert stage.said(TriggerCheckpoint) == []
    for each in again:
        stage.report(each, ExecutionState.FINISHED)
    assert [ended.status for ended in stage.of(JobEnded)] == [JobStatus.FINISHED]


def test_a_region_that_fails_before_the_stop_is_stored_breaks_it_and_takes_data_again() -> None:
    stage = Stage(graph(pipelines=2))
    deployments = stage.running()
    stage.tell(STOP)
    failing = [each for each in deployments if each.vertex_id in stage.master.graph.region_of("source-0")]
    stage.report(failing[0], ExecutionState.FAILED, FAILURE)
    (answer,) = answers(stage)
    assert isinstance(answer, TriggerSavepointFailure)
    assert "region_restarting" in answer.cause or "task_failed" in answer.cause
    released = {message.attempt_id for message in stage.said(NotifyCheckpointAborted)}
    assert {each.attempt_id for each in deployments if each.vertex_id == "source-1"} <= released
    assert not any(each.finishing for each in restarted(stage, failing[1:]))


def test_what_a_failed_stop_says_to_held_sources_is_said_again_a_few_times() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    stage.tell(STOP)
    sources = {message.attempt_id for message in stage.said(TriggerCheckpoint)}
    checkpoint_id = stage.said(TriggerCheckpoint)[0].checkpoint_id
    stage.tell(
        DeclineCheckpoint("job-1", deployments[-1].attempt_id, checkpoint_id, AbortReason.SNAPSHOT_FAILED, "broken")
    )
    rounds = 0
    while any(isinstance(effect.event, RepeatFinalNotify) for effect in stage.of(Schedule)):
        stage.tell(RepeatFinalNotify())
        said = stage.said(NotifyCheckpointAborted)
        assert {message.attempt_id for message in said} == (sources if said else set())
        rounds += bool(said)
    assert rounds == RELEASES_REPEATED


def test_an_aborted_periodic_checkpoint_is_said_once() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    stage.tell(savepoint_now("sp"))
    checkpoint_id = stage.said(TriggerCheckpoint)[0].checkpoint_id
    stage.tell(
        DeclineCheckpoint("job-1", deployments[-1].attempt_id, checkpoint_id, AbortReason.SNAPSHOT_FAILED, "broken")
    )
    assert not [effect for effect in stage.of(Schedule) if isinstance(effect.event, RepeatFinalNotify)]


def test_a_stop_that_follows_a_failed_one_is_not_undone_by_its_echo() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    stage.tell(STOP)
    first = stage.said(TriggerCheckpoint)[0].checkpoint_id
    stage.tell(DeclineCheckpoint("job-1", deployments[-1].attempt_id, first, AbortReason.SNAPSHOT_FAILED, "broken"))
    stopped(stage, deployments)
    stage.tell(RepeatFinalNotify())
    assert stage.said(NotifyCheckpointAborted) == []
    assert {message.checkpoint_id for message in stage.said(NotifyCheckpointComplete)} == {first + 1}


@pytest.mark.parametrize("status", ["restarting", "created", "canceled"])
def test_a_stop_of_a_job_that_does_not_run_is_refused_with_the_reason(status: str) -> None:
    stage = Stage(graph())
    if status == "restarting":
        stage.report(stage.running()[0], ExecutionState.FAILED, FAILURE)
    if status == "canceled":
        stage.effects = stage.master.cancel(1.0, 1)
    stage.tell(STOP)
    (answer,) = answers(stage)
    assert isinstance(answer, TriggerSavepointFailure)
    assert ("coordinator_shut_down" if status == "canceled" else "tasks_not_ready") in answer.cause


def test_a_stop_that_was_wanted_before_all_tasks_ran_goes_on_when_they_do() -> None:
    """A checkpoint may start as soon as its sources run; that the others run too must not end it."""
    stage = Stage(graph())
    deployments = stage.deployed()
    for each in sorted(deployments, key=lambda each: bool(each.inputs)):
        stage.report(each, ExecutionState.RUNNING)
        if each is [one for one in deployments if not one.inputs][-1]:
            stage.tell(STOP)
    pending = stage.master.coordinator.pending
    assert [each.kind for each in pending] == [CheckpointKind.STOP]


def test_a_region_restored_from_an_ordinary_savepoint_does_not_finish() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    stage.checkpoint(deployments, lambda: stage.tell(savepoint_now("sp")))
    again = restarted(stage, deployments)
    assert [each.finishing for each in again] == [False] * 4


# ----------------------------------------------------------------------------------------------------------- drain


def drained(stage: Stage, token: str | None = "drain") -> None:
    savepoint = None if token is None else SavepointRequest(token, afterwards=Afterwards.DRAIN)
    stage.effects = stage.master.stop(stage.now, int(stage.now), savepoint)


def all_data_ends(stage: Stage, deployments: list[TaskDeployment]) -> None:
    for each in deployments:
        stage.tell(NotifyEndOfData("job-1", each.attempt_id))


def test_a_drained_job_ends_its_sources_and_its_final_checkpoint_is_the_savepoint() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    drained(stage)
    assert {message.attempt_id for message in stage.said(StopTask)} == {
        each.attempt_id for each in deployments if not each.inputs
    }
    stage.checkpoint(deployments, lambda: all_data_ends(stage, deployments))
    assert answers(stage) == [TriggerSavepointSuccess("job-1", "chk-1")]
    assert [message.final for message in stage.said(NotifyCheckpointComplete)] == [True] * 4


def test_a_plain_stop_answers_nobody() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    drained(stage, token=None)
    stage.checkpoint(deployments, lambda: all_data_ends(stage, deployments))
    assert answers(stage) == []
    assert stage.master.coordinator.store.retained()[-1].is_final


def test_a_drain_survives_a_restart() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    drained(stage)
    again = restarted(stage, deployments)
    assert answers(stage) == []
    for each in again:
        stage.report(each, ExecutionState.RUNNING)
    assert {message.attempt_id for message in stage.said(StopTask)} >= {
        each.attempt_id for each in again if not each.inputs
    }
    stage.checkpoint(again, lambda: all_data_ends(stage, again))
    assert [type(answer) for answer in answers(stage)] == [TriggerSavepointSuccess]


def test_a_drain_fails_with_its_job() -> None:
    stage = Stage(graph(attempts=0))
    deployments = stage.running()
    drained(stage)
    stage.report(deployments[0], ExecutionState.FAILED, FAILURE)
    for each in deployments[1:]:
        stage.report(each, ExecutionState.CANCELED)
    (answer,) = answers(stage)
    assert isinstance(answer, TriggerSavepointFailure)
    assert "failed" in answer.cause


def test_a_drain_that_is_refused_does_not_stop_the_job() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    stage.tell(STOP)
    checkpoint_id = stage.said(TriggerCheckpoint)[0].checkpoint_id
    drained(stage)
    (answer,) = answers(stage)
    assert isinstance(answer, TriggerSavepointFailure)
    assert stage.said(StopTask) == []
    stage.tell(
        DeclineCheckpoint("job-1", deployments[-1].attempt_id, checkpoint_id, AbortReason.SNAPSHOT_FAILED, "broken")
    )
    assert stage.said(StopTask) == []


@pytest.mark.parametrize("token", [None, "drain"])
@pytest.mark.parametrize("stop", [False, True])
def test_a_savepoint_of_a_job_whose_data_is_being_ended_is_refused(token: str | None, stop: bool) -> None:
    """A job that was started from it would take the data for ended, and never read the rest."""
    stage = Stage(graph())
    stage.running()
    drained(stage, token)
    stage.tell(savepoint_now("sp", stop=stop))
    (answer,) = answers(stage)
    assert isinstance(answer, TriggerSavepointFailure)
    assert "job_is_stopping" in answer.cause
    stage.tell(checkpoint.TriggerCheckpointNow())
    assert len(stage.said(TriggerCheckpoint)) == 2


def test_a_drain_after_the_end_is_answered() -> None:
    stage = Stage(graph())
    stage.effects = stage.master.cancel(1.0, 1)
    drained(stage)
    (answer,) = answers(stage)
    assert isinstance(answer, TriggerSavepointFailure)
