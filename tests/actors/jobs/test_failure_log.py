"""FailureLog: what a user reads of failures: all of it once, and then how often."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from understudy.actors.failure import lost_task_manager
from understudy.actors.jobs.failure_log import FAILED_IN_A_ROW, IN_VAIN, PAUSE_MS, TOLD_AT_ONCE, FailureLog
from understudy.actors.jobs.job_effects import FailureKnown, ProcessEnded, Restart
from understudy.actors.jobs.repeated_failures import RepeatedFailures
from understudy.messages import (
    CheckpointAborted,
    CheckpointId,
    FailureCause,
    FailureKind,
    JobId,
    JobStatus,
    RestartStrategyConfig,
    RestartStrategyKind,
    SubtaskIndex,
    TaskManagerChanged,
)

from .job_stage import graph
from .test_repeated_failures import typo

SOON = Restart(300.0, None)


class Clock:
    now = 0.0

    def now_ms(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return 0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def told(clock: Clock) -> FailureLog:
    return FailureLog(graph(), clock)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_records_say_by_attributes_whose_failure_it_is(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    told.failed(FailureKnown(typo(), SOON))
    told.failed(FailureKnown(typo(), SOON, 2))
    told.job_ended(JobStatus.FAILED, RepeatedFailures(1).add(typo()), 1)
    for record in map(vars, caplog.records):
        where = [record[name] for name in ("job_name", "operator", "subtask", "attempt", "error_type")]
        assert where == ["flights", "worst", 0, 3, "KeyError"]
        assert record["job_id"] == str(graph().job_id)
    assert len(caplog.records) == 3


def test_a_record_about_no_failure_has_the_attributes_too(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    told.process_ended(ProcessEnded(1, "exited with code 3", None))
    (record,) = map(vars, caplog.records)
    assert [record[name] for name in ("job_name", "operator", "subtask", "error_type")] == ["flights", "", -1, ""]


def test_the_first_time_everything_is_told(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    told.failed(FailureKnown(typo(), SOON))
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("understudy.job", logging.WARNING)
    assert record.getMessage() == (
        "job 'flights' failed: KeyError: 'delya' (in operator 'worst', subtask 0, attempt 3, record 17); "
        "restarting in 0.3 s from the beginning, in case it passes; the same failure 5 times ends the job\n"
        "    Traceback: the user's line"
    )


def test_what_caused_the_error_is_told_too(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    root = FailureCause("ValueError", "no number", traceback="Traceback: another line")
    outer = typo()
    assert outer.cause is not None
    told.failed(FailureKnown(replace(outer, cause=replace(outer.cause, cause=root)), SOON))
    assert "\n  caused by ValueError: no number\n    Traceback: another line" in lines(caplog)[0]


def test_a_repetition_is_one_line_with_its_count(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    for attempt in range(3):
        told.failed(FailureKnown(replace(typo(), attempt_number=attempt), Restart(450.0, 12), attempt + 1))
    told.failed(FailureKnown(replace(typo(operator="best"), attempt_number=3), Restart(450.0, 12)))
    assert lines(caplog)[2] == (
        "job 'flights': the same failure again, 3 of 5: KeyError in operator 'worst', subtask 0, attempt 2, record 17; "
        "restarting in 0.5 s from checkpoint 12"
    )
    assert lines(caplog)[3].startswith("job 'flights' failed: KeyError: 'delya' (in operator 'best'")


def test_the_second_failure_at_one_record_says_that_it_will_come_again(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    for count in (1, 2, 3):
        told.failed(FailureKnown(typo(), SOON, count))
    said = (
        "the beginning. The same record has failed twice, and is read again: correct the program, or let it leave such"
    )
    assert [said in line for line in lines(caplog)] == [False, True, False]


def test_failures_at_other_records_or_at_none_are_not_said_to_be_of_one(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    for position in (17, 18):
        told.failed(FailureKnown(replace(typo(), record_position=position), SOON, position - 16))
    for count in (1, 2):
        told.failed(FailureKnown(replace(typo(operator="out"), record_position=-1), SOON, count))
    assert not any("has failed twice" in line for line in lines(caplog))


def test_a_failure_that_comes_again_and_again_with_checkpoints_in_between_is_said_to_end_nothing(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    """As of a file in a watched folder that cannot be read: the first line says that the fifth time ends the job."""
    for position in range(7):
        told.failed(FailureKnown(replace(typo(), record_position=position), SOON))
        told.checkpoint_completed()
    said = "It does not end the job, as checkpoints complete in between: it comes again until somebody mends it"
    assert [said in line for line in lines(caplog)] == [False] * 4 + [True] + [False] * 2


def test_a_repetition_that_is_not_counted_towards_the_end_has_no_limit(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    """After a checkpoint the count begins anew; the log still knows the failure."""
    for _ in range(2):
        told.failed(FailureKnown(typo(), SOON))
    assert (
        "again, for the 2nd time, but the first since a checkpoint completed: KeyError in operator 'worst'"
        in lines(caplog)[1]
    )


def test_a_lost_task_manager_is_at_no_place(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        told.failed(FailureKnown(FailureCause("TaskManagerLost", "tm-0-1 was lost: SIGKILL"), SOON))
    assert "for the 2nd time: TaskManagerLost: tm-0-1 was lost: SIGKILL; restarting" in lines(caplog)[1]


def test_a_long_text_is_logged_once(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    """State that cannot be stored: which types can be is no news the second time."""
    for number, address in ((1, "x7fc6c1176480"), (2, "x7fc6c36237c0")):
        declined = (
            f"checkpoint {number} was declined: <unlocked _th...{address}> cannot be stored; " + "allowed are " * 20
        )
        told.failed(FailureKnown(FailureCause("CheckpointFailed", declined), SOON, number))
    assert "allowed are" in lines(caplog)[0]
    assert "the same failure again, 2 of 5: CheckpointFailed, as logged above; restarting in" in lines(caplog)[1]
    told.job_ended(JobStatus.FAILED, FailureCause("CheckpointFailed", declined), 1)
    assert lines(caplog)[2].endswith("it failed: CheckpointFailed, as logged above")


def test_a_record_at_another_place_of_its_batch_is_no_other_text(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    """The batches of an inlet are cut otherwise when they are read again."""
    for place in (0, 1):
        told.failed(FailureKnown(typo(message=f"key 'user' is None at record {place} of the batch"), SOON, place + 1))
    assert "the same failure again, 2 of 5: KeyError in operator 'worst'" in lines(caplog)[1]


def test_another_text_of_the_same_failure_is_shown(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    told.failed(FailureKnown(typo(), SOON))
    told.failed(FailureKnown(typo(message="'dely'"), SOON, 2))
    assert "the same failure again, 2 of 5: KeyError: 'dely' (in operator 'worst'" in lines(caplog)[1]


def test_very_frequent_repetitions_are_counted_and_told_now_and_then(
    told: FailureLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(100):
        told.failed(FailureKnown(typo(), SOON))
    assert len([line for line in lines(caplog) if "KeyError" in line]) == TOLD_AT_ONCE
    clock.now += PAUSE_MS
    told.failed(FailureKnown(typo(), SOON))
    assert len([line for line in lines(caplog) if "KeyError" in line]) == TOLD_AT_ONCE + 1
    assert "for the 101st time" in lines(caplog)[-1]


@pytest.mark.parametrize(("interval_ms", "is_told"), [(None, True), (500, False)])
def test_a_job_without_checkpoints_that_loses_a_task_manager_is_told_why_it_ends(
    clock: Clock, caplog: pytest.LogCaptureFixture, interval_ms: int | None, is_told: bool
) -> None:
    job = replace(
        graph(),
        checkpoints=replace(graph().checkpoints, interval_ms=interval_ms),
        restart=RestartStrategyConfig(RestartStrategyKind.NONE),
    )
    FailureLog(job, clock).failed(FailureKnown(lost_task_manager("tm-1", "unreachable"), None))
    assert ("StreamEnvironment(checkpoint_interval_ms=1_000)" in lines(caplog)[0]) == is_told


def test_a_failed_job_ends_with_its_reason_in_one_line(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    limited = RepeatedFailures(2)
    limited.add(typo())
    end = limited.add(typo())
    told.failed(FailureKnown(typo(), SOON))
    told.failed(FailureKnown(end, None, 2))
    told.job_ended(JobStatus.FAILED, end, 1)
    assert "the same failure again, 2 of 5" in lines(caplog)[1]
    assert lines(caplog)[1].endswith("; the job ends")
    assert caplog.records[2].levelno == logging.ERROR
    assert lines(caplog)[2] == (
        "job 'flights' (job-1) has ended after 1 restart: it failed 2 times at record 17 of operator 'worst' "
        "(subtask 0): KeyError, as logged above"
    )


def test_a_failure_without_a_text_is_told_by_its_type(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    """As of a bare `assert`: "AssertionError:; no checkpoint ...", with the rest of the text once more behind it."""
    bare = FailureCause("AssertionError", "", operator_name="worst", subtask_index=SubtaskIndex(0), repeatable=True)
    limited = RepeatedFailures(2)
    limited.add(bare)
    end = limited.add(bare)
    assert end is not None
    assert end.error_message.startswith("failed 2 times in operator 'worst' (subtask 0): AssertionError; no checkpoint")
    told.failed(FailureKnown(bare, SOON))
    told.job_ended(JobStatus.FAILED, end, 1)
    assert lines(caplog)[1].endswith(
        "it failed 2 times in operator 'worst' (subtask 0): AssertionError, as logged above"
    )


def test_the_end_says_where_the_checkpoint_is_that_the_job_leaves(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    """On hosts of their own nobody waits for the job: the log is all that somebody has."""
    told.job_ended(JobStatus.FAILED, typo(), 0, "/checkpoints/job-1/chk-8/_metadata")
    (line,) = lines(caplog)
    assert line.endswith(
        "; its checkpoint is kept; to go on from there: from_savepoint='/checkpoints/job-1/chk-8/_metadata', or "
        "--from-savepoint on the command line"
    )


def test_who_has_lost_the_name_of_its_job_is_not_told_to_start_from_its_checkpoint(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    """The run that has the name goes on from there already."""
    lost = FailureCause("LostOwnership", "job 'orders' was taken over")
    told.job_ended(JobStatus.FAILED, lost, 0, "/checkpoints/job-1/chk-8/_metadata")
    (line,) = lines(caplog)
    assert line.endswith("a job that was started from /checkpoints/job-1/chk-8/_metadata would give records twice")


def test_a_checkpoint_that_is_not_there_is_taken_back(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    told.kept_is_gone("/checkpoints/job-1/chk-8/_metadata")
    (line,) = lines(caplog)
    assert line == (
        "job 'flights': the checkpoint that it leaves is not there: /checkpoints/job-1/chk-8/_metadata was deleted or "
        "moved, or its file system is not mounted. Once it is back, a job can start from it; without it, start from "
        "another savepoint"
    )


def test_another_end_is_told_by_its_failure(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    told.job_ended(JobStatus.FAILED, typo(), 0)
    told.job_ended(JobStatus.FINISHED, None, 0)
    told.job_ended(JobStatus.CANCELED, None, 0)
    (line,) = lines(caplog)
    assert line.endswith("it failed: KeyError: 'delya' (in operator 'worst', subtask 0, attempt 3, record 17)")


def test_lost_task_managers_are_told_and_how_their_processes_ended(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    told.task_manager_lost(TaskManagerChanged("job-1", "tm-1", 1, 4711, False, "its connection broke", 0))
    told.failed(FailureKnown(lost_task_manager("tm-1", "its connection broke"), SOON))
    told.process_ended(ProcessEnded(1, "killed by SIGKILL", None))
    told.process_ended(ProcessEnded(1, "no module named flights", 200.0))
    assert lines(caplog) == [
        "job 'flights': TaskManager 1 (process 4711) was lost: its connection broke",
        "job 'flights' failed: TaskManagerLost: TaskManager tm-1 was lost: its connection broke; "
        "restarting in 0.3 s from the beginning",
        "job 'flights': the process of TaskManager 1: killed by SIGKILL",
        "job 'flights': TaskManager 1 ended before it registered: no module named flights; "
        "the next one starts in 0.2 s",
    ]


def test_one_that_is_lost_again_and_again_is_told_with_what_may_be_behind_it(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    def lost(index: int) -> None:
        told.task_manager_lost(TaskManagerChanged("job-1", "tm", index, 4711, False, "exited with code 0", 0))

    for index in (0, 1, 2, 0):
        lost(index)
    told.checkpoint_completed()
    for index in (0, 0, 1, 0, 0):
        lost(index)
    with_advice = [index for index, line in enumerate(lines(caplog)) if "os._exit" in line]
    assert with_advice == [7], "the third time since the checkpoint, and once"
    assert "exited with code 0. It is the 3rd time with no completed checkpoint in between" in lines(caplog)[7]
    assert "restart_strategy=fixed_delay(" in lines(caplog)[7]


def test_what_to_do_about_processes_that_are_killed_is_said_once(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    why = f"killed by SIGKILL, and not by Understudy: {'memory ran out, or ' * 10}"
    for reason in (why, why, "exited with code 3", why):
        told.process_ended(ProcessEnded(1, reason, None))
    told.process_ended(ProcessEnded(1, why, 500.0))
    head = "job 'flights': the process of TaskManager 1:"
    again = "killed by SIGKILL, as logged above"
    assert lines(caplog) == [
        f"{head} {why}",
        f"{head} {again}",
        f"{head} exited with code 3",
        f"{head} {again}",
        f"job 'flights': TaskManager 1 ended before it registered: {again}; the next one starts in 0.5 s",
    ]


def test_why_a_process_was_killed_is_not_said_again_by_its_loss_and_by_the_failure(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    """Where its end is known before its connection breaks."""
    why = f"killed by SIGKILL, and not by Understudy: {'memory ran out, or ' * 10}it did not"
    for number in (1, 2):
        told.task_manager_lost(TaskManagerChanged("job-1", f"tm-{number}", 0, 4711, False, why, 0))
        text = f"TaskManager tm-{number} was lost: {why}"
        lost = FailureCause("TaskManagerLost", text, kind=FailureKind.TASK_MANAGER_LOST)
        told.failed(FailureKnown(lost, SOON))
    assert caplog.text.count(why) == 1
    assert caplog.text.count("killed by SIGKILL, as logged above") == 2


def test_all_that_is_logged_is_kept(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    kept: list[tuple[str, int, str]] = []
    told = FailureLog(graph(), clock, lambda *line: kept.append(line))
    told.failed(FailureKnown(typo(), SOON))
    told.failed(FailureKnown(typo(), SOON))
    told.task_manager_lost(TaskManagerChanged("job-1", "tm-1", 1, 4711, False, "its connection broke", 0))
    told.process_ended(ProcessEnded(1, "killed by SIGKILL", None))
    told.job_ended(JobStatus.FAILED, typo(), 1)
    assert kept == [(each.name, each.levelno, each.getMessage()) for each in caplog.records]
    assert len(kept) == 5


def test_why_checkpoints_fail_is_in_words(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(FAILED_IN_A_ROW):
        told.checkpoint_aborted(CheckpointAborted(JobId("job"), CheckpointId(number), "metadata_failed: disk full", 0))
    (line,) = lines(caplog)
    assert "the last one (9): its metadata could not be written: disk full. Until one completes" in line


def test_nothing_is_made_where_nobody_listens(told: FailureLog, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="understudy.job")
    told.failed(FailureKnown(typo(), SOON))
    caplog.set_level(logging.WARNING, logger="understudy.job")
    told.failed(FailureKnown(typo(), SOON))
    assert "again" not in lines(caplog)[0]


def test_checkpoints_that_fail_in_a_row_are_told_before_the_user_wonders_why_the_job_never_ends(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(times: int, reason: str) -> None:
        for number in range(times):
            told.checkpoint_aborted(CheckpointAborted(JobId("job"), CheckpointId(number), reason, 0))

    fail(9, "expired: after 300 ms 0 of 7 subtasks had acknowledged")
    fail(50, "subsumed")
    fail(50, "region_restarting")
    told.checkpoint_completed()
    fail(9, "declined: count: disk full")
    assert lines(caplog) == []
    fail(1, "expired: after 300 ms 0 of 7 subtasks had acknowledged")
    assert lines(caplog) == [
        "job 'flights': 10 checkpoints in a row have failed, the last one (0): expired: after 300 ms 0 of 7 subtasks "
        "had acknowledged. Until one completes, sinks publish nothing and the job cannot finish; "
        "checkpoint_timeout_ms gives them longer, checkpoint_interval_ms takes fewer"
    ]
    fail(40, "declined: count: disk full")
    assert [line.split(":")[1].split()[0] for line in lines(caplog)] == ["10", "20", "40"]


def test_restarts_that_keep_nothing_are_said_to_at_growing_distances(
    told: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    """Back-pressure can let every checkpoint expire: each failure is another chance, and the job comes no further."""
    expired = FailureCause("CheckpointFailed", "checkpoint 7 expired")
    said = []
    for count in range(1, 50):
        told.failed(FailureKnown(expired, SOON))
        said += [count for line in lines(caplog) if "nothing that was done since is kept" in line]
        caplog.clear()
    assert said == [IN_VAIN, 2 * IN_VAIN, 4 * IN_VAIN, 8 * IN_VAIN]
    told.checkpoint_completed()
    for _ in range(IN_VAIN):
        told.failed(FailureKnown(expired, Restart(300.0, CheckpointId(12))))
    assert f"{IN_VAIN} restarts in a row without a completed checkpoint" in lines(caplog)[-1]
    assert "each goes back to checkpoint 12" in lines(caplog)[-1]
    assert "`understudy back-pressure` which task is slow" in lines(caplog)[-1]


@pytest.mark.parametrize(("checkpoint", "origin"), [(CheckpointId(3), "checkpoint 3"), (None, "the beginning")])
def test_a_stop_while_the_job_is_down_is_told_once_with_the_failure(
    told: FailureLog, caplog: pytest.LogCaptureFixture, checkpoint: CheckpointId | None, origin: str
) -> None:
    told.stopped_while_down(typo(), checkpoint)
    told.stopped_while_down(typo(), checkpoint)
    (line,) = lines(caplog)
    assert "is stopped while it is down because of KeyError: 'delya' (in operator 'worst'" in line
    assert line.endswith(f"from {origin}: what they have behind that is not read")
