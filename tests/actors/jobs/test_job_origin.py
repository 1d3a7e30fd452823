"""A job that was started from another one's savepoint: where it restores from until it has a checkpoint of its own."""

from __future__ import annotations

from dataclasses import replace

from understudy.actors.jobs.job_effects import RestartDue
from understudy.actors.restore.restore_points import Origin
from understudy.messages import (
    ExecutionState,
    FailureCause,
    FailureKind,
    JobStatus,
    NotifyCheckpointComplete,
    OperatorId,
    Predecessor,
    SubmitTask,
    TaskDeployment,
)

from ..savepoints import chain, checkpoint, keyed_state
from .job_stage import FAILURE, Stage, graph

ROOT = "/elsewhere/checkpoints"
STATE = keyed_state(range(128))
SAVED = checkpoint((chain("op-sink-0"), [{"op-sink-0": STATE}]))


def stage(saved: bool = True, *, is_final: bool = False) -> Stage:
    return Stage(graph(attempts=3), Origin(replace(SAVED, is_final=is_final), ROOT) if saved else None)


def fail_and_restart(stage: Stage, deployments: list[TaskDeployment], cause: FailureCause = FAILURE) -> None:
    """One task fails, the others are cancelled, and the delay passes."""
    stage.report(deployments[0], ExecutionState.FAILED, cause)
    for each in deployments[1:]:
        stage.report(each, ExecutionState.CANCELED)
    stage.tell(RestartDue(frozenset({"source-0", "sink-0"})))


def fail(stage: Stage, deployments: list[TaskDeployment], cause: FailureCause = FAILURE) -> None:
    """For good."""
    stage.report(deployments[0], ExecutionState.FAILED, cause)
    for each in deployments[1:]:
        stage.report(each, ExecutionState.CANCELED)


def restored(stage: Stage) -> list[tuple[int | None, str]]:
    return sorted({(d.deployment.restored_checkpoint_id, d.deployment.restored_root) for d in stage.said(SubmitTask)})


def test_tasks_are_told_their_share_and_the_root_that_its_files_are_below() -> None:
    deployments = stage().deployed()
    assert {(each.restored_checkpoint_id, each.restored_root) for each in deployments} == {(7, ROOT)}
    shares = {each.subtask_index: each.restored for each in deployments if each.vertex_id == "sink-0"}
    groups = [
        (handle.first_key_group, handle.last_key_group)
        for _, (state,) in sorted(shares.items())
        for handle in state.operators[OperatorId("op-sink-0")].keyed
    ]
    assert groups == [(0, 63), (64, 127)]


def test_it_is_restored_from_again_until_the_job_has_a_checkpoint_of_its_own() -> None:
    job = stage()
    fail_and_restart(job, job.running())
    assert restored(job) == [(7, ROOT)]
    deployments = [message.deployment for message in job.said(SubmitTask)]
    for each in deployments:
        job.report(each, ExecutionState.RUNNING)
    own = job.checkpoint(deployments)
    fail_and_restart(job, deployments)
    assert restored(job) == [(own, "")]


def test_a_job_whose_origin_cannot_be_read_fails_instead_of_beginning_anew() -> None:
    job = stage()
    fail_and_restart(job, job.deployed(), FailureCause("CorruptState", "rotten", kind=FailureKind.UNREADABLE_STATE))
    assert job.said(SubmitTask) == []
    assert job.master.status in (JobStatus.FAILING, JobStatus.FAILED)
    assert job.master.failures[-1].error_type == "NoRestorableCheckpoint"


def test_an_error_of_user_code_condemns_no_checkpoint_whatever_its_class() -> None:
    job = stage()
    raised = FailureCause("MissingState", "a file of mine", kind=FailureKind.UNREADABLE_STATE)
    fail_and_restart(
        job, job.deployed(), FailureCause("UserCodeError", "count", kind=FailureKind.USER_CODE, cause=raised)
    )
    assert restored(job) == [(7, ROOT)]


def test_the_last_checkpoint_of_another_job_does_not_end_this_one() -> None:
    """It was the end of a job that was stopped with a savepoint, or drained."""
    job = stage(is_final=True)
    deployments = job.running()
    assert not any(each.finishing for each in deployments)
    assert [notice for notice in job.said(NotifyCheckpointComplete) if notice.final] == []
    job.checkpoint(deployments)
    assert job.master.status is JobStatus.RUNNING


def test_its_checkpoints_name_the_jobs_that_it_continues() -> None:
    """So that its output is known from that of others in the same folder, through any number of restarts."""
    first, origin = Predecessor("job-0", 3), Predecessor(SAVED.job_id, SAVED.checkpoint_id)
    job = Stage(graph(), Origin(replace(SAVED, predecessors=(first,)), ROOT))
    deployments = job.running()
    job.checkpoint(deployments)
    (completed,) = job.master.coordinator.store.retained()
    assert completed.predecessors == (first, origin)


def test_a_job_that_ends_tells_what_it_has_left_but_not_what_it_was_started_from() -> None:
    """That is its user's, who knows of it; here the job fails before and after its first checkpoint."""
    job = Stage(graph(attempts=0), Origin(SAVED, ROOT))
    fail(job, job.running())
    assert job.master.status is JobStatus.FAILED
    assert job.master.report.details().retained_checkpoint_path == ""

    job = Stage(graph(attempts=0), Origin(SAVED, ROOT))
    deployments = job.running()
    number = job.checkpoint(deployments)
    details = job.master.report.details()
    assert details.retained_checkpoint_path == "", "it runs"
    assert details.latest_checkpoint_path == f"/nowhere/chk-{number}", "absolute, as the retained one"
    fail(job, deployments)
    assert job.master.report.details().retained_checkpoint_path == f"/nowhere/chk-{number}"


def test_what_could_not_be_read_is_not_what_to_go_on_from() -> None:
    job = Stage(graph(attempts=1))
    deployments = job.running()
    job.checkpoint(deployments)
    fail_and_restart(job, deployments)
    unreadable = FailureCause("CorruptState", "expected 5 bytes", kind=FailureKind.UNREADABLE_STATE)
    fail(job, [message.deployment for message in job.said(SubmitTask)], unreadable)
    assert job.master.status is JobStatus.FAILED
    assert job.master.report.details().retained_checkpoint_path == ""
