"""JobMaster: one job's life, told as events and effects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from understudy.actors.checkpoints import checkpoint_events as checkpoint
from understudy.actors.checkpoints.checkpoint_effects import Schedule
from understudy.actors.jobs.job_effects import (
    CancelOverdue,
    JobEnded,
    KillTaskManager,
    RestartDue,
    SlotsOverdue,
    StartDue,
    StartTaskManager,
    TaskManagerLost,
)
from understudy.actors.jobs.task_manager_roster import MAX_FAILED_STARTS
from understudy.messages import (
    CancelTask,
    ExecutionState,
    Heartbeat,
    JobStatus,
    NotifyCheckpointComplete,
    NotifyEndOfData,
    SubmitTask,
    TaskManagerAwaited,
    TaskManagerExited,
    TaskMetrics,
    TriggerCheckpoint,
)

from ..savepoints import chain, keyed_state
from ..savepoints import checkpoint as completed
from .job_stage import FAILURE, UNREADABLE, Stage, graph


def test_task_managers_are_started_and_tasks_wait_for_all_slots() -> None:
    stage = Stage(graph())
    assert stage.of(StartTaskManager) == [StartTaskManager(0), StartTaskManager(1)]
    assert stage.register(0) == []
    deployments = stage.register(1)
    assert sorted((d.vertex_id, d.subtask_index) for d in deployments) == [
        ("sink-0", 0),
        ("sink-0", 1),
        ("source-0", 0),
        ("source-0", 1),
    ]
    assert stage.master.status is JobStatus.CREATED, "deployed, but nothing runs yet"


def test_too_few_slots_fail_the_job_with_the_numbers() -> None:
    stage = Stage(graph())
    (overdue,) = [s.event for s in stage.of(Schedule) if isinstance(s.event, SlotsOverdue)]
    stage.register(0)
    stage.tell(overdue)
    (ended,) = stage.of(JobEnded)
    assert ended.status is JobStatus.FAILED
    assert ended.failure is not None
    assert "needs 2 slots, 1 are offered" in ended.failure.error_message


def test_a_task_manager_that_cannot_be_started_yet_is_waited_for_and_the_error_says_why() -> None:
    stage = Stage(graph())
    (overdue,) = [s.event for s in stage.of(Schedule) if isinstance(s.event, SlotsOverdue)]
    stage.register(0)
    assert stage.tell(TaskManagerAwaited("job-1", 1, "all slots are taken")) == []
    stage.tell(overdue)
    (ended,) = stage.of(JobEnded)
    assert ended.failure is not None
    assert ended.failure.error_message.endswith("; TaskManager 1 waits: all slots are taken")


def test_that_one_had_to_wait_is_old_news_once_it_has_registered() -> None:
    stage = Stage(graph())
    (overdue,) = [s.event for s in stage.of(Schedule) if isinstance(s.event, SlotsOverdue)]
    stage.tell(TaskManagerAwaited("job-1", 0, "all slots are taken"))
    stage.register(0)
    stage.tell(TaskManagerAwaited("job-1", 0, "all slots are taken"))
    assert stage.master.report.task_managers_awaited == 0
    stage.tell(overdue)
    (ended,) = stage.of(JobEnded)
    assert ended.failure is not None
    assert "waits" not in ended.failure.error_message


def test_one_that_waits_does_not_hide_why_another_one_ended() -> None:
    stage = Stage(graph())
    (overdue,) = [s.event for s in stage.of(Schedule) if isinstance(s.event, SlotsOverdue)]
    stage.tell(TaskManagerExited("job-1", 0, "no module flights"))
    stage.tell(TaskManagerAwaited("job-1", 1, "all slots are taken"))
    stage.tell(overdue)
    (ended,) = stage.of(JobEnded)
    assert ended.failure is not None
    why = "TaskManager 0 ended before it registered: no module flights; TaskManager 1 waits: all slots are taken"
    assert ended.failure.error_message.endswith(f"; {why}")


def test_why_one_did_not_start_once_is_old_news_when_it_has_registered_since() -> None:
    stage = Stage(graph())
    stage.tell(TaskManagerExited("job-1", 0, "no numba"))
    stage.running()
    stage.tell(TaskManagerLost("tm-0-0", "executor lost", process_ended=True))
    stage.tell(TaskManagerExited("job-1", 0, "executor lost"))
    stage.tell(TaskManagerAwaited("job-1", 0, "Spark has no executor"))
    assert stage.master._roster.why_missing == "TaskManager 0 waits: Spark has no executor"


def test_the_slot_timer_means_nothing_once_the_job_runs() -> None:
    stage = Stage(graph())
    (overdue,) = [s.event for s in stage.of(Schedule) if isinstance(s.event, SlotsOverdue)]
    stage.running()
    assert stage.tell(overdue) == []


def test_the_slot_timer_of_the_start_means_nothing_to_a_restart() -> None:
    stage = Stage(graph())
    (overdue,) = [s.event for s in stage.of(Schedule) if isinstance(s.event, SlotsOverdue)]
    stage.running()
    stage.tell(TaskManagerLost("tm-0-0", "killed", process_ended=True))
    stage.tell(RestartDue(stage.master.graph.regions()[0]))
    (own,) = [s.event for s in stage.of(Schedule) if isinstance(s.event, SlotsOverdue)]
    assert stage.tell(overdue) == []
    stage.tell(own)
    assert stage.statuses() == [JobStatus.FAILING]


def test_a_task_manager_that_never_registers_is_started_ever_more_slowly_and_the_error_says_why() -> None:
    stage = Stage(graph())
    (overdue,) = [s.event for s in stage.of(Schedule) if isinstance(s.event, SlotsOverdue)]
    delays = []
    for _ in range(3):
        stage.tell(TaskManagerExited("job-1", 0, "no module named flights"))
        assert stage.of(StartTaskManager) == []
        (due,) = stage.of(Schedule)
        delays.append(due.delay_ms)
        stage.tell(due.event)
        assert stage.of(StartTaskManager) == [StartTaskManager(0)]
    assert delays == sorted(set(delays))
    stage.tell(overdue)
    (ended,) = stage.of(JobEnded)
    assert ended.failure is not None
    assert "no module named flights" in ended.failure.error_message


def test_task_managers_that_all_end_before_they_register_again_and_again_fail_the_job_at_once() -> None:
    """What ends them is no want of slots: to wait for those for a minute would only hide it."""
    stage = Stage(graph())
    for _ in range(MAX_FAILED_STARTS - 1):
        for index in range(2):
            stage.tell(TaskManagerExited("job-1", index, "exited with code 1; it wrote last: 'no module flights'"))
    stage.tell(TaskManagerExited("job-1", 0, "exited with code 1"))
    assert stage.of(JobEnded) == [], "the other one may still come"
    stage.tell(TaskManagerExited("job-1", 1, "exited with code 1; it wrote last: 'no module flights'"))
    (ended,) = stage.of(JobEnded)
    assert ended.failure is not None
    assert ended.failure.error_type == "NoResourceAvailable"
    assert ended.failure.error_message == (
        "no TaskManager can start: each of the 2 ended before it registered, 6 times and more; the last: TaskManager 1 "
        "ended before it registered: exited with code 1; it wrote last: 'no module flights'; the log has what they "
        "wrote before: mend that, and submit the job again"
    )


def test_a_task_manager_that_waits_for_a_slot_may_still_start_though_it_ended_again_and_again() -> None:
    stage = Stage(graph())
    for _ in range(MAX_FAILED_STARTS):
        stage.tell(TaskManagerExited("job-1", 0, "exited with code 1"))
    stage.tell(TaskManagerAwaited("job-1", 0, "all slots are taken"))
    for _ in range(MAX_FAILED_STARTS):
        stage.tell(TaskManagerExited("job-1", 1, "exited with code 1"))
        assert stage.of(JobEnded) == []


def test_a_job_that_has_a_checkpoint_waits_though_no_task_manager_can_start() -> None:
    """It was taken over from a JobManager that died: its state is worth a wait for the machine."""
    stage = Stage(graph())
    saved = completed((chain("op-sink-0"), [{"op-sink-0": keyed_state(range(128))}]))
    stage.master.coordinator.store.add(replace(saved, is_savepoint=False))
    for _ in range(MAX_FAILED_STARTS + 1):
        for index in range(2):
            stage.tell(TaskManagerExited("job-1", index, "exited with code 1"))
            assert stage.of(JobEnded) == []


@pytest.mark.parametrize("was_there", ["one is here", "one was here", "one waits for a slot"])
def test_task_managers_that_end_before_they_register_are_waited_for_where_one_was_here(was_there: str) -> None:
    """So they can start, and the job has perhaps something to lose."""
    stage = Stage(graph())
    if was_there == "one waits for a slot":
        stage.tell(TaskManagerAwaited("job-1", 0, "all slots are taken"))
    else:
        stage.register(0)
    if was_there == "one was here":
        stage.tell(TaskManagerLost("tm-0-0", "killed", process_ended=True))
        stage.tell(TaskManagerExited("job-1", 0, "killed"))
    for _ in range(2 * MAX_FAILED_STARTS):
        for index in (0, 1) if was_there == "one was here" else (1,):
            stage.tell(TaskManagerExited("job-1", index, "exited with code 1"))
            assert stage.of(JobEnded) == []


@pytest.mark.parametrize("ends_by", ["cancel", "failure"])
def test_in_the_place_of_one_that_ends_with_the_job_none_is_started(ends_by: str) -> None:
    stage = Stage(graph(attempts=0))
    first, *_ = stage.running()
    if ends_by == "cancel":
        stage.master.cancel(stage.now, 0)
    else:
        stage.report(first, ExecutionState.FAILED, FAILURE)
    assert stage.master.status in (JobStatus.CANCELLING, JobStatus.FAILING)
    stage.tell(TaskManagerExited("job-1", 1, "killed by SIGKILL"))
    assert stage.of(StartTaskManager) == []
    stage.tell(StartDue(1))
    assert stage.of(StartTaskManager) == []


def test_a_task_manager_that_cannot_be_started_is_what_a_job_waits_for() -> None:
    """Its code is gone, say: what ended the one before is not what is wrong now."""
    stage = Stage(graph())
    stage.running()
    assert stage.master.report.trouble == ""
    stage.tell(TaskManagerLost("tm-0-0", "killed by SIGKILL", process_ended=True))
    stage.tell(TaskManagerExited("job-1", 0, "killed by SIGKILL"))
    assert stage.master.report.trouble == ""
    stage.tell(TaskManagerExited("job-1", 0, "the job's code is gone"))
    assert stage.master.report.trouble == "TaskManager 0 ended before it registered: the job's code is gone"
    stage.tell(TaskManagerAwaited("job-1", 0, "no host has a free slot"))
    assert stage.master.report.trouble == ""
    stage.tell(TaskManagerExited("job-1", 0, "the job's code is gone"))
    stage.register(0, life=1)
    assert stage.master.report.trouble == ""


def test_checkpoints_start_when_all_tasks_run() -> None:
    stage = Stage(graph())
    *others, last = stage.deployed()
    for each in others:
        stage.report(each, ExecutionState.RUNNING)
        assert not [t for t in stage.of(Schedule) if isinstance(t.event, checkpoint.PeriodicTick)]
    stage.report(last, ExecutionState.RUNNING)
    assert [t for t in stage.of(Schedule) if isinstance(t.event, checkpoint.PeriodicTick)]


def test_a_failed_task_restarts_its_region_from_the_latest_checkpoint() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    checkpoint_id = stage.checkpoint(deployments)
    stage.report(deployments[0], ExecutionState.FAILED, FAILURE)
    assert stage.statuses() == [JobStatus.RESTARTING]
    assert {m.attempt_id for m in stage.said(CancelTask)} == {d.attempt_id for d in deployments[1:]}
    (due,) = [s for s in stage.of(Schedule) if isinstance(s.event, RestartDue)]
    assert due.delay_ms == 50
    for each in deployments[1:]:
        stage.report(each, ExecutionState.CANCELED)
    stage.tell(due.event)
    again = [m.deployment for m in stage.said(SubmitTask)]
    assert {d.restored_checkpoint_id for d in again} == {checkpoint_id}
    assert {d.attempt_number for d in again} == {1}
    assert not {d.attempt_id for d in again} & {d.attempt_id for d in deployments}
    assert stage.master.restarts == 1


def test_a_restart_waits_for_the_last_task_to_end() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    stage.report(deployments[0], ExecutionState.FAILED, FAILURE)
    (due,) = [s.event for s in stage.of(Schedule) if isinstance(s.event, RestartDue)]
    stage.tell(due)
    assert stage.said(SubmitTask) == []
    for each in deployments[1:3]:
        stage.report(each, ExecutionState.CANCELED)
    assert stage.said(SubmitTask) == []
    stage.report(deployments[3], ExecutionState.CANCELED)
    assert len(stage.said(SubmitTask)) == 4


def test_one_incident_with_many_failures_is_one_restart() -> None:
    stage = Stage(graph(attempts=1))
    deployments = stage.running()
    for each in deployments:
        stage.report(each, ExecutionState.FAILED, FAILURE)
    assert stage.master.restarts == 1
    assert stage.master.status is JobStatus.RESTARTING


def test_when_attempts_are_used_up_the_job_fails_with_its_last_cause() -> None:
    stage = Stage(graph(attempts=0))
    deployments = stage.running()
    stage.report(deployments[0], ExecutionState.FAILED, FAILURE)
    assert stage.statuses() == [JobStatus.FAILING]
    for each in deployments[1:]:
        stage.report(each, ExecutionState.CANCELED)
    (ended,) = stage.of(JobEnded)
    assert ended.status is JobStatus.FAILED
    assert ended.failure == replace(FAILURE, job_name="flights")


def test_other_regions_run_on() -> None:
    stage = Stage(graph(pipelines=2))
    deployments = stage.running()
    first = next(d for d in deployments if d.vertex_id == "source-0")
    stage.report(first, ExecutionState.FAILED, FAILURE)
    cancelled = {m.attempt_id for m in stage.said(CancelTask)}
    hit = {d.attempt_id for d in deployments if d.vertex_id in ("source-0", "sink-0")} - {first.attempt_id}
    assert cancelled == hit


def test_a_lost_task_manager_fails_its_tasks_and_its_place_is_filled_again() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    stage.tell(TaskManagerLost("tm-0-0", "killed", process_ended=True))
    assert stage.of(KillTaskManager) == []
    stage.tell(TaskManagerExited("job-1", 0, "killed"))
    assert stage.of(StartTaskManager) == [StartTaskManager(0)]
    for each in deployments:
        stage.report(each, ExecutionState.CANCELED)
    stage.tell(RestartDue(stage.master.graph.regions()[0]))
    assert stage.said(SubmitTask) == []
    assert len(stage.register(0, life=1)) == 4


def test_a_silent_task_manager_is_killed_before_another_takes_its_index() -> None:
    stage = Stage(graph())
    stage.running()
    stage.tell(TaskManagerLost("tm-0-0", "no heartbeat", process_ended=False))
    assert stage.of(KillTaskManager) == [KillTaskManager(0)]
    assert stage.of(StartTaskManager) == []


def test_a_second_process_of_one_index_replaces_the_first() -> None:
    stage = Stage(graph())
    stage.running()
    stage.register(0, life=1)
    assert stage.of(KillTaskManager) == []
    assert stage.master.status is JobStatus.RESTARTING


def test_corrupt_state_condemns_the_checkpoint_and_the_next_older_is_used() -> None:
    stage = Stage(graph(attempts=5))
    deployments = stage.running()
    older, newer = stage.checkpoint(deployments), stage.checkpoint(deployments)
    for failure, wanted in ((FAILURE, newer), (UNREADABLE, older)):
        for each in deployments:
            stage.report(each, ExecutionState.FAILED, failure)
        stage.tell(RestartDue(stage.master.graph.regions()[0]))
        deployments = [m.deployment for m in stage.said(SubmitTask)]
        assert {d.restored_checkpoint_id for d in deployments} == {wanted}


def test_a_lost_state_report_is_made_good_by_a_heartbeat() -> None:
    stage = Stage(graph())
    deployments = stage.deployed()
    metrics = tuple(
        TaskMetrics(d.attempt_id, d.vertex_id, d.vertex_name, d.subtask_index, 0, 0, 0, 0, 0, "running")
        for d in deployments
    )
    stage.tell(Heartbeat("tm-0-0", 1, metrics))
    assert stage.master.graph.all_running()


def test_figures_of_many_tasks_come_in_parts_and_those_of_tasks_that_are_gone_go_with_the_last_part() -> None:
    stage = Stage(graph())
    deployments = stage.deployed()

    def beat(*numbers: int, records: int, is_last_part: bool) -> list[tuple[str, int]]:
        metrics = tuple(
            TaskMetrics(d.attempt_id, d.vertex_id, d.vertex_name, d.subtask_index, records, 0, 0, 0, 0, "running")
            for d in (deployments[number] for number in numbers)
        )
        stage.tell(Heartbeat("tm-0-0", 1, metrics, is_last_part=is_last_part))
        return [(each.attempt_id, each.records_in) for each in stage.master.report.details().tasks]

    names = [each.attempt_id for each in deployments]
    assert beat(0, 1, records=1, is_last_part=False) == [(names[0], 1), (names[1], 1)]
    assert beat(2, 3, records=2, is_last_part=True) == [(names[0], 1), (names[1], 1), (names[2], 2), (names[3], 2)]
    assert stage.master.graph.all_running()
    assert beat(0, records=3, is_last_part=False)[0] == (names[0], 3)
    assert beat(2, records=4, is_last_part=True) == [(names[0], 3), (names[2], 4)]


def test_cancel_ends_every_task_and_then_the_job() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    stage.effects = stage.master.cancel(5.0, 5)
    assert len(stage.said(CancelTask)) == 4
    for each in deployments:
        stage.report(each, ExecutionState.CANCELED)
    assert [e.status for e in stage.of(JobEnded)] == [JobStatus.CANCELED]
    assert stage.master.cancel(6.0, 6) == []


def test_cancel_before_any_slot_ends_the_job_at_once() -> None:
    stage = Stage(graph())
    stage.effects = stage.master.cancel(5.0, 5)
    assert [e.status for e in stage.of(JobEnded)] == [JobStatus.CANCELED]


def test_a_task_that_does_not_stop_costs_its_task_manager() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    stage.effects = stage.master.cancel(5.0, 5)
    (overdue,) = [s.event for s in stage.of(Schedule) if isinstance(s.event, CancelOverdue)]
    for each in deployments[1:]:
        stage.report(each, ExecutionState.CANCELED)
    stage.tell(overdue)
    assert len(stage.of(KillTaskManager)) == 1


def test_a_bounded_job_ends_with_a_final_checkpoint() -> None:
    stage = Stage(graph())
    deployments = stage.running()
    for each in deployments[:-1]:
        stage.tell(NotifyEndOfData("job-1", each.attempt_id))
        assert stage.said(TriggerCheckpoint) == []

    def trigger() -> None:
        stage.tell(NotifyEndOfData("job-1", deployments[-1].attempt_id))

    stage.checkpoint(deployments, trigger)
    finals = stage.said(NotifyCheckpointComplete)
    assert len(finals) == 4
    assert all(message.final for message in finals)
    for each in deployments:
        stage.report(each, ExecutionState.FINISHED)
    assert [e.status for e in stage.of(JobEnded)] == [JobStatus.FINISHED]


def test_a_region_that_fails_after_the_final_checkpoint_only_commits_it_again() -> None:
    stage = Stage(graph(pipelines=2))
    deployments = stage.running()
    for each in deployments[:-1]:
        stage.tell(NotifyEndOfData("job-1", each.attempt_id))

    def trigger() -> None:
        stage.tell(NotifyEndOfData("job-1", deployments[-1].attempt_id))

    final = stage.checkpoint(deployments, trigger)
    region = stage.master.graph.region_of("source-0")
    for each in deployments:
        state = ExecutionState.FAILED if each.vertex_id in region else ExecutionState.FINISHED
        stage.report(each, state, FAILURE if each.vertex_id in region else None)
    stage.tell(RestartDue(region))
    again = [message.deployment for message in stage.said(SubmitTask)]
    assert {d.restored_checkpoint_id for d in again} == {final}
    for each in again:
        stage.report(each, ExecutionState.RUNNING)
    assert len(stage.said(NotifyCheckpointComplete)) == 4
    for each in again:
        stage.report(each, ExecutionState.FINISHED)
    assert [e.status for e in stage.of(JobEnded)] == [JobStatus.FINISHED]


@pytest.mark.parametrize("is_lost_first", [True, False], ids=["lost", "being-cancelled"])
def test_the_end_of_data_of_attempts_that_are_given_up_ends_nothing(is_lost_first: bool) -> None:
    """A JobManager that stood still hears of the loss first, and then what the lost attempts had said."""
    stage = Stage(graph())
    deployments = stage.running()
    if is_lost_first:
        for index in range(2):
            stage.tell(TaskManagerLost(f"tm-{index}-0", "no heartbeat", process_ended=True))
    else:
        stage.report(deployments[0], ExecutionState.FAILED, FAILURE)
    for each in deployments:
        stage.tell(NotifyEndOfData("job-1", each.attempt_id))
    if is_lost_first:
        stage.register(0, life=1)
        stage.register(1, life=1)
    else:
        for each in deployments[1:]:
            stage.report(each, ExecutionState.CANCELED)
    stage.tell(RestartDue(stage.master.graph.regions()[0]))
    again = [message.deployment for message in stage.said(SubmitTask)]
    assert len(again) == 4
    for each in again:
        stage.report(each, ExecutionState.RUNNING)
    stage.tell(checkpoint.RetryFinal())
    assert stage.said(TriggerCheckpoint) == []
    stage.checkpoint(again)
    assert not any(message.final for message in stage.said(NotifyCheckpointComplete))


@pytest.mark.parametrize("state", [ExecutionState.FINISHED, ExecutionState.FAILED])
def test_reports_of_replaced_attempts_change_nothing(state: ExecutionState) -> None:
    stage = Stage(graph())
    deployments = stage.running()
    for each in deployments:
        stage.report(each, ExecutionState.FAILED, FAILURE)
    stage.tell(RestartDue(stage.master.graph.regions()[0]))
    assert stage.report(deployments[0], state) == []
