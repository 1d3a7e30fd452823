"""However a pending checkpoint ends: its states, its timer, its promise and its statistics are settled once.

Cites `pending_checkpoint_facts` of checkpoint_coordinator.json; Flink: PendingCheckpointTest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from understudy.actors.checkpoints.checkpoint_effects import AnswerSavepoint, CheckpointEffect
from understudy.actors.checkpoints.checkpoint_events import (
    AttemptFailed,
    CheckpointEvent,
    CheckpointExpired,
    MetadataFailed,
    RegionRestarting,
    Shutdown,
    StopScheduler,
    TriggerCheckpointNow,
)
from understudy.messages import CheckpointId, ExecutionAttemptId, JobStatus

from ..savepoint_requests import savepoint_now
from .checkpoint_driver import Driver, ack, decline, discarded, make_driver, of_type, published

FIRST = CheckpointId(1)

Ending = Callable[[Driver], list[CheckpointEffect]]


def telling(*events: CheckpointEvent) -> Ending:
    return lambda driver: driver.tell(*events)


ENDINGS: Mapping[str, Ending] = {
    "declined": telling(decline("b", 1)),
    "expired": lambda driver: driver.advance(10_000),
    "task_failed": telling(AttemptFailed(ExecutionAttemptId("b"))),
    "region_restarting": telling(RegionRestarting()),
    "scheduler_stopped": telling(StopScheduler()),
    "coordinator_shut_down": telling(Shutdown(JobStatus.FAILED)),
    "metadata_failed": telling(ack("b", 1, "b1"), MetadataFailed(FIRST, "disk full")),
}

SUBSUMED = telling(TriggerCheckpointNow(), ack("a", 2), ack("b", 2))

ends = pytest.mark.parametrize("reason", [*ENDINGS, "subsumed"])
ends_savepoint = pytest.mark.parametrize("reason", ENDINGS)


def pending(*, savepoint: bool = False, stores_at_once: bool = False) -> Driver:
    """Checkpoint 1, which `a` has acknowledged with the state "a1"."""
    driver = make_driver(stores_at_once=stores_at_once)
    driver.tell(savepoint_now("sp") if savepoint else TriggerCheckpointNow(), ack("a", 1, "a1"))
    assert driver.pending_ids() == [1]
    return driver


def end(driver: Driver, reason: str) -> list[CheckpointEffect]:
    return (ENDINGS | {"subsumed": SUBSUMED})[reason](driver)


def driver_for(reason: str) -> Driver:
    return pending(stores_at_once=reason == "subsumed")


@ends
def test_whatever_ends_a_checkpoint_discards_its_states_once(reason: str) -> None:
    """abort_discards_state"""
    driver = driver_for(reason)
    names = [name for name in discarded(end(driver, reason)) if not name.startswith("chk-")]
    assert names == (["a1", "b1"] if reason == "metadata_failed" else ["a1"])
    for effects in (driver.tell(decline("b", 1)), driver.advance(20_000), driver.tell(StopScheduler())):
        assert "a1" not in discarded(effects)


@ends
def test_whatever_ends_a_checkpoint_cancels_its_timer(reason: str) -> None:
    """timeout_handle"""
    driver = driver_for(reason)
    assert CheckpointExpired(FIRST) in driver.timers
    end(driver, reason)
    assert CheckpointExpired(FIRST) not in driver.timers


@ends
def test_whatever_ends_a_checkpoint_says_why(reason: str) -> None:
    driver = driver_for(reason)
    aborted = [message for message in published(end(driver, reason)) if message.checkpoint_id == FIRST]
    assert [message.reason.partition(":")[0] for message in aborted] == [reason]  # type: ignore[union-attr]


@ends_savepoint
def test_whatever_ends_a_savepoint_answers_its_promise_once(reason: str) -> None:
    """completion_future"""
    driver = pending(savepoint=True)
    assert [answer.request.token for answer in of_type(AnswerSavepoint, end(driver, reason))] == ["sp"]
    later = [*driver.tell(decline("b", 1), ack("b", 1), Shutdown(JobStatus.FAILED)), *driver.advance(20_000)]
    assert not of_type(AnswerSavepoint, later)


def test_a_savepoint_is_not_subsumed() -> None:
    """can_be_subsumed"""
    driver = pending(savepoint=True, stores_at_once=True)
    SUBSUMED(driver)
    assert driver.pending_ids() == [1]
    assert pending_ids_after_subsuming_a_checkpoint() == []


def pending_ids_after_subsuming_a_checkpoint() -> list[int]:
    driver = driver_for("subsumed")
    SUBSUMED(driver)
    return driver.pending_ids()


@ends
def test_each_acknowledgement_and_each_end_is_counted_once(reason: str) -> None:
    """stats_callbacks"""
    driver = driver_for(reason)
    assert counted(driver) == ("in_progress", 1)
    end(driver, reason)
    assert counted(driver) == ("failed", 2 if reason == "metadata_failed" else 1)
    driver.tell(ack("b", 1), decline("b", 1))
    assert counted(driver) == ("failed", 2 if reason == "metadata_failed" else 1)


def test_a_completed_checkpoint_is_counted_as_completed() -> None:
    """stats_callbacks"""
    driver = pending(stores_at_once=True)
    driver.tell(ack("b", 1))
    assert counted(driver) == ("completed", 2)


def counted(driver: Driver) -> tuple[str, int]:
    """The first checkpoint's status in the statistics, and how many subtasks are reported."""
    history = driver.coordinator.statistics.history(driver.now_ms)
    (first,) = (each for each in history.checkpoints if each.checkpoint_id == FIRST)
    return first.status, len(first.subtasks)
