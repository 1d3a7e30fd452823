"""JobMaster: which cause a failure has, and checkpoints that cannot be read."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from understudy.actors.jobs.job_effects import (
    ExitOverdue,
    FailureKnown,
    JobEnded,
    ProcessEnded,
    RestartDue,
    StartTaskManager,
    TaskManagerLost,
    Tell,
)
from understudy.messages import (
    ExecutionState,
    FailureCause,
    FailureKind,
    JobStatus,
    SubmitTask,
    TaskManagerExited,
)

from .job_stage import FAILURE, UNREADABLE, Stage, graph


def test_when_no_retained_checkpoint_can_be_read_the_job_fails_instead_of_beginning_anew() -> None:
    stage = Stage(graph(attempts=5))
    deployments = stage.running()
    for _ in range(2):
        stage.checkpoint(deployments)
    found: list[JobEnded] = []
    for failure in (FAILURE, UNREADABLE, UNREADABLE):
        for each in deployments:
            stage.report(each, ExecutionState.FAILED, failure)
            found += stage.of(JobEnded)
        stage.tell(RestartDue(stage.master.graph.regions()[0]))
        deployments = [m.deployment for m in stage.said(SubmitTask)]
    assert deployments == []
    (ended,) = found
    assert ended.failure is not None
    assert (ended.status, ended.failure.error_type) == (JobStatus.FAILED, "NoRestorableCheckpoint")
    assert ended.failure.cause is not None
    assert ended.failure.cause.error_type == "RestoreFailed"


def test_a_job_whose_last_checkpoint_cannot_be_read_ends_at_once_and_promises_no_restart() -> None:
    stage = Stage(graph(attempts=5))
    deployments = stage.running()
    stage.checkpoint(deployments)
    for each in deployments:
        stage.report(each, ExecutionState.FAILED, FAILURE)
    stage.tell(RestartDue(stage.master.graph.regions()[0]))
    deployments = [m.deployment for m in stage.said(SubmitTask)]
    known: list[FailureKnown] = []
    for each in deployments:
        stage.report(each, ExecutionState.FAILED, UNREADABLE)
        known += stage.of(FailureKnown)
    kinds = [(each.failure.error_type, each.restart) for each in known]
    assert kinds == [("RestoreFailed", None), ("NoRestorableCheckpoint", None)]
    (ended,) = stage.of(JobEnded)
    assert ended.failure is not None
    assert ended.failure.error_type == "NoRestorableCheckpoint"


def test_no_region_is_deployed_once_another_one_has_found_that_no_checkpoint_is_left() -> None:
    """Both wait for one TaskManager when it is heard that the checkpoint cannot be read."""
    stage = Stage(graph(attempts=9, pipelines=2))
    deployments = stage.running()
    stage.checkpoint(deployments)
    for each in deployments:
        stage.report(each, ExecutionState.FAILED, FAILURE)
    deployments = []
    for region in stage.master.graph.regions():
        stage.tell(RestartDue(region))
        deployments += [m.deployment for m in stage.said(SubmitTask)]
    assert len(deployments) == 8
    lost = [each for each in deployments if each.subtask_index == 0]
    stage.tell(TaskManagerLost("tm-0-0", "killed", process_ended=True))
    for each in deployments:
        if each not in lost:
            stage.report(each, ExecutionState.CANCELED)
    for region in stage.master.graph.regions():
        stage.tell(RestartDue(region))
        assert stage.said(SubmitTask) == []
    stage.report(lost[0], ExecutionState.FAILED, UNREADABLE)
    assert stage.register(0, life=1) == []
    (ended,) = stage.of(JobEnded)
    assert ended.failure is not None
    assert ended.failure.error_type == "NoRestorableCheckpoint"


def test_two_regions_that_cannot_read_one_checkpoint_condemn_only_that() -> None:
    stage = Stage(graph(attempts=9, pipelines=2))
    deployments = stage.running()
    older, newer = stage.checkpoint(deployments), stage.checkpoint(deployments)
    wanted = {"restored": newer, "again": older}
    for failure, name in ((FAILURE, "restored"), (UNREADABLE, "again")):
        for each in deployments:
            stage.report(each, ExecutionState.FAILED, failure)
        deployments = []
        for region in stage.master.graph.regions():
            stage.tell(RestartDue(region))
            deployments += [m.deployment for m in stage.said(SubmitTask)]
        assert len(deployments) == 8
        assert {d.restored_checkpoint_id for d in deployments} == {wanted[name]}


BROKEN_CHANNEL = FailureCause("ChannelBroken", "channel 3: the consumer closed it", kind=FailureKind.CHANNEL_BROKEN)


def test_a_task_that_cannot_restore_while_it_is_cancelled_condemns_its_checkpoint_too() -> None:
    """A neighbour has failed first: of a channel that broke because of it."""
    stage = Stage(graph(attempts=9))
    deployments = stage.running()
    older, newer = stage.checkpoint(deployments), stage.checkpoint(deployments)
    for each in deployments:
        stage.report(each, ExecutionState.FAILED, FAILURE)
    stage.tell(RestartDue(stage.master.graph.regions()[0]))
    first, second, *others = again = [m.deployment for m in stage.said(SubmitTask)]
    assert {d.restored_checkpoint_id for d in again} == {newer}
    stage.report(first, ExecutionState.FAILED, BROKEN_CHANNEL)
    stage.report(second, ExecutionState.FAILED, UNREADABLE)
    assert [known.restart.checkpoint_id for known in stage.of(FailureKnown) if known.restart] == [older]
    for each in others:
        stage.report(each, ExecutionState.CANCELED)
    stage.tell(RestartDue(stage.master.graph.regions()[0]))
    assert {m.deployment.restored_checkpoint_id for m in stage.said(SubmitTask)} == {older}


@pytest.mark.parametrize("order", list(permutations(("lost", "broken", "rotten", "cancelled"))), ids="-".join)
def test_a_rotten_checkpoint_is_passed_over_whatever_is_heard_first(order: tuple[str, ...]) -> None:
    """Of one region, restored on two TaskManagers: one of them is lost whose task could not restore, a neighbour fails
    of the broken channel, and what is left is cancelled. Reports of a lost TaskManager may come behind its loss.
    """
    stage = Stage(graph(attempts=9))
    deployments = stage.running()
    older, newer = stage.checkpoint(deployments), stage.checkpoint(deployments)
    for each in deployments:
        stage.report(each, ExecutionState.FAILED, FAILURE)
    region = stage.master.graph.regions()[0]
    stage.tell(RestartDue(region))
    again = [m.deployment for m in stage.said(SubmitTask)]
    assert {d.restored_checkpoint_id for d in again} == {newer}
    host = {tell.message.deployment.attempt_id: tell.task_manager_id for tell in stage.of(Tell)}
    of_lost, of_other = ([d for d in again if host[d.attempt_id] == f"tm-{index}-0"] for index in (0, 1))
    stage.report(of_other[0], ExecutionState.RUNNING)
    for each in order:
        match each:
            case "lost":
                stage.tell(TaskManagerLost("tm-0-0", "no heartbeat for 900 ms", process_ended=False))
            case "broken":
                stage.report(of_other[0], ExecutionState.FAILED, BROKEN_CHANNEL)
            case "rotten":
                stage.report(of_lost[-1], ExecutionState.FAILED, UNREADABLE)
            case "cancelled":
                for task in (*of_lost[:-1], *of_other[1:]):
                    stage.report(task, ExecutionState.CANCELED)
    stage.register(0, life=1)
    stage.tell(RestartDue(region))
    assert {m.deployment.restored_checkpoint_id for m in stage.said(SubmitTask)} == {older}
    assert stage.master.restarts == 2


def test_the_cause_that_comes_after_a_broken_channel_takes_its_place() -> None:
    stage = Stage(graph(attempts=0))
    first, second, *others = stage.running()
    stage.report(first, ExecutionState.FAILED, BROKEN_CHANNEL)
    stage.report(second, ExecutionState.FAILED, FAILURE)
    for each in others:
        stage.report(each, ExecutionState.CANCELED)
    (ended,) = stage.of(JobEnded)
    assert ended.failure == replace(FAILURE, job_name="flights")
    assert stage.master.failures == (ended.failure,)


def test_a_broken_channel_does_not_take_the_place_of_its_cause() -> None:
    stage = Stage(graph())
    first, second, *_ = stage.running()
    stage.report(first, ExecutionState.FAILED, FAILURE)
    stage.report(second, ExecutionState.FAILED, BROKEN_CHANNEL)
    assert stage.master.failures == (replace(FAILURE, job_name="flights"),)


def test_how_a_lost_process_ended_is_added_when_it_is_known() -> None:
    stage = Stage(graph())
    stage.running()
    stage.tell(TaskManagerLost("tm-1-0", "the connection broke", process_ended=False))
    stage.tell(TaskManagerExited("job-1", 1, "killed by SIGKILL"))
    (failure,) = stage.master.failures
    assert failure.error_type == "TaskManagerLost"
    assert failure.error_message.endswith("the connection broke; its process: killed by SIGKILL")


def test_processes_that_end_of_what_they_read_end_the_job_as_other_failures_that_come_again_do() -> None:
    stage = Stage(graph(attempts=100))
    stage.running()
    for time in range(5):
        assert stage.of(JobEnded) == []
        stage.tell(TaskManagerExited("job-1", time % 2, "division by zero", repeatable=True))
    assert stage.master.status is JobStatus.FAILING
    failure = stage.master.failures[-1]
    assert failure.kind is FailureKind.REPEATED
    assert failure.error_message.startswith(
        "failed 5 times: TaskManagerLost: TaskManager 0: division by zero; no check"
    )


def test_a_job_ends_at_once_when_none_can_be_started_any_more() -> None:
    """As of a Spark session that was stopped: it would have waited for slots until `slot_timeout_ms`."""
    stage = Stage(graph(attempts=100))
    stage.running()
    stage.tell(TaskManagerLost("tm-1-0", "the connection broke", process_ended=False))
    stage.tell(TaskManagerExited("job-1", 1, "the SparkSession is stopped", is_last=True))
    assert stage.master.status is JobStatus.FAILING
    assert stage.of(StartTaskManager) == []
    failure = stage.master.failures[-1]
    assert failure.error_type == "NoResourceAvailable"
    assert failure.error_message.endswith("no TaskManager can start any more: the SparkSession is stopped")


def test_a_job_that_fails_of_a_lost_process_ends_when_it_is_known_how_that_ended() -> None:
    """A connection breaks a moment before: the error would not say that the process was killed, or its exit code."""
    stage = Stage(graph(attempts=0))
    stage.running()
    stage.tell(TaskManagerLost("tm-1-0", "the connection broke", process_ended=False))
    stage.tell(TaskManagerLost("tm-0-0", "the connection broke", process_ended=False))
    assert stage.master.status is JobStatus.FAILING
    stage.tell(TaskManagerExited("job-1", 1, "exited with code 3"))
    (ended,) = stage.of(JobEnded)
    assert ended.failure is not None
    assert ended.failure.error_message.endswith("the connection broke; its process: exited with code 3")
    assert stage.of(StartTaskManager) == []


def test_how_a_lost_process_ended_is_waited_for_only_for_a_while_and_added_after_the_jobs_end_too() -> None:
    stage = Stage(graph(attempts=0))
    stage.running()
    stage.tell(TaskManagerLost("tm-1-0", "the connection broke", process_ended=False))
    stage.tell(TaskManagerLost("tm-0-0", "the connection broke", process_ended=False))
    stage.tell(ExitOverdue())
    assert stage.master.status is JobStatus.FAILED
    told = ProcessEnded(1, "killed by SIGKILL", None)
    assert stage.tell(TaskManagerExited("job-1", 1, "killed by SIGKILL")) == [told], "it is for the log only"
    assert stage.master.failures[0].error_message.endswith("its process: killed by SIGKILL")
    assert stage.tell(ExitOverdue()) == []


def test_a_job_that_fails_of_a_program_does_not_wait_for_how_a_process_ended() -> None:
    stage = Stage(graph(attempts=0))
    deployments = stage.running()
    stage.report(deployments[0], ExecutionState.FAILED, replace(FAILURE, task_manager="tm-0-0"))
    stage.tell(TaskManagerLost("tm-0-0", "the connection broke", process_ended=False))
    stage.tell(TaskManagerLost("tm-1-0", "the connection broke", process_ended=False))
    (ended,) = stage.of(JobEnded)
    assert ended.failure is not None
    assert ended.failure.error_type == "ValueError"


def test_a_task_that_its_task_manager_cancels_without_an_order_is_a_failure_that_names_it() -> None:
    stage = Stage(graph(attempts=9))
    deployments = stage.running()
    stage.report(deployments[0], ExecutionState.CANCELED)
    (known,) = stage.of(FailureKnown)
    assert (known.failure.error_type, known.failure.task_manager) == ("TaskCanceled", "tm-0-0")
    assert known.failure.error_message.startswith("TaskManager tm-0-0 has canceled this task by itself")
