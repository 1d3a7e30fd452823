"""Takeovers and TaskManagerLinks: who waits for the tasks of an earlier leader's job, and what ends that."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.actors.jobs.job_stage import Stage, graph
from tests.actors.jobs.test_adoption import offers_of
from understudy.actors.job_manager.job_manager_settings import JobManagerSettings
from understudy.actors.job_manager.takeovers import AdoptionOverdue, LeaderPublished
from understudy.actors.job_manager.task_manager_links import TaskManagerLinks
from understudy.messages import (
    Heartbeat,
    JobGraph,
    JobId,
    LeaderSessionId,
    LeaderSessionMessage,
    RefuseRegistration,
    RegisterTaskManager,
    TaskManagerExited,
    TaskManagerId,
)

JOB, SESSION = JobId("job-1"), LeaderSessionId("session-2")


class Address:
    """A TaskManager, as far as its JobManager knows it: what it was told."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.told: list[Any] = []

    def tell(self, message: Any) -> None:
        self.told.append(message)


class World:
    """What an actor's context is: timers are kept, and go off when a test says so."""

    def __init__(self) -> None:
        self.timers: list[Any] = []
        self.addresses: dict[str, Address] = {}

    def schedule(self, delay_ms: float, event: Any) -> None:
        self.timers.append(event)

    def actor_of(self, address: str) -> Address:
        return self.addresses.setdefault(address, Address(address))

    def watch(self, ref: Address) -> None: ...

    @property
    def overdue(self) -> list[AdoptionOverdue]:
        return [each for each in self.timers if isinstance(each, AdoptionOverdue)]


class Job:
    """A ManagedJob of an earlier leader: what becomes of it."""

    def __init__(self, of: JobGraph) -> None:
        self.graph, self.job_id = of, of.job_id
        self.done: list[Any] = []
        self.heard: list[TaskManagerId] = []
        self.overview = SimpleNamespace(is_taken_over=False)
        self.master = SimpleNamespace(
            coordinator=SimpleNamespace(store=SimpleNamespace(restorable=lambda: iter(()))),
        )
        self.workers = SimpleNamespace(at=lambda **_: [], add=lambda message, ref: True)

    def say(self, text: str) -> None: ...

    def start(self) -> None:
        self.done.append("started")

    def adopt(self, offers: Any) -> None:
        self.done.append("adopted")

    def on(self, event: Any) -> None:
        self.done.append(type(event).__name__)

    def tidy_up(self) -> None: ...

    def hear(self, task_manager_id: TaskManagerId, beat: Heartbeat) -> None:
        self.heard.append(task_manager_id)


class TakenOverJob:
    """A new leader that has taken the job over."""

    def __init__(self) -> None:
        of = graph()
        self.offers = offers_of(Stage(of).running())
        self.world, self.job = World(), Job(of)
        settings = JobManagerSettings(1_000, 5_000, 5_000, 5_000, adoption_timeout_ms=9_000)
        high_availability: Any = SimpleNamespace(session=SESSION, is_kept=lambda _: False)
        jobs: Any = {JOB: self.job}
        self.links = TaskManagerLinks(
            self.world, settings, high_availability, jobs, lambda _: None, self.abandon  # type: ignore[arg-type]
        )  # fmt: skip

    def abandon(self, job_id: JobId) -> None:
        assert job_id == JOB
        self.job.done.append("abandoned")

    def begin(self) -> None:
        assert self.links.takeovers.begin(self.job, self.job.graph)  # type: ignore[arg-type]

    def told(self, offer: RegisterTaskManager) -> list[Any]:
        return self.world.actor_of(offer.control_address).told


@pytest.fixture
def stage() -> TakenOverJob:
    return TakenOverJob()


@pytest.mark.parametrize("published", ["before", "after"])
def test_a_job_that_is_taken_over_waits_out_once_the_leader_can_be_found(stage: TakenOverJob, published: str) -> None:
    """Whether that was before or after it was taken over."""
    if published == "before":
        stage.links.on(LeaderPublished())
    stage.begin()
    if published == "after":
        assert stage.world.overdue == []
        stage.links.on(LeaderPublished())
    (overdue,) = stage.world.overdue
    stage.links.on(overdue)
    assert stage.job.done == ["abandoned", "started"], "in this order: what is abandoned is all that runs of the job"


def test_who_has_offered_tasks_is_answered_when_the_job_starts_again(stage: TakenOverJob) -> None:
    stage.begin()
    stage.links.on(stage.offers[0])
    assert stage.told(stage.offers[0]) == []
    stage.links.on(AdoptionOverdue(JOB))
    (refusal,) = stage.told(stage.offers[0])
    assert isinstance(refusal, RefuseRegistration)
    assert refusal.task_manager_id == stage.offers[0].task_manager_id
    assert "its job starts again from its newest checkpoint: 2 of its 4 tasks have not reported" in refusal.reason


def test_a_task_manager_that_ends_meanwhile_decides_at_once(stage: TakenOverJob) -> None:
    stage.begin()
    stage.links.on(stage.offers[0])
    stage.links.on(TaskManagerExited(JOB, 1, "killed"))
    assert stage.job.done == ["abandoned", "started"], "the job, which begins anew, is not told of the process before"
    assert len(stage.told(stage.offers[0])) == 1


def test_one_that_was_released_is_not_heard_any_more(stage: TakenOverJob) -> None:
    """A job that has ended has no figures of it, and does not know it."""
    stage.begin()
    for offer in stage.offers:
        stage.links.on(offer)
    assert stage.job.done == ["adopted"]
    ids = [offer.task_manager_id for offer in stage.offers]
    for each in ids:
        stage.links.on(LeaderSessionMessage(SESSION, Heartbeat(each, 1)))
    assert stage.job.heard == ids
    stage.links.job_ended(JOB, ids)
    stage.links.on(LeaderSessionMessage(SESSION, Heartbeat(ids[0], 2)))
    assert stage.job.heard == ids


def test_who_offers_tasks_again_is_answered_where_it_is_now(stage: TakenOverJob) -> None:
    """Another process of the same number may have taken its place."""
    stage.begin()
    stage.links.on(stage.offers[0])
    stage.links.on(again := replace(stage.offers[0], control_address="elsewhere"))
    stage.links.on(AdoptionOverdue(JOB))
    assert [type(each) for each in stage.told(again)] == [RefuseRegistration]


def test_a_job_that_ends_while_it_waits_is_not_started_and_not_shown_as_taken_over(stage: TakenOverJob) -> None:
    stage.begin()
    assert stage.job.overview.is_taken_over
    stage.links.job_ended(JOB, [])
    stage.links.on(AdoptionOverdue(JOB))
    assert (stage.job.done, stage.job.overview.is_taken_over) == ([], False)
