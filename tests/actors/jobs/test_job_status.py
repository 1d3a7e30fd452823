"""The status of a job: RUNNING is said when every task runs, neither before nor later."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.checkpoints import checkpoint_events as checkpoint
from understudy.actors.checkpoints.checkpoint_effects import AnswerSavepoint, Publish, Schedule
from understudy.actors.jobs.job_effects import RestartDue, TaskManagerLost
from understudy.messages import (
    AcknowledgeCheckpoint,
    ExecutionState,
    JobStatus,
    JobStatusChanged,
    StopTask,
    SubmitTask,
    SubtaskState,
    TriggerCheckpoint,
    TriggerSavepointFailure,
    UpdateTaskExecutionState,
)

from ..savepoint_requests import savepoint_now
from .job_stage import FAILURE, Stage, graph


def test_a_job_is_running_once_every_task_runs() -> None:
    stage = Stage(graph())
    *others, last = stage.deployed()
    for each in others:
        stage.report(each, ExecutionState.RUNNING)
        assert stage.statuses() == []
    stage.report(last, ExecutionState.RUNNING)
    assert stage.statuses() == [JobStatus.RUNNING]


def test_a_restarted_job_is_restarting_until_every_task_runs_again() -> None:
    stage = Stage(graph(pipelines=2))
    deployments = stage.running()
    region = stage.master.graph.region_of("source-0")
    for each in deployments:
        if each.vertex_id in region:
            stage.report(each, ExecutionState.FAILED, FAILURE)
    stage.tell(RestartDue(region))
    *others, last = [message.deployment for message in stage.said(SubmitTask)]
    for each in others:
        stage.report(each, ExecutionState.RUNNING)
        assert stage.master.status is JobStatus.RESTARTING
    stage.report(last, ExecutionState.RUNNING)
    assert stage.statuses() == [JobStatus.RUNNING]


def test_a_job_runs_when_the_last_report_of_it_is_a_heartbeat_or_that_a_task_has_finished() -> None:
    stage = Stage(graph())
    *others, last = stage.deployed()
    for each in others:
        stage.report(each, ExecutionState.RUNNING)
    stage.report(last, ExecutionState.FINISHED)
    assert stage.statuses() == [JobStatus.RUNNING]
    for each in others:
        stage.report(each, ExecutionState.FINISHED)
    assert stage.statuses() == [JobStatus.FINISHED]


def test_a_job_whose_tasks_are_only_heard_of_when_they_have_finished_has_run() -> None:
    stage = Stage(graph())
    *others, last = stage.deployed()
    for each in others:
        stage.report(each, ExecutionState.FINISHED)
        assert stage.statuses() == []
    stage.report(last, ExecutionState.FINISHED)
    assert stage.statuses() == [JobStatus.RUNNING, JobStatus.FINISHED]


def test_a_region_that_waits_for_its_restart_keeps_the_job_restarting_though_its_tasks_had_finished() -> None:
    """A checkpoint that fails restarts all regions, also one whose tasks have finished meanwhile."""
    stage = Stage(graph(attempts=5, pipelines=2))
    deployments = stage.running()
    done, other = stage.master.graph.regions()
    stage.tell(checkpoint.TriggerCheckpointNow())
    (checkpoint_id,) = {message.checkpoint_id for message in stage.said(TriggerCheckpoint)}
    for each in deployments:
        state = SubtaskState({}, data_ended=False)
        stage.tell(AcknowledgeCheckpoint("job-1", each.attempt_id, checkpoint_id, state, 0))
    for each in deployments:
        if each.vertex_id in done:
            stage.report(each, ExecutionState.FINISHED)
    stage.tell(checkpoint.MetadataFailed(checkpoint_id, "disk full"))
    assert [type(timer.event) for timer in stage.of(Schedule)].count(RestartDue) == 2
    for each in deployments:
        if each.vertex_id in other:
            stage.report(each, ExecutionState.CANCELED)
    stage.tell(RestartDue(other))
    for message in stage.said(SubmitTask):
        stage.report(message.deployment, ExecutionState.RUNNING)
    assert stage.master.status is JobStatus.RESTARTING


def test_a_failure_before_all_tasks_run_is_told_too() -> None:
    stage = Stage(graph(attempts=2))
    deployments = stage.running()
    for _ in range(2):
        stage.report(deployments[0], ExecutionState.FAILED, FAILURE)
        (told,) = [t.message for t in stage.of(Publish) if isinstance(t.message, JobStatusChanged)]
        assert (told.status, told.failure) == (JobStatus.RESTARTING, replace(FAILURE, job_name="flights"))
        for each in deployments[1:]:
            stage.report(each, ExecutionState.CANCELED)
        stage.tell(RestartDue(stage.master.graph.regions()[0]))
        deployments = [message.deployment for message in stage.said(SubmitTask)]
    assert stage.master.restarts == 2


def test_a_job_that_is_stopped_before_it_runs_ends_its_sources_as_they_start() -> None:
    stage = Stage(graph())
    deployments = stage.deployed()
    stage.effects = stage.master.stop(5.0, 5)
    assert stage.said(StopTask) == []
    for each in deployments:
        stage.report(each, ExecutionState.RUNNING)
    assert stage.master.status is JobStatus.RUNNING
    assert {message.attempt_id for message in stage.said(StopTask)} == {
        each.attempt_id for each in deployments if each.vertex_id == "source-0"
    }


def test_a_job_that_is_cancelled_while_its_tasks_start_is_never_running() -> None:
    stage = Stage(graph())
    deployments = stage.deployed()
    stage.effects = stage.master.cancel(5.0, 5)
    assert stage.statuses() == [JobStatus.CANCELLING]
    for each in deployments:
        stage.report(each, ExecutionState.RUNNING)
        assert stage.statuses() == []
    for each in deployments:
        stage.report(each, ExecutionState.CANCELED)
    assert stage.statuses() == [JobStatus.CANCELED]


def test_a_savepoint_is_refused_before_the_sources_run_and_taken_once_the_job_does() -> None:
    stage = Stage(graph())
    last, *others = stage.deployed()
    for each in others:
        stage.report(each, ExecutionState.RUNNING)
    stage.tell(savepoint_now("s-1"))
    (refused,) = stage.of(AnswerSavepoint)
    assert isinstance(refused.answer, TriggerSavepointFailure)
    stage.report(last, ExecutionState.RUNNING)
    stage.tell(savepoint_now("s-2"))
    assert stage.of(AnswerSavepoint) == []
    assert stage.said(TriggerCheckpoint)


REPORTS = (ExecutionState.INITIALIZING, ExecutionState.RUNNING, ExecutionState.FINISHED, ExecutionState.FAILED)


@given(data=st.data())
def test_whatever_is_reported_a_job_is_running_if_and_only_if_all_its_tasks_are(data: st.DataObject) -> None:
    stage = Stage(graph(attempts=100, pipelines=2))
    stage.deployed()
    executions = stage.master.graph
    lives = [0, 0]
    for _ in range(data.draw(st.integers(1, 40), "steps")):
        match data.draw(st.sampled_from(["report", "report", "report", "canceled", "restart", "lose"])):
            case "report":
                attempt = data.draw(st.sampled_from(executions.executions()))
                state = data.draw(st.sampled_from(REPORTS))
                stage.tell(UpdateTaskExecutionState("job-1", attempt.attempt_id, state))
            case "canceled":
                for each in executions.executions():
                    if each.state is ExecutionState.CANCELING:
                        stage.tell(UpdateTaskExecutionState("job-1", each.attempt_id, ExecutionState.CANCELED))
            case "restart":
                stage.tell(RestartDue(data.draw(st.sampled_from(executions.regions()))))
            case _:
                index = data.draw(st.integers(0, 1))
                stage.tell(TaskManagerLost(f"tm-{index}-{lives[index]}", "killed", process_ended=True))
                lives[index] += 1
                stage.register(index, lives[index])
        if stage.master.status.is_terminal:
            assert executions.all_finished()
            return
        runs = executions.all_running_or_finished() and stage.master._restarts.are_over
        assert (stage.master.status is JobStatus.RUNNING) == runs
