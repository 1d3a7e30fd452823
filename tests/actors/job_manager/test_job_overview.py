"""JobOverview: why a job is down, in the line that clients see."""

from __future__ import annotations

from understudy.actors.job_manager.job_overview import JobOverview
from understudy.actors.jobs.job_effects import TaskManagerLost
from understudy.messages import JobStatus, TaskManagerExited

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
