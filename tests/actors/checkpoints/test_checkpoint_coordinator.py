"""CheckpointCoordinator: what goes beyond Flink's scripts. Each test is one history, told to a Driver."""

from __future__ import annotations

import pytest

from understudy.actors.checkpoints.checkpoint_effects import (
    AnswerSavepoint,
    CheckpointEffect,
    Discard,
    FailJob,
    Refused,
    Schedule,
    StoreMetadata,
)
from understudy.actors.checkpoints.checkpoint_events import (
    AllDataEnded,
    AttemptChanged,
    AttemptFailed,
    CheckpointEvent,
    MetadataFailed,
    RegionRestarting,
    RetryFinal,
    Shutdown,
    StartScheduler,
    StopScheduler,
    TriggerCheckpointNow,
)
from understudy.actors.checkpoints.checkpoint_reasons import Refusal
from understudy.actors.checkpoints.checkpoint_requests import FINAL_RETRY_MS
from understudy.actors.checkpoints.pending_checkpoint import AckResult
from understudy.messages import (
    AbortReason,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointConfig,
    CheckpointId,
    DeclineCheckpoint,
    ExecutionAttemptId,
    ExpectBarrier,
    JobId,
    JobStatus,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    OperatorId,
    OperatorSubtaskState,
    SubtaskState,
    TriggerCheckpoint,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
)

from ..savepoint_requests import savepoint_now
from .checkpoint_driver import (
    JOB,
    Driver,
    ack,
    changed,
    decline,
    discarded,
    ignored,
    make_driver,
    make_plan,
    of_type,
    published,
    sent,
    stored,
    subtask,
)

# ---------------------------------------------------------------------------------------------------- triggering


def test_the_barrier_of_a_savepoint_is_expected_when_the_last_source_has_passed_it_and_others_at_once() -> None:
    """Until it comes, as many records are taken as there are: a source that holds it back may give a whole log."""
    tasks = ["s", "t", "a"]
    config = CheckpointConfig("file:///tmp", timeout_ms=10_000, max_concurrent=10)
    driver = Driver(config, make_plan(["s", "t"], tasks, tasks, ("a",))).run_all()
    assert not sent(ExpectBarrier, driver.tell(savepoint_now("sp"), ack("s", 1)))
    expected = ExpectBarrier(JOB, ExecutionAttemptId("a"), CheckpointId(1))
    assert sent(ExpectBarrier, driver.tell(ack("t", 1))) == [expected]
    assert not sent(ExpectBarrier, driver.tell(ack("t", 1), ack("a", 1))), "a repeat, and its own"
    driver.tell(savepoint_now("another"), ack("a", 2))
    assert not sent(ExpectBarrier, driver.tell(ack("s", 2), ack("t", 2))), "it has come"
    expected = ExpectBarrier(JOB, ExecutionAttemptId("a"), CheckpointId(3))
    assert sent(ExpectBarrier, driver.tell(TriggerCheckpointNow())) == [expected]
    assert not sent(ExpectBarrier, driver.tell(ack("s", 3), ack("t", 3)))


# ---------------------------------------------------------------------------------------------------- completion


def test_completes_when_all_have_acknowledged_and_the_metadata_is_stored() -> None:
    driver = make_driver(stores_at_once=False)
    driver.tell(TriggerCheckpointNow(), ack("a", 1, "a1"))
    (store,) = of_type(StoreMetadata, driver.tell(ack("b", 1, "b1")))
    assert driver.pending_ids() == [1]
    assert not driver.retained_ids()
    driver.now_ms = 40
    effects = driver.tell(stored(1))
    assert published(effects) == [CheckpointCompleted(JOB, CheckpointId(1), 40, 2, 40, "chk-1")]
    assert [(each.attempt_id, each.final) for each in sent(NotifyCheckpointComplete, effects)] == [
        ("a", False),
        ("b", False),
    ]
    (completed,) = driver.coordinator.store.retained()
    assert completed.metadata_path == "chk-1"
    assert completed.vertices == store.draft.vertices


def test_who_hears_of_a_completion_hears_which_is_the_oldest_that_may_be_restored() -> None:
    """A source forgets what only older ones would read again. A savepoint counts while nothing newer has pushed it out,
    and those that are retained count all.
    """
    driver = make_driver(retained=2)
    oldest: list[list[int | None]] = []
    for number, event in enumerate([TriggerCheckpointNow()] * 3 + [savepoint_now("sp")] + [TriggerCheckpointNow()] * 3):
        effects = driver.tell(event, ack("a", number + 1), ack("b", number + 1))
        oldest.append([each.oldest_needed for each in sent(NotifyCheckpointComplete, effects)])
    assert oldest == [[each, each] for each in (1, 1, 2, 2, 3, 5, 6)]


def test_metadata_that_cannot_be_stored_aborts_and_fails_the_job_when_that_is_not_tolerated() -> None:
    driver = make_driver(stores_at_once=False)
    driver.tell(TriggerCheckpointNow(), ack("a", 1, "a1"), ack("b", 1, "b1"))
    effects = driver.tell(MetadataFailed(CheckpointId(1), "disk full"))
    assert discarded(effects) == ["a1", "b1"]
    assert [message.reason for message in sent(NotifyCheckpointAborted, effects)] == ["metadata_failed: disk full"] * 2
    (failed,) = of_type(FailJob, effects)
    assert "disk full" in failed.cause.error_message


def test_a_checkpoint_that_can_only_be_taken_in_full_fails_no_job() -> None:
    """A restart would need the files that are gone."""
    driver = make_driver(stores_at_once=False)
    driver.tell(TriggerCheckpointNow(), ack("a", 1, "a1"), ack("b", 1, "b1"))
    effects = driver.tell(MetadataFailed(CheckpointId(1), "files are gone", needs_full=True))
    assert discarded(effects) == ["a1", "b1"]
    assert len(sent(NotifyCheckpointAborted, effects)) == 2
    assert not of_type(FailJob, effects)


def test_state_given_up_while_its_metadata_is_written_is_discarded_after_the_write_only() -> None:
    """Otherwise a leader that dies in between leaves metadata behind that points at deleted state."""
    driver = make_driver(stores_at_once=False)
    driver.tell(TriggerCheckpointNow(), ack("a", 1, "a1"), ack("b", 1))
    assert discarded(driver.tell(RegionRestarting())) == []
    effects = driver.tell(stored(1))
    assert discarded(effects) == ["a1", "chk-1"]
    assert not published(effects)
    assert not sent(NotifyCheckpointComplete, effects)


@pytest.mark.parametrize("is_given_up", [False, True])
def test_metadata_that_may_be_there_in_spite_of_an_error_is_discarded_too(is_given_up: bool) -> None:
    """As when it is in its place, and the folder cannot be synced: it must not stand there and point at nothing."""
    driver = make_driver(stores_at_once=False)
    driver.tell(TriggerCheckpointNow(), ack("a", 1, "a1"), ack("b", 1))
    if is_given_up:
        driver.tell(RegionRestarting())
    assert discarded(driver.tell(MetadataFailed(CheckpointId(1), "no sync", "chk-1"))) == ["a1", "chk-1"]


def test_a_write_that_fails_after_the_checkpoint_was_given_up_only_discards() -> None:
    driver = make_driver(stores_at_once=False)
    driver.tell(TriggerCheckpointNow(), ack("a", 1, "a1"), ack("b", 1), Shutdown(JobStatus.FAILED))
    effects = driver.tell(MetadataFailed(CheckpointId(1), "gone"))
    assert effects == [Discard((SubtaskState({OperatorId("a1"): OperatorSubtaskState()}),))]


def test_a_newer_checkpoint_that_is_stored_first_subsumes_the_older_one_that_is_being_stored() -> None:
    driver = make_driver(stores_at_once=False)
    driver.tell(TriggerCheckpointNow(), TriggerCheckpointNow())
    driver.tell(ack("a", 1, "a1"), ack("b", 1), ack("a", 2, "a2"), ack("b", 2))
    assert [message.checkpoint_id for message in published(driver.tell(stored(2)))] == [2, 1]
    assert discarded(driver.tell(stored(1))) == ["a1", "chk-1"]
    assert driver.retained_ids() == [2]


def test_a_checkpoint_expires_while_its_metadata_is_written() -> None:
    driver = make_driver(stores_at_once=False)
    driver.tell(TriggerCheckpointNow(), ack("a", 1), ack("b", 1))
    (aborted,) = published(driver.advance(10_000))
    assert isinstance(aborted, CheckpointAborted)
    assert aborted.reason.startswith("expired: ")


def test_a_job_that_fails_as_its_checkpoints_expire_says_what_to_do() -> None:
    """Whoever is woken by it knows no more than this line."""
    driver = make_driver()
    driver.tell(TriggerCheckpointNow(), ack("a", 1))
    (failed,) = of_type(FailJob, driver.advance(10_000))
    assert (
        "missing: b 0 (tolerable_checkpoint_failures=0); barriers stand behind records that wait for a slow task"
        in (failed.cause.error_message)
    )
    assert "`understudy back-pressure`" in failed.cause.error_message
    assert "alignment_timeout_ms" in failed.cause.error_message
    unaligned = make_driver(alignment_timeout_ms=100)
    unaligned.tell(TriggerCheckpointNow(), ack("a", 1))
    (failed,) = of_type(FailJob, unaligned.advance(10_000))
    assert "checkpoint_timeout_ms" in failed.cause.error_message
    assert "alignment_timeout_ms" not in failed.cause.error_message, "barriers overtake records already"
    stored = make_driver(stores_at_once=False)
    stored.tell(TriggerCheckpointNow(), ack("a", 1), ack("b", 1))
    (failed,) = of_type(FailJob, stored.advance(10_000))
    assert failed.cause.error_message.endswith("(tolerable_checkpoint_failures=0)"), "no task is slow"


# ----------------------------------------------------------------------------------- late and repeated acknowledgements


def test_an_acknowledgement_repeated_after_completion_leaves_the_state_alone() -> None:
    driver = make_driver()
    driver.tell(TriggerCheckpointNow(), ack("a", 1, "a1"), ack("b", 1))
    effects = driver.tell(ack("a", 1, "a1"))
    assert ignored(effects) == [AckResult.LATE]
    assert discarded(effects) == []


def test_an_acknowledgement_repeated_after_the_abort_is_not_discarded_again() -> None:
    driver = make_driver(tolerable_failures=9)
    driver.tell(TriggerCheckpointNow(), ack("a", 1, "a1"))
    assert discarded(driver.tell(decline("b", 1))) == ["a1"]
    assert discarded(driver.tell(ack("a", 1, "a1"))) == []
    assert discarded(driver.tell(ack("b", 1, "b1"))) == ["b1"]
    assert discarded(driver.tell(ack("b", 1, "b1"))) == []


def test_an_acknowledgement_of_an_old_savepoint_repeated_long_after_leaves_its_state_alone() -> None:
    driver = make_driver()
    driver.tell(savepoint_now("sp"), ack("a", 1, "a1"), ack("b", 1))
    for each in range(2, 30):
        driver.tell(TriggerCheckpointNow(), ack("a", each), ack("b", each))
    effects = driver.tell(ack("a", 1, "a1"))
    assert ignored(effects) == [AckResult.UNKNOWN_CHECKPOINT]
    assert discarded(effects) == []
    assert discarded(driver.tell(ack("a", 2, "a2"))) == ["a2"]


def test_the_state_of_an_attempt_that_was_not_asked_is_discarded() -> None:
    driver = make_driver()
    driver.tell(TriggerCheckpointNow())
    effects = driver.tell(ack("zombie", 1, "z"))
    assert (ignored(effects), discarded(effects)) == ([AckResult.UNKNOWN_TASK], ["z"])


def test_a_decline_of_another_job_is_ignored() -> None:
    driver = make_driver()
    driver.tell(TriggerCheckpointNow())
    attempt, reason = ExecutionAttemptId("a"), AbortReason.NOT_RUNNING
    assert driver.tell(DeclineCheckpoint(JobId("other"), attempt, CheckpointId(1), reason)) == []
    assert driver.pending_ids() == [1]


# ------------------------------------------------------------------------------------------------- tolerable failures


def fails_job(effects: list[CheckpointEffect]) -> bool:
    return bool(of_type(FailJob, effects))


def test_failures_in_a_row_are_counted_and_a_completion_begins_anew() -> None:
    driver = make_driver(tolerable_failures=1)
    assert not fails_job(driver.tell(TriggerCheckpointNow(), decline("a", 1)))
    driver.tell(TriggerCheckpointNow(), ack("a", 2), ack("b", 2))
    assert not fails_job(driver.tell(TriggerCheckpointNow(), decline("a", 3)))
    assert not fails_job(driver.tell(decline("b", 3)))
    driver.tell(TriggerCheckpointNow())
    assert fails_job(driver.advance(10_000))


SECONDHAND = [AbortReason.CANCELLED, AbortReason.SUBSUMED, AbortReason.INPUT_ENDED, AbortReason.GIVEN_UP]


@pytest.mark.parametrize("reason", SECONDHAND)
def test_a_decline_that_passes_on_another_ones_is_not_counted_but_that_other_one_is(reason: AbortReason) -> None:
    driver = make_driver()
    assert not fails_job(driver.tell(TriggerCheckpointNow(), decline("b", 1, reason=reason)))
    assert fails_job(driver.tell(decline("a", 1, "broken")))
    assert not fails_job(driver.tell(decline("a", 1, "broken")))


def test_a_task_that_gives_up_what_was_subsumed_elsewhere_does_not_fail_the_job() -> None:
    """It has heard of that from the JobManager, and has had no barrier yet, or not all."""
    driver = make_driver()
    effects = driver.tell(TriggerCheckpointNow(), decline("a", 1, reason=AbortReason.SUBSUMED))
    effects += driver.tell(decline("b", 1, reason=AbortReason.GIVEN_UP))
    assert not fails_job(effects)


@pytest.mark.parametrize("reason", list(AbortReason))
def test_the_text_of_a_decline_does_not_decide_whether_it_is_counted(reason: AbortReason) -> None:
    assert fails_job(make_driver().tell(TriggerCheckpointNow(), decline("a", 1, detail=reason.value)))


def test_declines_that_echo_a_restart_are_not_counted() -> None:
    driver = make_driver()
    driver.tell(TriggerCheckpointNow(), decline("b", 1, reason=AbortReason.INPUT_ENDED), RegionRestarting())
    assert not fails_job(driver.tell(decline("a", 1, "the task is canceling")))


def test_what_has_its_cause_outside_the_checkpoint_is_not_counted() -> None:
    driver = make_driver()
    effects = driver.tell(TriggerCheckpointNow(), AttemptFailed(ExecutionAttemptId("a")), changed("a"))
    effects += driver.tell(TriggerCheckpointNow(), RegionRestarting(), decline("a", 2))
    effects += driver.tell(savepoint_now("sp"), decline("a", 3))
    assert len(published(effects)) == 3
    assert not fails_job(effects)


# ------------------------------------------------------------------------------------------------ restarts and timing


def test_a_region_restart_gives_up_all_pending_and_uses_no_id_twice() -> None:
    driver = make_driver()
    driver.tell(TriggerCheckpointNow(), savepoint_now("sp"), ack("a", 1, "a1"))
    effects = driver.tell(changed("a", running=False), RegionRestarting())
    assert driver.pending_ids() == []
    assert discarded(effects) == ["a1"]
    assert isinstance(of_type(AnswerSavepoint, effects)[0].answer, TriggerSavepointFailure)
    assert [message.attempt_id for message in sent(NotifyCheckpointAborted, effects)] == ["b", "b"]
    driver.tell(changed("a", "a#2"))
    triggered = sent(TriggerCheckpoint, driver.tell(TriggerCheckpointNow()))
    assert [(message.attempt_id, message.checkpoint_id) for message in triggered] == [("a#2", 3)]


def test_ticking_goes_on_after_a_restart_that_came_while_a_request_was_queued() -> None:
    driver = make_driver(interval_ms=10, max_concurrent=1)
    driver.tell(StartScheduler())
    driver.advance(30)
    driver.tell(RegionRestarting())
    assert driver.pending_ids() == []
    driver.advance(10)
    assert driver.pending_ids() == [2]


def test_no_checkpoint_starts_until_the_tasks_it_starts_at_run() -> None:
    driver = make_driver(interval_ms=10)
    driver.tell(changed("a", running=False), StartScheduler())
    driver.advance(25)
    assert driver.pending_ids() == []
    driver.tell(changed("a"))
    driver.advance(5)
    assert driver.pending_ids() == [1]


def test_a_task_that_only_acknowledges_need_not_run_yet_but_be_deployed() -> None:
    driver = make_driver(interval_ms=10)
    driver.tell(AttemptChanged(subtask("b"), None, is_running=False), StartScheduler())
    driver.advance(10)
    assert driver.pending_ids() == []
    driver.tell(changed("b", running=False))
    driver.advance(10)
    assert driver.pending_ids() == [1]


def test_a_savepoint_that_cannot_start_says_which_tasks_are_in_the_way() -> None:
    driver = make_driver()
    driver.tell(changed("a", running=False), AttemptChanged(subtask("b"), None, is_running=False))
    (answer,) = of_type(AnswerSavepoint, driver.tell(savepoint_now("sp")))
    assert isinstance(answer.answer, TriggerSavepointFailure)
    assert "tasks_not_ready: a/0 not running; b/0 not deployed; ask again when all tasks run" in answer.answer.cause


def test_a_trigger_that_counts_as_periodic_is_refused_while_the_scheduler_is_off() -> None:
    driver = make_driver(interval_ms=10)
    refused = of_type(Refused, driver.tell(TriggerCheckpointNow(is_periodic=True)))
    assert [each.reason for each in refused] == [Refusal.PERIODIC_SCHEDULER_OFF]
    driver.tell(StartScheduler(), TriggerCheckpointNow(is_periodic=True))
    assert driver.pending_ids() == [1]


def test_an_acknowledgement_after_all_were_given_up_together_is_of_an_unknown_checkpoint_and_discarded_once() -> None:
    driver = make_driver()
    driver.tell(TriggerCheckpointNow(), StopScheduler())
    effects = driver.tell(ack("a", 1, "late"), ack("a", 1, "late"))
    assert ignored(effects) == [AckResult.UNKNOWN_CHECKPOINT] * 2
    assert discarded(effects) == ["late"]
    assert not driver.coordinator.knows(CheckpointId(1))


def test_a_savepoint_that_completes_subsumes_no_checkpoint() -> None:
    """Flink 1.4: only what enters the store of checkpoints drops the older ones."""
    driver = make_driver()
    driver.tell(TriggerCheckpointNow(), savepoint_now("sp"), ack("a", 2), ack("b", 2))
    assert driver.pending_ids() == [1]
    driver.tell(ack("a", 1), ack("b", 1))
    assert driver.retained_ids() == [1]


def test_a_periodic_trigger_inside_the_pause_comes_when_the_pause_is_over() -> None:
    driver = make_driver(interval_ms=100, min_pause_ms=100)
    driver.tell(StartScheduler())
    driver.advance(130)
    driver.tell(ack("a", 1), ack("b", 1))
    driver.advance(99)
    assert driver.pending_ids() == []
    driver.advance(1)
    assert driver.pending_ids() == [2]


def test_a_tick_that_was_cancelled_while_it_was_under_way_does_nothing() -> None:
    driver = make_driver(interval_ms=10)
    stale = next(iter(of_type(Schedule, driver.tell(StartScheduler())))).event
    driver.tell(StartScheduler())
    assert driver.tell(stale) == []


# ----------------------------------------------------------------------------------------------- the final checkpoint


def test_the_final_checkpoint_goes_at_once_and_tells_tasks_that_nothing_comes_after() -> None:
    driver = make_driver(interval_ms=10, min_pause_ms=1000, max_concurrent=1)
    driver.tell(StartScheduler(), TriggerCheckpointNow())
    driver.tell(AllDataEnded(), AllDataEnded())
    assert driver.pending_ids() == [1, 2]
    effects = driver.tell(ack("a", 2), ack("b", 2))
    assert [message.final for message in sent(NotifyCheckpointComplete, effects)] == [True, True]
    assert driver.pending_ids() == []
    assert not driver.timers
    assert driver.coordinator.store.retained()[-1].is_final


def test_a_final_checkpoint_that_fails_is_repeated_until_too_many_have() -> None:
    driver = make_driver(tolerable_failures=1)
    assert not fails_job(driver.tell(AllDataEnded(), decline("a", 1)))
    driver.advance(FINAL_RETRY_MS)
    assert driver.pending_ids() == [2]
    (failed,) = of_type(FailJob, driver.tell(decline("a", 2)))
    assert failed.cause.error_message.endswith("(tolerable_checkpoint_failures=1)"), "as the setting is called"


def test_a_final_checkpoint_waits_for_tasks_that_do_not_run_yet() -> None:
    driver = make_driver()
    driver.tell(changed("a", running=False), AllDataEnded())
    driver.advance(FINAL_RETRY_MS)
    assert driver.pending_ids() == []
    driver.tell(changed("a"))
    driver.advance(FINAL_RETRY_MS)
    assert driver.pending_ids() == [1]


def test_a_retry_that_is_overtaken_triggers_no_second_final_checkpoint() -> None:
    driver = make_driver()
    driver.tell(changed("a", running=False), AllDataEnded(), RegionRestarting(), changed("a"), AllDataEnded())
    assert driver.pending_ids() == [1]
    driver.tell(RetryFinal())
    assert driver.pending_ids() == [1]
    driver.tell(ack("a", 1), ack("b", 1), RetryFinal())
    assert driver.pending_ids() == []


def test_a_final_checkpoint_that_is_subsumed_is_repeated() -> None:
    driver = make_driver()
    driver.tell(AllDataEnded(), TriggerCheckpointNow(), ack("a", 2), ack("b", 2))
    assert driver.pending_ids() == []
    driver.advance(FINAL_RETRY_MS)
    assert driver.pending_ids() == [3]


def test_after_a_restart_data_has_to_end_again() -> None:
    driver = make_driver(interval_ms=5000)
    driver.tell(StartScheduler(), AllDataEnded(), RegionRestarting())
    driver.advance(4999)
    assert driver.pending_ids() == []
    driver.advance(1)
    assert driver.pending_ids() == [2]
    effects = driver.tell(AllDataEnded(), ack("a", 3), ack("b", 3))
    assert sent(NotifyCheckpointComplete, effects)[0].final


# --------------------------------------------------------------------------------------------------------- savepoints


def test_a_savepoint_is_answered_with_its_path_and_restored_from_while_it_is_newest() -> None:
    driver = make_driver()
    driver.tell(TriggerCheckpointNow(), ack("a", 1), ack("b", 1))
    effects = driver.tell(savepoint_now("sp"), ack("a", 2), ack("b", 2))
    (answer,) = of_type(AnswerSavepoint, effects)
    assert (answer.request.token, answer.answer) == ("sp", TriggerSavepointSuccess(JOB, "chk-2"))
    restorable = [completed.checkpoint_id for completed in driver.coordinator.store.restorable()]
    assert (driver.retained_ids(), restorable) == ([1], [2, 1])


def test_a_savepoint_after_shutdown_is_answered() -> None:
    driver = make_driver()
    driver.tell(Shutdown(JobStatus.FINISHED))
    (answer,) = of_type(AnswerSavepoint, driver.tell(savepoint_now("sp")))
    assert isinstance(answer.answer, TriggerSavepointFailure)
    assert "coordinator_shut_down" in answer.answer.cause


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (StopScheduler(), "scheduler_stopped: the job is being cancelled, or has failed"),
        (RegionRestarting(), "region_restarting: tasks have failed and are restarted"),
        (Shutdown(JobStatus.FAILED), "coordinator_shut_down: the job is over"),
        (decline("a", 1, "no space"), "declined: a subtask 0: no space"),
    ],
)
def test_whoever_waits_for_a_savepoint_is_told_in_words_why_it_was_given_up(event: CheckpointEvent, cause: str) -> None:
    driver = make_driver()
    driver.tell(savepoint_now("sp"))
    (answer,) = of_type(AnswerSavepoint, driver.tell(event))
    assert isinstance(answer.answer, TriggerSavepointFailure)
    assert cause in answer.answer.cause


def test_nothing_newer_begins_beside_a_savepoint_after_which_the_job_is_cancelled() -> None:
    """What a newer checkpoint commits before the cancellation, a job restored from the savepoint commits again."""
    driver = make_driver()
    driver.tell(savepoint_now("sp", then_cancel=True), TriggerCheckpointNow(), savepoint_now("other"))
    assert driver.pending_ids() == [1]
    driver.tell(decline("a", 1), TriggerCheckpointNow())
    assert driver.pending_ids() == [2]
