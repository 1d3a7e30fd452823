"""A job goes on under another leader as it runs: all of its tasks, or none of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from understudy.actors.checkpoints import checkpoint_events as checkpoint
from understudy.actors.jobs.adoption import Adoption, adopted_tasks, given_up, next_channel_id
from understudy.actors.jobs.job_effects import RestartDue, StartTaskManager, TaskManagerLost
from understudy.actors.jobs.job_master import JobMaster, JobMasterSettings
from understudy.actors.jobs.restart_strategy import make_restart_strategy
from understudy.messages import (
    ExecutionState,
    JobGraph,
    JobStatus,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    NotifyEndOfData,
    OfferedTask,
    RegisterTaskManager,
    SubmitTask,
    TaskDeployment,
    TriggerCheckpoint,
)
from understudy.state.checkpoints.checkpoint_ids import StandaloneCheckpointIdCounter
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint, StandaloneCompletedCheckpointStore
from understudy.state.checkpoints.high_availability import KeptJob

from .job_stage import FAILURE, Stage, graph


def offer_of(deployment: TaskDeployment, **changes: Any) -> OfferedTask:
    offered = OfferedTask(
        deployment.vertex_id,
        deployment.subtask_index,
        deployment.attempt_id,
        deployment.attempt_number,
        deployment.slot,
        deployment.inputs,
        deployment.outputs,
        ExecutionState.RUNNING,
        newest_checkpoint=0,
        data_ended=False,
        is_stopping=False,
    )
    return replace(offered, **changes)


def offers_of(deployments: Sequence[TaskDeployment], **changes: Any) -> list[RegisterTaskManager]:
    """Each subtask index runs on the TaskManager with that index, as in `Stage`."""
    return [
        RegisterTaskManager(
            f"tm-{index}-0", "job-1", index, 1, f"tcp://h:{index}/tm", f"tcp://h:{index}", 100, "h",
            tuple(offer_of(each, **changes) for each in deployments if each.subtask_index == index),
        )
        for index in range(2)
    ]  # fmt: skip


@pytest.fixture
def job() -> JobGraph:
    return graph()


@pytest.fixture
def deployments(job: JobGraph) -> list[TaskDeployment]:
    return Stage(job).running()


def obstacle(job: JobGraph, offers: Sequence[RegisterTaskManager], newest: CompletedCheckpoint | None = None) -> str:
    adoption = Adoption(job, newest)
    for offer in offers:
        adoption.offer(offer)
    found = adoption.obstacle()
    return "" if found is None else found.why


def test_all_tasks_that_run_and_fit_together_are_adopted(job: JobGraph, deployments: list[TaskDeployment]) -> None:
    assert obstacle(job, offers_of(deployments)) == ""
    assert obstacle(job, reversed(offers_of(deployments))) == ""


def test_a_task_that_is_missing_is_an_obstacle_until_it_is_offered(
    job: JobGraph, deployments: list[TaskDeployment]
) -> None:
    first, second = offers_of(deployments)
    assert obstacle(job, [first]) == "2 of its 4 tasks have not reported"
    assert obstacle(job, [first, replace(second, tasks=second.tasks[:1])]) == "1 of its 4 tasks have not reported"
    assert obstacle(job, [first, replace(second, tasks=second.tasks[:1]), second]) == "", "the latest offer counts"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"state": ExecutionState.INITIALIZING}, "not all of its tasks were running"),
        ({"state": ExecutionState.CANCELING}, "not all of its tasks were running"),
        ({"is_stopping": True}, "it was about to end"),
    ],
)
def test_one_task_that_does_not_run_on_is_an_obstacle(
    job: JobGraph, deployments: list[TaskDeployment], changes: dict[str, Any], why: str
) -> None:
    first, second = offers_of(deployments)
    assert (
        obstacle(job, [first, replace(second, tasks=(replace(second.tasks[0], **changes), *second.tasks[1:]))]) == why
    )


def test_a_job_whose_last_checkpoint_is_complete_is_not_adopted(
    job: JobGraph, deployments: list[TaskDeployment]
) -> None:
    assert obstacle(job, offers_of(deployments), replace(completed(7), is_final=True)) == "it was about to end"
    assert obstacle(job, offers_of(deployments), completed(7)) == ""


def test_a_subtask_that_is_there_twice_is_an_obstacle(job: JobGraph, deployments: list[TaskDeployment]) -> None:
    first, second = offers_of(deployments)
    assert obstacle(job, [first, replace(second, tasks=(*second.tasks, first.tasks[0]))]) == (
        "it has 4 tasks, and 5 are there"
    )


def test_tasks_of_two_deployments_do_not_fit_together(job: JobGraph) -> None:
    """The leader died while it restarted a region: some tasks are of before, and some of after."""
    stage = Stage(graph(attempts=3))
    before = stage.running()
    stage.report(before[0], ExecutionState.FAILED, FAILURE)
    for each in before[1:]:
        stage.report(each, ExecutionState.CANCELED)
    region = stage.master.graph.regions()[0]
    stage.tell(RestartDue(region))
    after = [message.deployment for message in stage.said(SubmitTask)]
    assert len(after) == 4
    assert obstacle(job, offers_of(after)) == ""
    mixed = [
        *(each for each in before if each.subtask_index == 0),
        *(each for each in after if each.subtask_index == 1),
    ]
    assert obstacle(job, offers_of(mixed)) == "its tasks were not deployed together"


def test_tasks_that_run_elsewhere_than_their_neighbours_take_them_to_be_do_not_fit(
    job: JobGraph, deployments: list[TaskDeployment]
) -> None:
    first, second = offers_of(deployments)
    assert obstacle(job, [first, replace(second, task_manager_id="tm-1-1")]) == "its tasks were not deployed together"


def test_a_task_whose_neighbours_take_it_to_run_elsewhere_does_not_fit(
    job: JobGraph, deployments: list[TaskDeployment]
) -> None:
    """All ends of its channels agree, and it runs on another TaskManager."""

    def said(edges: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(
            replace(edge, channels=tuple(replace(each, producer_task_manager="tm-9-9") for each in edge.channels))
            for edge in edges
        )

    moved = [replace(each, inputs=said(each.inputs), outputs=said(each.outputs)) for each in deployments]
    assert obstacle(job, offers_of(moved)) == "its tasks were not deployed together"


# -- the JobMaster


@dataclass(frozen=True)
class From:
    """Numbers of attempts of a leader that begins behind those of others."""

    first: int

    def next_after(self, previous: int) -> int:
        return max(self.first, previous + 1)


class NextLeader(Stage):
    """A JobMaster of another leader: it knows the job, and what it has completed."""

    def __init__(self, job: JobGraph, *completed: CompletedCheckpoint) -> None:
        store = StandaloneCompletedCheckpointStore(job.checkpoints.retained, job.checkpoints.retention)
        for each in completed:
            store.add(each)
        ids, counter = itertools.count(100), StandaloneCheckpointIdCounter()
        counter.set_count(1_000)
        self.master = JobMaster(
            job,
            JobMasterSettings(task_managers=2, slots_per_task_manager=1, slot_timeout_ms=1000, cancel_timeout_ms=500),
            make_restart_strategy(job.restart, random.Random(1)),
            KeptJob(counter, store, attempt_numbers=From(50)),
            lambda prefix: f"{prefix}-{next(ids)}",
        )
        self.now = 0.0
        self.effects = []

    def adopt(self, offers: Sequence[RegisterTaskManager]) -> list[Any]:
        self.effects = self.master.adopt(offers, 0.0, 0)
        return self.effects


def completed(checkpoint_id: int) -> CompletedCheckpoint:
    return CompletedCheckpoint("job-1", checkpoint_id, 0, 0, 0, {}, metadata_path=f"chk-{checkpoint_id}/_metadata")


def test_an_adopted_job_runs_at_once_and_nothing_is_deployed_or_started(
    job: JobGraph, deployments: list[TaskDeployment]
) -> None:
    stage = NextLeader(job)
    stage.adopt(offers_of(deployments))
    assert stage.master.status is JobStatus.RUNNING
    assert stage.statuses() == [JobStatus.RUNNING]
    assert stage.said(SubmitTask) == stage.of(StartTaskManager) == []
    assert stage.master.restarts == 0
    found = {(each.subtask, each.attempt_id, each.number) for each in stage.master.graph.executions()}
    assert found == {
        ((each.vertex_id, each.subtask_index), each.attempt_id, each.attempt_number) for each in deployments
    }


def test_what_the_lost_leader_may_not_have_said_is_said(job: JobGraph, deployments: list[TaskDeployment]) -> None:
    """The newest checkpoint is complete; those that tasks have taken since will never be."""
    stage = NextLeader(job, completed(4), completed(5))
    first, second = offers_of(deployments, newest_checkpoint=5)
    stage.adopt([first, replace(second, tasks=tuple(replace(each, newest_checkpoint=7) for each in second.tasks))])
    everybody = {each.attempt_id for each in deployments}
    said = stage.said(NotifyCheckpointComplete)
    assert {(each.attempt_id, each.checkpoint_id, each.final) for each in said} == {
        (attempt, 5, False) for attempt in everybody
    }
    assert {(each.attempt_id, each.checkpoint_id) for each in stage.said(NotifyCheckpointAborted)} == {
        (attempt, lost) for attempt in everybody for lost in (6, 7)
    }


def test_checkpoints_go_on_behind_the_ids_of_the_lost_leader(job: JobGraph, deployments: list[TaskDeployment]) -> None:
    stage = NextLeader(job, completed(5))
    stage.adopt(offers_of(deployments))
    assert stage.checkpoint(deployments) == 1_000


def test_a_region_that_fails_later_is_deployed_with_channels_that_were_never_used(
    job: JobGraph, deployments: list[TaskDeployment]
) -> None:
    stage = NextLeader(job)
    stage.adopt(offers_of(deployments))
    used = {channel.channel_id for each in deployments for gate in each.inputs for channel in gate.channels}
    stage.report(deployments[0], ExecutionState.FAILED, FAILURE)
    for each in deployments[1:]:
        stage.report(each, ExecutionState.CANCELED)
    stage.tell(RestartDue(stage.master.graph.regions()[0]))
    again = [message.deployment for message in stage.said(SubmitTask)]
    assert {each.attempt_number for each in again} == {50}
    assert min(channel.channel_id for each in again for gate in each.inputs for channel in gate.channels) > max(used)


def test_a_taskmanager_that_is_lost_later_is_missed(job: JobGraph, deployments: list[TaskDeployment]) -> None:
    stage = NextLeader(job)
    stage.adopt(offers_of(deployments))
    stage.tell(TaskManagerLost("tm-1-0", "killed by SIGKILL", process_ended=True))
    assert stage.master.status is JobStatus.RESTARTING


def test_data_that_has_ended_everywhere_leads_to_the_last_checkpoint(
    job: JobGraph, deployments: list[TaskDeployment]
) -> None:
    stage = NextLeader(job)
    stage.adopt(offers_of(deployments, data_ended=True))
    assert {each.checkpoint_id for each in stage.said(TriggerCheckpoint)} == {1_000}


def test_so_it_does_where_the_rest_of_it_ends_later(job: JobGraph, deployments: list[TaskDeployment]) -> None:
    stage = NextLeader(job)
    first, second = offers_of(deployments, data_ended=True)
    stage.adopt([first, replace(second, tasks=tuple(replace(each, data_ended=False) for each in second.tasks))])
    assert stage.said(TriggerCheckpoint) == []
    for each in second.tasks:
        assert stage.said(TriggerCheckpoint) == []
        stage.tell(NotifyEndOfData("job-1", each.attempt_id))
    assert {each.checkpoint_id for each in stage.said(TriggerCheckpoint)} == {1_000}


def test_a_taskmanager_without_tasks_that_is_gone_is_started(job: JobGraph, deployments: list[TaskDeployment]) -> None:
    everything = RegisterTaskManager(
        "tm-0-0", "job-1", 0, 2, "tcp://h:0/tm", "tcp://h:0", 100, "h",
        tuple(replace(offer_of(each), slot=each.subtask_index) for each in deployments),
    )  # fmt: skip
    stage = NextLeader(job)
    stage.adopt([everything])
    assert stage.of(StartTaskManager) == [StartTaskManager(1)]


def test_checkpoints_that_are_given_up_are_those_behind_the_newest_complete_one() -> None:
    tasks = list(adopted_tasks(offers_of(Stage(graph()).running(), newest_checkpoint=40)))
    assert list(given_up(tasks, 38)) == [39, 40]
    assert list(given_up(tasks, 40)) == list(given_up(tasks, 45)) == []
    assert list(given_up(tasks, 0)) == list(range(25, 41)), "at most sixteen"


def test_only_what_is_missing_or_does_not_run_yet_may_pass(job: JobGraph, deployments: list[TaskDeployment]) -> None:
    """The next leader waits for nothing else."""

    def passes(*offers: RegisterTaskManager) -> bool:
        adoption = Adoption(job, None)
        for offer in offers:
            adoption.offer(offer)
        found = adoption.obstacle()
        assert found is not None
        return found.may_pass

    first, second = offers_of(deployments)
    assert passes(first)
    assert passes(first, offers_of(deployments, state=ExecutionState.INITIALIZING)[1])
    assert not passes(offers_of(deployments, is_stopping=True)[0])
    assert not passes(first, replace(second, task_manager_id="tm-1-1"))
    assert not passes(first, replace(second, tasks=(*second.tasks, first.tasks[0])))


def test_a_job_without_channels_begins_at_the_first_one() -> None:
    assert next_channel_id([]) == 0


def test_a_trigger_of_the_new_leader_reaches_the_sources(job: JobGraph, deployments: list[TaskDeployment]) -> None:
    stage = NextLeader(job)
    stage.adopt(offers_of(deployments))
    stage.tell(checkpoint.TriggerCheckpointNow())
    sources = {each.attempt_id for each in deployments if not each.inputs}
    assert {each.attempt_id for each in stage.said(TriggerCheckpoint)} == sources
