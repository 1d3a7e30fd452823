"""The JobMaster and what holds its tasks back together: who gets permits, through restarts and lost processes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from understudy.actors.checkpoints.checkpoint_effects import Schedule
from understudy.actors.jobs.job_effects import PermitsDue, RestartDue, TaskManagerLost, Tell
from understudy.messages import (
    AnnounceWatermark,
    ExecutionState,
    GrantPermits,
    JobGraph,
    ReportThrottled,
    ReportWatermark,
    RequestPermits,
    SubmitTask,
    TaskDeployment,
)

from .job_stage import FAILURE, Stage, graph

SINK = "op-sink-0"


def limited(rate: float | None) -> JobGraph:
    """The sink has this rate."""
    job = graph()
    source, sink = job.vertices
    (operator,) = sink.operators
    return replace(job, vertices=(source, replace(sink, operators=(replace(operator, rate_per_second=rate),))))


def sinks(deployments: list[TaskDeployment]) -> list[TaskDeployment]:
    return [each for each in deployments if each.vertex_id == "sink-0"]


def wants(each: TaskDeployment, count: int) -> RequestPermits:
    return RequestPermits("job-1", each.attempt_id, SINK, count)


def timers(effects: list[Any]) -> list[Schedule[Any]]:
    return [each for each in effects if isinstance(each, Schedule) and isinstance(each.event, PermitsDue)]


def test_permits_go_to_the_task_manager_of_the_attempt() -> None:
    stage = Stage(limited(20.0))
    first, second = sinks(stage.running())
    stage.tell(wants(first, 1))
    (one,) = stage.of(Tell)
    assert one.message == GrantPermits("job-1", first.attempt_id, SINK, 1, rate_per_second=10.0)
    stage.tell(wants(second, 1))
    (other,) = stage.of(Tell)
    assert {one.task_manager_id, other.task_manager_id} == {"tm-0-0", "tm-1-0"}


def test_who_must_wait_gets_them_when_the_timer_is_due() -> None:
    stage = Stage(limited(1.0))
    first, second = sinks(stage.running())
    stage.tell(wants(first, 1))
    (timer,) = timers(stage.tell(wants(second, 1)))
    stage.now += timer.delay_ms
    stage.tell(timer.event)
    assert [each.attempt_id for each in stage.said(GrantPermits)] == [second.attempt_id]


def test_attempts_that_are_cancelled_or_replaced_get_none_and_a_restart_gives_none_again() -> None:
    stage = Stage(limited(1.0))
    deployments = stage.running()
    first, second = sinks(deployments)
    stage.tell(wants(first, 1))
    (timer,) = timers(stage.tell(wants(second, 1)))
    stage.report(first, ExecutionState.FAILED, FAILURE)
    (restart,) = [each.event for each in stage.of(Schedule) if isinstance(each.event, RestartDue)]
    stage.now += timer.delay_ms
    assert stage.tell(timer.event) == [], "the second one is being cancelled"
    for each in deployments:
        stage.report(each, ExecutionState.CANCELED)
    stage.tell(restart)
    again = sinks([message.deployment for message in stage.said(SubmitTask)])
    assert stage.tell(wants(first, 1)) == [], "it has been replaced"
    stage.tell(wants(again[0], 1))
    assert [each.count for each in stage.said(GrantPermits)] == [1], "the token of the second one, that got none"
    assert timers(stage.tell(wants(again[1], 1)))
    assert stage.said(GrantPermits) == [], "the bucket was not filled by the restart"


def test_who_waits_in_a_lost_process_gets_none() -> None:
    stage = Stage(limited(1.0))
    first, second = sinks(stage.running())
    stage.tell(wants(first, 1))
    (timer,) = timers(stage.tell(wants(second, 1)))
    for lost in ("tm-0-0", "tm-1-0"):
        stage.tell(TaskManagerLost(lost, "killed", process_ended=True))
    stage.now += timer.delay_ms
    assert stage.tell(timer.event) == []


def test_a_throttle_of_one_task_holds_back_all() -> None:
    stage = Stage(limited(100.0))
    first, second = sinks(stage.running())
    assert stage.tell(ReportThrottled("job-1", first.attempt_id, SINK, 700.0)) == []
    (timer,) = timers(stage.tell(wants(second, 1)))
    assert timer.delay_ms == pytest.approx(699.0)


def test_without_a_rate_nobody_is_held_back_here() -> None:
    stage = Stage(limited(None))
    first, _ = sinks(stage.running())
    assert stage.tell(wants(first, 1)) == []
    assert stage.tell(ReportThrottled("job-1", first.attempt_id, SINK, 700.0)) == []


def test_the_slowest_of_a_group_is_announced_to_all_of_it() -> None:
    stage = Stage(graph())
    one, other = [each for each in stage.running() if each.vertex_id == "source-0"]
    stage.tell(ReportWatermark("job-1", one.attempt_id, "g", 80, 500, True))
    stage.tell(ReportWatermark("job-1", other.attempt_id, "g", 80, 300, True))
    announced = {each.attempt_id: each.minimum_ms for each in stage.said(AnnounceWatermark)}
    assert announced == {one.attempt_id: 300, other.attempt_id: 300}
    assert stage.tell(ReportWatermark("job-1", "attempt-of-old", "g", 80, 100, True)) == []
