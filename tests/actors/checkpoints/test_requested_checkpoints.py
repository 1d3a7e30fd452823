"""A checkpoint that a client asks for: when it begins, and what the client hears."""

from __future__ import annotations

import pytest

from understudy.actors.checkpoints.checkpoint_effects import AnswerCheckpoint, CheckpointEffect
from understudy.actors.checkpoints.checkpoint_events import (
    CheckpointEvent,
    CheckpointRequested,
    RegionRestarting,
    Shutdown,
    StartScheduler,
    StopScheduler,
    TriggerCheckpointNow,
)
from understudy.actors.checkpoints.savepoint_request import CheckpointRequest
from understudy.messages import CheckpointNotTaken, CheckpointTaken, JobStatus, TriggerCheckpoint

from ..savepoint_requests import savepoint_now
from .checkpoint_driver import ack, changed, decline, make_driver, of_type, sent


def wanted(token: str, *, full: bool = False) -> CheckpointRequested:
    return CheckpointRequested(CheckpointRequest(token, full))


def answers(effects: list[CheckpointEffect]) -> dict[str, int | str]:
    """By token: the checkpoint, or why there is none."""
    found: dict[str, int | str] = {}
    for each in of_type(AnswerCheckpoint, effects):
        assert each.request.token not in found, "answered twice"
        answer = each.answer
        found[each.request.token] = answer.checkpoint_id if isinstance(answer, CheckpointTaken) else answer.cause
    return found


def test_it_begins_at_once_and_is_answered_when_it_is_stored() -> None:
    driver = make_driver()
    assert not answers(driver.tell(wanted("one")))
    assert driver.pending_ids() == [1]
    assert not answers(driver.tell(ack("a", 1)))
    (answer,) = of_type(AnswerCheckpoint, driver.tell(ack("b", 1)))
    assert isinstance(answer.answer, CheckpointTaken)
    assert (answer.request.token, answer.answer.checkpoint_id, answer.answer.path) == ("one", 1, "chk-1")


def test_it_does_not_wait_for_the_pause_nor_for_the_interval() -> None:
    driver = make_driver(interval_ms=1_000, min_pause_ms=1_000)
    driver.tell(StartScheduler(), TriggerCheckpointNow(), ack("a", 1), ack("b", 1))
    driver.tell(wanted("one"))
    assert driver.pending_ids() == [2]


def test_a_job_without_an_interval_takes_it_too() -> None:
    driver = make_driver(interval_ms=None)
    driver.tell(StartScheduler(), wanted("one"))
    assert driver.pending_ids() == [1]


def test_it_waits_for_room_and_those_who_wait_get_one() -> None:
    driver = make_driver(max_concurrent=1)
    driver.tell(wanted("one"), wanted("two"), wanted("three"))
    assert driver.pending_ids() == [1]
    assert answers(driver.tell(ack("a", 1), ack("b", 1))) == {"one": 1}
    assert driver.pending_ids() == [2]
    assert answers(driver.tell(ack("a", 2), ack("b", 2))) == {"two": 2, "three": 2}
    assert driver.pending_ids() == []


def test_a_checkpoint_of_the_clock_that_begins_first_serves_those_who_wait() -> None:
    driver = make_driver(interval_ms=10, max_concurrent=1)
    driver.tell(StartScheduler(), savepoint_now("sp"), wanted("one"))
    driver.advance(10)
    driver.tell(ack("a", 1), ack("b", 1))
    assert driver.pending_ids() == [2], "one for both"
    assert answers(driver.tell(ack("a", 2), ack("b", 2))) == {"one": 2}


def test_a_newer_one_that_completes_first_is_the_answer() -> None:
    driver = make_driver(max_concurrent=2)
    driver.tell(wanted("one"), TriggerCheckpointNow())
    assert answers(driver.tell(ack("a", 2), ack("b", 2))) == {"one": 2}
    assert driver.pending_ids() == []


@pytest.mark.parametrize("full", [True, False])
def test_a_full_one_is_whole(full: bool) -> None:
    driver = make_driver(max_concurrent=1)
    assert [each.whole for each in sent(TriggerCheckpoint, driver.tell(wanted("one", full=full)))] == [full]
    driver.tell(wanted("two"), wanted("three", full=full))
    assert [each.whole for each in sent(TriggerCheckpoint, driver.tell(ack("a", 1), ack("b", 1)))] == [full]


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        (decline("b", 1), "the checkpoint was given up: declined"),
        (RegionRestarting(), "tasks have failed and are restarted; ask again when all of them run"),
        (StopScheduler(), "the job is being cancelled, or has failed"),
        (Shutdown(JobStatus.FAILED), "the job is over"),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, str) else "",
)
def test_one_that_does_not_complete_says_why(ends: CheckpointEvent, why: str) -> None:
    driver = make_driver(max_concurrent=1)
    driver.tell(wanted("one"), wanted("waits"))
    heard = answers(driver.tell(ends))
    assert why in str(heard.pop("one"))
    if isinstance(ends, type(decline("b", 1))):
        assert (heard, driver.pending_ids()) == ({}, [2]), "there is room now"
    else:
        assert why in str(heard.pop("waits"))
        assert driver.pending_ids() == []


def test_while_a_task_does_not_run_it_is_refused_with_the_task() -> None:
    driver = make_driver()
    driver.tell(changed("a", running=False))
    (cause,) = answers(driver.tell(wanted("one"))).values()
    assert "tasks_not_ready" in str(cause)
    assert "ask again when all tasks run" in str(cause)


def test_after_the_end_it_is_refused() -> None:
    driver = make_driver()
    driver.tell(Shutdown(JobStatus.FINISHED))
    (answer,) = of_type(AnswerCheckpoint, driver.tell(wanted("one")))
    assert isinstance(answer.answer, CheckpointNotTaken)
    assert "the job is over" in answer.answer.cause
