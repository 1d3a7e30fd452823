"""The last checkpoint of a job, as CheckpointCoordinator and FinalCheckpoint take it: stopped, or drained, into a
savepoint.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from understudy.actors.checkpoints.checkpoint_effects import (
    AnswerSavepoint,
    CheckpointEffect,
    Refused,
    Send,
    StoreMetadata,
)
from understudy.actors.checkpoints.checkpoint_events import (
    AllDataEnded,
    AttemptFailed,
    CheckpointEvent,
    CheckpointExpired,
    MetadataFailed,
    RegionRestarting,
    RegionRunsOn,
    Shutdown,
    StartScheduler,
    TriggerCheckpointNow,
    TriggerSavepointNow,
)
from understudy.actors.checkpoints.checkpoint_reasons import Refusal
from understudy.actors.checkpoints.checkpoint_requests import FINAL_RETRY_MS
from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobStatus,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    TriggerCheckpoint,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
)
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint

from ...examples import examples
from ..savepoint_requests import drain, savepoint_now
from .checkpoint_driver import JOB, Driver, ack, changed, decline, make_driver, of_type, sent, stored

STOP = savepoint_now("stop", stop=True)
DRAIN = drain("drain")


def answers(effects: list[CheckpointEffect]) -> dict[str, TriggerSavepointSuccess | TriggerSavepointFailure]:
    return {effect.request.token: effect.answer for effect in of_type(AnswerSavepoint, effects)}


def causes(effects: list[CheckpointEffect]) -> list[str]:
    return [answer.cause for answer in answers(effects).values() if isinstance(answer, TriggerSavepointFailure)]


def kept(path: str) -> TriggerSavepointSuccess:
    return TriggerSavepointSuccess(JOB, path)


def newest(driver: Driver) -> CompletedCheckpoint:
    return next(driver.coordinator.store.restorable())


# -------------------------------------------------------------------------------------------- stop without drain


def test_a_stop_holds_the_sources_and_finishes_the_tasks_when_it_is_stored() -> None:
    driver = make_driver()
    (trigger,) = sent(TriggerCheckpoint, driver.tell(STOP))
    assert (trigger.attempt_id, trigger.stop) == ("a", True)
    effects = driver.tell(ack("a", 1, "a1"), ack("b", 1))
    assert answers(effects) == {"stop": kept("chk-1")}
    assert [message.final for message in sent(NotifyCheckpointComplete, effects)] == [True, True]
    assert (newest(driver).is_savepoint, newest(driver).is_final) == (True, True)
    assert driver.retained_ids() == []


def test_no_other_checkpoint_holds_the_sources() -> None:
    driver = make_driver()
    effects = driver.tell(TriggerCheckpointNow(), savepoint_now("sp"), AllDataEnded())
    assert [message.stop for message in sent(TriggerCheckpoint, effects)] == [False, False, False]


@pytest.mark.parametrize("other", [TriggerCheckpointNow(), savepoint_now("sp"), savepoint_now("sp", stop=True)])
def test_nothing_is_triggered_beside_a_stop(other: CheckpointEvent) -> None:
    driver = make_driver()
    driver.tell(STOP)
    effects = driver.tell(other)
    assert [refused.reason for refused in of_type(Refused, effects)] == [Refusal.STOP_UNDER_WAY]
    assert driver.pending_ids() == [1]
    if isinstance(other, TriggerSavepointNow):
        (cause,) = causes(effects)
        assert "stop_with_savepoint_under_way" in cause


def test_periodic_checkpoints_rest_during_a_stop_and_go_on_when_it_has_failed() -> None:
    driver = make_driver(interval_ms=10, timeout_ms=35)
    driver.tell(StartScheduler(), STOP)
    driver.advance(34)
    assert driver.pending_ids() == [1]
    driver.advance(6)
    assert driver.pending_ids() == [2]


def test_a_stop_goes_beside_checkpoints_that_are_pending_and_subsumes_them() -> None:
    driver = make_driver(max_concurrent=1, min_pause_ms=1000)
    driver.tell(TriggerCheckpointNow(), STOP)
    assert driver.pending_ids() == [1, 2]
    driver.tell(ack("a", 2), ack("b", 2))
    assert driver.pending_ids() == []


def test_the_completion_of_an_older_checkpoint_leaves_the_stop_alone() -> None:
    driver = make_driver()
    driver.tell(TriggerCheckpointNow(), STOP, ack("a", 1), ack("b", 1))
    assert driver.pending_ids() == [2]


GIVING_UP: list[tuple[str, list[CheckpointEvent]]] = [
    ("'b subtask 0: broken'", [decline("b", 1)]),
    ("expired: after 10000 ms 1 of 2 subtasks had acknowledged; missing: b 0", [CheckpointExpired(CheckpointId(1))]),
    ("task_failed", [AttemptFailed(ExecutionAttemptId("b"))]),
    ("region_restarting", [RegionRestarting()]),
    ("metadata_failed: disk full", [ack("b", 1), MetadataFailed(CheckpointId(1), "disk full")]),
]


@pytest.mark.parametrize(("cause", "events"), GIVING_UP, ids=[each[0] for each in GIVING_UP])
def test_a_stop_that_fails_says_why_and_lets_the_sources_go_on(cause: str, events: list[CheckpointEvent]) -> None:
    driver = make_driver(stores_at_once=False)
    driver.tell(STOP, ack("a", 1))
    effects = driver.tell(*events)
    (found,) = causes(effects)
    assert cause.strip("'") in found
    assert "a" in [message.attempt_id for message in sent(NotifyCheckpointAborted, effects)]
    assert sent(TriggerCheckpoint, driver.tell(changed("a"), changed("b"), STOP))[0].stop


def test_a_stop_that_fails_does_not_fail_the_job() -> None:
    driver = make_driver(tolerable_failures=0)
    effects = driver.tell(STOP, decline("a", 1))
    assert [type(effect).__name__ for effect in effects if type(effect).__name__ == "FailJob"] == []


def test_a_stop_while_a_task_does_not_run_is_refused() -> None:
    driver = make_driver()
    (cause,) = causes(driver.tell(changed("a", running=False), STOP))
    assert "tasks_not_ready: a/0 not running" in cause


def test_data_that_ends_during_a_stop_is_covered_by_it() -> None:
    driver = make_driver()
    driver.tell(STOP, AllDataEnded())
    assert driver.pending_ids() == [1]
    effects = driver.tell(ack("a", 1), ack("b", 1))
    assert answers(effects) == {"stop": kept("chk-1")}
    driver.advance(10 * FINAL_RETRY_MS)
    assert driver.pending_ids() == []


def test_data_that_ended_during_a_stop_that_fails_is_covered_by_a_final_checkpoint() -> None:
    driver = make_driver(tolerable_failures=1)
    driver.tell(STOP, AllDataEnded(), decline("a", 1))
    driver.advance(FINAL_RETRY_MS)
    effects = driver.tell(ack("a", 2), ack("b", 2))
    assert sent(NotifyCheckpointComplete, effects)[0].final
    assert not newest(driver).is_savepoint


def test_where_all_data_has_ended_the_final_checkpoint_serves_as_the_savepoint() -> None:
    driver = make_driver(tolerable_failures=1)
    driver.tell(AllDataEnded(), STOP, decline("a", 1))
    driver.advance(FINAL_RETRY_MS)
    effects = driver.tell(ack("a", 2), ack("b", 2))
    assert answers(effects) == {"stop": kept("chk-2")}
    assert newest(driver).is_savepoint


# ----------------------------------------------------------------------------------------------------------- drain


def test_the_final_checkpoint_of_a_drained_job_is_a_savepoint_and_answers() -> None:
    driver = make_driver()
    assert driver.tell(DRAIN) == []
    effects = driver.tell(AllDataEnded(), ack("a", 1), ack("b", 1))
    assert answers(effects) == {"drain": kept("chk-1")}
    assert (newest(driver).is_savepoint, newest(driver).is_final) == (True, True)
    assert [message.final for message in sent(NotifyCheckpointComplete, effects)] == [True, True]


def test_a_drain_stays_promised_through_failures_and_restarts() -> None:
    driver = make_driver(tolerable_failures=5)
    effects = driver.tell(DRAIN, AllDataEnded(), decline("a", 1))
    effects += driver.advance(FINAL_RETRY_MS)
    effects += driver.tell(RegionRestarting(), TriggerCheckpointNow(), ack("a", 3), ack("b", 3))
    assert answers(effects) == {}
    assert not newest(driver).is_savepoint
    effects = driver.tell(AllDataEnded(), ack("a", 4), ack("b", 4))
    assert answers(effects) == {"drain": kept("chk-4")}


def test_a_drain_joins_a_final_checkpoint_that_is_under_way_and_others_that_wait_for_it() -> None:
    driver = make_driver()
    driver.tell(AllDataEnded(), ack("a", 1), DRAIN, drain("too"))
    assert answers(driver.tell(ack("b", 1))) == {"drain": kept("chk-1"), "too": kept("chk-1")}


def test_a_final_checkpoint_whose_metadata_is_being_written_cannot_become_a_savepoint() -> None:
    driver = make_driver(stores_at_once=False)
    driver.tell(AllDataEnded(), ack("a", 1), ack("b", 1))
    (cause,) = causes(driver.tell(DRAIN))
    assert "job_is_ending" in cause


def test_a_drain_beside_a_stop_is_refused() -> None:
    driver = make_driver()
    driver.tell(STOP)
    (cause,) = causes(driver.tell(DRAIN))
    assert "stop_with_savepoint_under_way" in cause


@pytest.mark.parametrize("status", [JobStatus.FAILED, JobStatus.CANCELED])
def test_a_drain_is_answered_when_the_job_ends_otherwise(status: JobStatus) -> None:
    driver = make_driver()
    (cause,) = causes(driver.tell(DRAIN, AllDataEnded(), Shutdown(status)))
    assert status.value in cause
    (cause,) = causes(driver.tell(DRAIN))
    assert "coordinator_shut_down" in cause


# ----------------------------------------------------------------------------------------------- after the last one


@pytest.mark.parametrize("last", [STOP, AllDataEnded()], ids=["stopped", "ended"])
def test_nothing_follows_the_last_checkpoint_through_restarts_too(last: CheckpointEvent) -> None:
    driver = make_driver(interval_ms=10)
    driver.tell(StartScheduler(), last, ack("a", 1), ack("b", 1))
    driver.tell(RegionRestarting(), changed("a", "a#2"), StartScheduler(), AllDataEnded())
    driver.advance(100)
    assert driver.pending_ids() == []
    for event in (TriggerCheckpointNow(), savepoint_now("sp"), savepoint_now("sp", stop=True), DRAIN):
        effects = driver.tell(event)
        assert [refused.reason for refused in of_type(Refused, effects)] == [Refusal.JOB_IS_ENDING]
    assert driver.pending_ids() == []


def test_a_job_whose_last_checkpoint_cannot_be_read_takes_checkpoints_again() -> None:
    driver = make_driver(interval_ms=10)
    driver.tell(StartScheduler(), STOP, ack("a", 1), ack("b", 1), RegionRestarting(), RegionRunsOn())
    driver.advance(10)
    assert driver.pending_ids() == [2]


# ------------------------------------------------------------------------------------------------ any interleaving


class Stopping(RuleBasedStateMachine):
    """Stops, drains, savepoints and checkpoints of two tasks that answer, fail and end in any order.

    - beside a pending stop nothing is triggered, and nothing after the last checkpoint;
    - a source that is held hears, once its checkpoint is settled, that it may finish or go on;
    - every promise is answered once at most, with a savepoint's path when it is kept, and by the job's end at least.
    """

    def __init__(self) -> None:
        super().__init__()
        self.driver = make_driver(
            stores_at_once=False, interval_ms=50, timeout_ms=120, tolerable_failures=10**6, max_concurrent=2
        )
        self.promises: dict[str, list[Any]] = {}
        self.held: int | None = None
        self.kinds: dict[int, bool] = {}
        self.writes: dict[int, CompletedCheckpoint] = {}
        self.is_last_taken = self.is_over = False
        self.tell(StartScheduler())

    @rule(ms=st.integers(1, 200))
    def time_passes(self, ms: int) -> None:
        self.observe(self.driver.advance(ms))

    @rule(event=st.sampled_from(["checkpoint", "savepoint", "stop", "drain"]))
    def somebody_wants(self, event: str) -> None:
        token = f"{event}-{len(self.promises)}"
        if event == "checkpoint":
            self.tell(TriggerCheckpointNow())
            return
        self.promises[token] = []
        self.tell(drain(token) if event == "drain" else savepoint_now(token, stop=event == "stop"))

    @rule()
    def all_data_ends(self) -> None:
        self.tell(AllDataEnded())

    @precondition(lambda self: self.driver.coordinator.pending)
    @rule(data=st.data(), tasks=st.sampled_from(["a", "b", "ab"]))
    def tasks_acknowledge(self, data: st.DataObject, tasks: str) -> None:
        checkpoint = data.draw(st.sampled_from(self.driver.pending_ids()))
        for task in tasks:
            self.tell(ack(task, checkpoint))

    @precondition(lambda self: self.driver.coordinator.pending)
    @rule(data=st.data())
    def a_task_declines(self, data: st.DataObject) -> None:
        self.tell(decline("b", data.draw(st.sampled_from(self.driver.pending_ids()))))

    @precondition(lambda self: self.writes)
    @rule(data=st.data(), succeeds=st.booleans())
    def storage_answers(self, data: st.DataObject, succeeds: bool) -> None:
        checkpoint = data.draw(st.sampled_from(sorted(self.writes)))
        del self.writes[checkpoint]
        self.tell(stored(checkpoint) if succeeds else MetadataFailed(CheckpointId(checkpoint), "disk full"))

    @rule(is_last_unreadable=st.booleans())
    def the_region_restarts(self, is_last_unreadable: bool) -> None:
        self.held = None
        self.tell(AttemptFailed(ExecutionAttemptId("a")))
        self.tell(RegionRestarting())
        if is_last_unreadable or not self.is_last_taken:
            self.is_last_taken = False
            self.tell(RegionRunsOn())
        self.tell(changed("a"))

    @precondition(lambda self: len(self.promises) > 5)
    @rule(status=st.sampled_from([JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED]))
    def the_job_ends(self, status: JobStatus) -> None:
        self.is_over = True
        self.tell(Shutdown(status))

    @invariant()
    def a_held_source_waits_for_a_pending_checkpoint(self) -> None:
        assert self.held is None or self.is_over or self.held in self.driver.pending_ids()

    @invariant()
    def promises_are_answered_once(self) -> None:
        assert all(len(found) == 1 if self.is_over else len(found) <= 1 for found in self.promises.values())

    def tell(self, event: CheckpointEvent) -> None:
        self.observe(self.driver.tell(event))

    def observe(self, effects: list[CheckpointEffect]) -> None:
        for effect in effects:
            match effect:
                case Send(message=TriggerCheckpoint(checkpoint_id=checkpoint, stop=stop)):
                    assert self.held is None, "triggered beside a stop"
                    assert not self.is_last_taken, "triggered after the last checkpoint"
                    self.held = checkpoint if stop else None
                case StoreMetadata(draft):
                    self.writes[draft.checkpoint_id] = draft
                    self.kinds[draft.checkpoint_id] = draft.is_savepoint
                case Send(message=NotifyCheckpointAborted(attempt_id="a", checkpoint_id=self.held)):
                    self.held = None
                case Send(message=NotifyCheckpointComplete(attempt_id="a", final=True)):
                    self.held, self.is_last_taken = None, True
                case AnswerSavepoint(request, answer):
                    self.promises[request.token].append(answer)
                    if isinstance(answer, TriggerSavepointSuccess):
                        assert self.kinds[int(answer.savepoint_path.removeprefix("chk-"))], "no savepoint"


TestStopping: Any = Stopping.TestCase
TestStopping.settings = examples(60, stateful_step_count=40)
