"""What a JobMaster makes known of failures, each once and by its root; and when the same one ends the job."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from understudy.actors.checkpoints.checkpoint_effects import Publish, Schedule
from understudy.actors.checkpoints.checkpoint_events import TriggerCheckpointNow
from understudy.actors.jobs.job_effects import FailureKnown, JobEnded, Restart, RestartDue, TaskManagerLost
from understudy.messages import (
    AbortReason,
    CheckpointAborted,
    DeclineCheckpoint,
    ExecutionState,
    FailureCause,
    FailureKind,
    JobGraph,
    JobStatus,
    SubmitTask,
    TaskDeployment,
    TriggerCheckpoint,
)

from .job_stage import FAILURE, Stage, graph

TYPO = FailureCause(
    "UserCodeError",
    "operator 'sink-0' raised at record 17 of this attempt",
    vertex_name="sink-0",
    operator_name="sink-0",
    subtask_index=1,
    record_position=17,
    cause=FailureCause("KeyError", "'delya'"),
    repeatable=True,
    kind=FailureKind.USER_CODE,
)
BROKEN = FailureCause("ChannelBroken", "the producer is gone", kind=FailureKind.CHANNEL_BROKEN)


def job(limit: int | None = 3, pipelines: int = 1, attempts: int = 100) -> JobGraph:
    return replace(graph(attempts, pipelines), max_same_failures=limit)


def restart(stage: Stage, deployments: list[TaskDeployment]) -> list[TaskDeployment]:
    """After a failure of the first one: the others end, the delay is over, and all run again."""
    (due,) = [s.event for s in stage.of(Schedule) if isinstance(s.event, RestartDue)]
    for each in deployments[1:]:
        stage.report(each, ExecutionState.CANCELED)
    stage.tell(due)
    again = [message.deployment for message in stage.said(SubmitTask)]
    for each in again:
        stage.report(each, ExecutionState.RUNNING)
    return again


def test_a_failure_is_made_known_with_what_follows() -> None:
    stage = Stage(job())
    deployments = stage.running()
    stage.report(deployments[0], ExecutionState.FAILED, TYPO)
    assert stage.of(FailureKnown) == [FailureKnown(replace(TYPO, job_name="flights"), Restart(50, None))]
    deployments = restart(stage, deployments)
    assert not stage.of(FailureKnown)
    checkpoint_id = stage.checkpoint(deployments)
    stage.report(deployments[0], ExecutionState.FAILED, TYPO)
    (known,) = stage.of(FailureKnown)
    assert known.restart == Restart(50, checkpoint_id)


def test_the_same_failure_ends_the_job_though_the_strategy_would_go_on() -> None:
    stage = Stage(job(limit=3))
    deployments = stage.running()
    for _ in range(2):
        stage.report(deployments[0], ExecutionState.FAILED, TYPO)
        assert JobStatus.FAILING not in stage.statuses()
        deployments = restart(stage, deployments)
    stage.report(deployments[0], ExecutionState.FAILED, TYPO)
    assert stage.statuses() == [JobStatus.FAILING]
    (known,) = stage.of(FailureKnown)
    assert known.restart is None
    for each in deployments[1:]:
        stage.report(each, ExecutionState.CANCELED)
    (ended,) = stage.of(JobEnded)
    assert ended.status is JobStatus.FAILED
    assert ended.failure is not None
    assert ended.failure.error_message.startswith(
        "failed 3 times at record 17 of operator 'sink-0' (subtask 1): KeyErr"
    )
    assert stage.master.restarts == 2
    assert len(stage.master.failures) == 3


@pytest.mark.parametrize("limit", [None, 1000])
def test_a_high_limit_or_none_leaves_it_to_the_strategy(limit: int | None) -> None:
    stage = Stage(job(limit, attempts=9))
    deployments = stage.running()
    for _ in range(9):
        stage.report(deployments[0], ExecutionState.FAILED, TYPO)
        deployments = restart(stage, deployments)
    stage.report(deployments[0], ExecutionState.FAILED, TYPO)
    assert stage.statuses() == [JobStatus.FAILING]
    assert stage.master.failures[-1].error_type == "UserCodeError"


def test_a_completed_checkpoint_in_between_begins_the_count_anew() -> None:
    stage = Stage(job(limit=2))
    deployments = stage.running()
    for _ in range(3):
        stage.report(deployments[0], ExecutionState.FAILED, TYPO)
        assert JobStatus.FAILING not in stage.statuses()
        deployments = restart(stage, deployments)
        stage.checkpoint(deployments)


def test_a_broken_channel_waits_for_its_explanation() -> None:
    stage = Stage(job())
    deployments = stage.running()
    stage.report(deployments[0], ExecutionState.FAILED, BROKEN)
    assert not stage.of(FailureKnown)
    stage.report(deployments[1], ExecutionState.FAILED, BROKEN)
    assert not stage.of(FailureKnown)
    stage.report(deployments[2], ExecutionState.FAILED, TYPO)
    assert stage.of(FailureKnown) == [FailureKnown(replace(TYPO, job_name="flights"), Restart(50, None))]
    stage.report(deployments[3], ExecutionState.CANCELED)
    assert not stage.of(FailureKnown)


def test_a_broken_channel_has_one_explanation_however_many_tasks_fail_of_it() -> None:
    """With a limit of two, the second task that raises the same would end the job."""
    stage = Stage(job(limit=2))
    first, second, third, *_ = stage.running()
    stage.report(first, ExecutionState.FAILED, BROKEN)
    stage.report(second, ExecutionState.FAILED, TYPO)
    assert stage.of(FailureKnown) == [FailureKnown(replace(TYPO, job_name="flights"), Restart(50, None))]
    stage.report(third, ExecutionState.FAILED, TYPO)
    assert not stage.of(FailureKnown)
    assert stage.statuses() == []
    assert stage.master.failures == (replace(TYPO, job_name="flights"),)


def test_a_broken_channel_that_nobody_explains_is_made_known_when_all_tasks_have_ended() -> None:
    stage = Stage(job())
    deployments = stage.running()
    stage.report(deployments[0], ExecutionState.FAILED, BROKEN)
    for each in deployments[1:]:
        assert not stage.of(FailureKnown)
        stage.report(each, ExecutionState.CANCELED)
    (known,) = stage.of(FailureKnown)
    assert (known.failure.error_type, known.restart) == ("ChannelBroken", Restart(50, None))


def test_a_failure_that_is_explained_later_counts_and_may_end_the_job() -> None:
    stage = Stage(job(limit=2))
    deployments = stage.running()
    stage.report(deployments[0], ExecutionState.FAILED, TYPO)
    deployments = restart(stage, deployments)
    stage.report(deployments[0], ExecutionState.FAILED, BROKEN)
    assert stage.statuses() == [JobStatus.RESTARTING]
    stage.report(deployments[1], ExecutionState.FAILED, TYPO)
    assert stage.statuses() == [JobStatus.FAILING]
    (known,) = stage.of(FailureKnown)
    assert (known.failure.error_type, known.restart) == ("RepeatedFailure", None)
    assert stage.master.restarts == 1, "the second was decided before the cause was known, and is none"
    for each in deployments[2:]:
        stage.report(each, ExecutionState.CANCELED)
    (ended,) = stage.of(JobEnded)
    assert ended.failure == stage.master.failures[-1]
    assert ended.failure is not None
    assert ended.failure.error_type == "RepeatedFailure"


def test_lost_task_managers_in_between_neither_count_nor_reset() -> None:
    stage = Stage(job(limit=2))
    deployments = stage.running()
    stage.report(deployments[0], ExecutionState.FAILED, TYPO)
    deployments = restart(stage, deployments)
    stage.tell(TaskManagerLost("tm-0-0", "killed", process_ended=True))
    lost = stage.of(FailureKnown)
    assert [known.failure.error_type for known in lost] == ["TaskManagerLost"]
    (due,) = [s.event for s in stage.of(Schedule) if isinstance(s.event, RestartDue)]
    for each in deployments:
        stage.report(each, ExecutionState.CANCELED)
    stage.tell(due)
    again = stage.register(0, life=1)
    for each in again:
        stage.report(each, ExecutionState.RUNNING)
    stage.report(again[0], ExecutionState.FAILED, TYPO)
    assert stage.statuses() == [JobStatus.FAILING]


def test_a_failure_of_each_of_two_regions_is_made_known() -> None:
    stage = Stage(job(pipelines=2))
    deployments = stage.running()
    for name in ("source-0", "source-1"):
        first = next(each for each in deployments if each.vertex_id == name)
        stage.report(first, ExecutionState.FAILED, FAILURE)
        assert len(stage.of(FailureKnown)) == 1


def test_what_one_event_makes_fail_in_several_regions_is_one_failure() -> None:
    stage = Stage(job(pipelines=3, attempts=1))
    stage.running()
    stage.tell(TaskManagerLost("tm-0-0", "killed", process_ended=True))
    assert len(stage.of(FailureKnown)) == 1
    assert len([s for s in stage.of(Schedule) if isinstance(s.event, RestartDue)]) == 3
    assert stage.master.restarts == 1, "one attempt of the strategy's, which has no other"
    assert len(stage.master.failures) == 1
    assert stage.master.status is JobStatus.RESTARTING


@pytest.mark.parametrize("heard_before", [[0], [1], [2], [0, 1], [1, 2], [2, 0], [2, 1, 0]], ids=str)
def test_a_lost_task_manager_is_one_failure_though_channels_of_some_regions_broke_before(
    heard_before: list[int],
) -> None:
    """A kill in a job of several pipelines used attempts up, one for each pipeline whose tasks heard of it before."""
    stage = Stage(job(pipelines=3, attempts=1))
    deployments = stage.running()
    known: list[FailureKnown] = []
    for number in heard_before:
        (sink,) = (each for each in deployments if each.vertex_id == f"sink-{number}" and each.subtask_index == 1)
        stage.report(sink, ExecutionState.FAILED, BROKEN)
        known += stage.of(FailureKnown)
    stage.tell(TaskManagerLost("tm-0-0", "killed", process_ended=True))
    known += stage.of(FailureKnown)
    assert [each.failure.error_type for each in known] == ["TaskManagerLost"]
    assert [each.error_type for each in stage.master.failures] == ["TaskManagerLost"]
    assert stage.master.restarts == 1
    assert stage.master.status is JobStatus.RESTARTING


def test_channels_of_two_regions_that_broke_of_two_causes_are_two_failures_and_one_restart() -> None:
    stage = Stage(job(pipelines=2, attempts=1))
    deployments = stage.running()
    other = replace(TYPO, error_message="another one", operator_name="sink-1", vertex_name="sink-1")
    first, second = ([each for each in deployments if each.vertex_id.endswith(f"-{pipeline}")] for pipeline in range(2))
    stage.report(first[0], ExecutionState.FAILED, BROKEN)
    stage.report(second[0], ExecutionState.FAILED, BROKEN)
    stage.report(first[1], ExecutionState.FAILED, TYPO)
    known = stage.of(FailureKnown)
    stage.report(second[1], ExecutionState.FAILED, other)
    known += stage.of(FailureKnown)
    assert [each.failure.error_message for each in known] == [TYPO.error_message, other.error_message]
    assert [each.error_message for each in stage.master.failures] == [TYPO.error_message, other.error_message]
    assert stage.master.restarts == 1
    assert stage.master.status is JobStatus.RESTARTING


@pytest.mark.parametrize(("repeatable", "status"), [(True, JobStatus.FAILING), (False, JobStatus.RESTARTING)])
def test_checkpoints_that_the_program_makes_fail_count_and_others_do_not(repeatable: bool, status: JobStatus) -> None:
    stage = Stage(job(limit=2, pipelines=2))
    deployments = stage.running()
    for checkpoint_id in (1, 2):
        stage.tell(TriggerCheckpointNow())
        detail = f"StateNotStorable: operator 'sink-0', state 'held', checkpoint {checkpoint_id}"
        reason = AbortReason.SNAPSHOT_FAILED
        stage.tell(DeclineCheckpoint("job-1", deployments[0].attempt_id, checkpoint_id, reason, detail, repeatable))
        if checkpoint_id == 1:
            assert stage.master.status is JobStatus.RESTARTING
            deployments = restart_all(stage, deployments)
    assert stage.master.status is status


def test_a_declined_checkpoint_names_the_task_manager_and_its_host() -> None:
    stage = Stage(graph(attempts=9))
    deployments = stage.running()
    stage.tell(TriggerCheckpointNow())
    (number,) = {each.checkpoint_id for each in stage.said(TriggerCheckpoint)}
    failing = deployments[-1].attempt_id
    stage.tell(DeclineCheckpoint("job-1", failing, number, AbortReason.SNAPSHOT_FAILED, "disk full"))
    (said,) = [each.message.reason for each in stage.of(Publish) if isinstance(each.message, CheckpointAborted)]
    assert re.fullmatch(r"declined: sink-0 subtask \d \(TaskManager [01] on h\): disk full", said)
    (known,) = stage.of(FailureKnown)
    assert re.search(r"sink-0 subtask \d \(TaskManager [01] on h\): disk full", known.failure.error_message)


def restart_all(stage: Stage, deployments: list[TaskDeployment]) -> list[TaskDeployment]:
    """After a failure of all regions."""
    dues = [s.event for s in stage.of(Schedule) if isinstance(s.event, RestartDue)]
    for each in deployments:
        stage.report(each, ExecutionState.CANCELED)
    again = []
    for due in dues:
        stage.tell(due)
        again += [message.deployment for message in stage.said(SubmitTask)]
    for each in again:
        stage.report(each, ExecutionState.RUNNING)
    return again
