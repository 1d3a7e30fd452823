"""JobOverview: why a job is down, in the line that clients see; what its tasks did, and that they do nothing then."""

from __future__ import annotations

from understudy.actors.job_manager.job_overview import JobOverview
from understudy.actors.jobs.job_effects import TaskManagerLost
from understudy.messages import Heartbeat, JobStatus, TaskManagerExited, TaskMetrics

from ...runtime.connectors.harness import ManualClock
from ..jobs.job_stage import Stage, graph

GONE = "the job's code is gone"


def overview(stage: Stage) -> JobOverview:
    return JobOverview(graph(), stage.master, {}, ManualClock())


def test_what_keeps_a_lost_task_manager_from_its_restart_comes_before_its_loss() -> None:
    stage = Stage(graph())
    stage.running()
    stage.tell(TaskManagerLost("tm-0-0", "killed by SIGKILL", process_ended=True))
    assert overview(stage).summary().last_failure.startswith("TaskManagerLost: ")
    stage.tell(TaskManagerExited("job-1", 0, "killed by SIGKILL"))
    stage.tell(TaskManagerExited("job-1", 0, GONE))
    said = overview(stage).summary()
    assert said.status is JobStatus.RESTARTING
    assert said.last_failure.startswith(f"TaskManager 0 ended before it registered: {GONE}; before that: TaskManagerL")
    assert overview(stage).told_status().startswith("restarting; last failure: TaskManager 0 ended before it")


def test_a_job_that_never_got_its_task_managers_says_why() -> None:
    stage = Stage(graph())
    assert overview(stage).summary().last_failure == ""
    stage.tell(TaskManagerExited("job-1", 1, GONE))
    assert overview(stage).summary().last_failure == f"TaskManager 1 ended before it registered: {GONE}"


def test_tasks_that_were_canceled_wait_for_nothing_and_an_ended_job_has_no_more_samples() -> None:
    stage, clock = Stage(graph()), ManualClock()
    stage.running()
    seen = JobOverview(graph(), stage.master, {}, clock)
    for second in (0, 1):
        clock.ms = 1000.0 * second
        waiting = [
            TaskMetrics(each.attempt_id, "source-0", "source", 0, 0, 0, 0, 1000 * second, 0, "running")
            for each in stage.master.graph.executions()
        ]
        seen.heard(Heartbeat("tm-0-0", second, tuple(waiting)))
    seen.look()
    assert [each.back_pressured for each in seen.view().samples] == [1.0]
    stage.tell(TaskManagerLost("tm-0-0", "killed by SIGKILL", process_ended=True))
    stage.tell(TaskManagerLost("tm-1-0", "killed by SIGKILL", process_ended=True))
    assert stage.master.status is JobStatus.RESTARTING
    clock.ms = 5000.0
    seen.look()
    assert [each.back_pressured for each in seen.view().samples] == [1.0, 0.0]
    seen.ended()
    clock.ms = 9000.0
    seen.look()
    assert len(seen.view().samples) == 2
