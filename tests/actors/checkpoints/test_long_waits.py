"""LongWaits, as a CheckpointCoordinator keeps it: of a checkpoint that waits it says once for whom, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.actors.checkpoints.checkpoint_events import (
    AllDataEnded,
    AttemptFailed,
    CheckpointExpired,
    TriggerCheckpointNow,
)
from understudy.actors.checkpoints.long_waits import AGAIN_MS, INTERVALS, WAIT_MS
from understudy.messages import CheckpointConfig, CheckpointId, ExecutionAttemptId

from ..savepoint_requests import savepoint_now
from .checkpoint_driver import Driver, ack, make_driver, make_plan

NAMES = ["a", "b", "c", "d", "e"]


def waiting(**settings: Any) -> Driver:
    """Five tasks, which expire after an hour."""
    config = CheckpointConfig("file:///tmp", **{"timeout_ms": 3_600_000, "max_concurrent": 10, **settings})
    return Driver(config, make_plan(["a"], NAMES, NAMES)).run_all()


def look(driver: Driver) -> str:
    return driver.coordinator.look(driver.now_ms)


def after(driver: Driver, ms: float) -> str:
    """What is said so much later."""
    driver.now_ms += ms
    return look(driver)


def test_it_names_the_checkpoint_the_time_who_is_missing_and_what_to_do() -> None:
    driver = waiting()
    driver.tell(TriggerCheckpointNow(), ack("a", 1))
    assert after(driver, WAIT_MS - 1) == ""
    driver.tell(ack("c", 1), ack("d", 1), ack("e", 1))
    assert after(driver, 1) == (
        "checkpoint 1 has waited for 10 s: 1 of 5 subtasks has not acknowledged it: b [0]. Usually barriers stand "
        "behind records that wait there (back-pressure; `understudy back-pressure` shows it): raise the parallelism "
        "(that does not divide the records of one key), make the operator faster, give the source a rate "
        "(records_per_second), or let barriers overtake records by StreamEnvironment(alignment_timeout_ms=1_000); if "
        "the source is always faster than the operator, give it a rate in any case, as overtaken records wait in "
        "memory. "
        'docs/failures.md, "Checkpoints under back-pressure", says more'
    )


def test_of_many_three_are_named() -> None:
    driver = waiting()
    driver.tell(TriggerCheckpointNow())
    assert "5 of 5 subtasks have not acknowledged it: a [0], b [0], c [0] and 2 more." in after(driver, WAIT_MS)


def test_it_is_said_once_and_again_after_a_while() -> None:
    driver = waiting()
    driver.tell(TriggerCheckpointNow(), ack("a", 1))
    assert after(driver, WAIT_MS)
    assert look(driver) == ""
    driver.tell(ack("b", 1))  # fewer are no news
    assert after(driver, AGAIN_MS - 1) == ""
    assert "3 of 5" in after(driver, 1)
    assert look(driver) == ""


def test_the_next_checkpoint_is_news_if_it_waits_for_others() -> None:
    driver = waiting()
    driver.tell(TriggerCheckpointNow(), *(ack(name, 1) for name in NAMES[:3]))
    assert "d [0], e [0]" in after(driver, WAIT_MS)
    driver.tell(ack("d", 1), ack("e", 1), TriggerCheckpointNow(), *(ack(name, 2) for name in NAMES[:4]))
    assert after(driver, WAIT_MS) == ""
    driver.tell(ack("e", 2), TriggerCheckpointNow(), *(ack(name, 3) for name in "ade"))
    assert "checkpoint 3 " in after(driver, WAIT_MS)


def test_a_savepoint_is_always_aligned() -> None:
    driver = waiting(interval_ms=600_000, alignment_timeout_ms=1_000)
    driver.tell(savepoint_now("sp"), ack("a", 1))
    told = after(driver, WAIT_MS)
    assert told.startswith("savepoint 1 has waited for 10 s: 4 of 5 subtasks")
    assert "A savepoint is always aligned, so its barriers overtake none: raise" in told
    assert "StreamEnvironment(" not in told


def test_that_a_savepoint_waits_for_them_too_is_news() -> None:
    driver = waiting()
    driver.tell(TriggerCheckpointNow(), savepoint_now("sp"))
    assert "checkpoint 1 " in after(driver, WAIT_MS)
    assert "savepoint 2 " in look(driver)
    assert look(driver) == ""


def test_where_barriers_overtake_already_other_advice_is_given() -> None:
    driver = waiting(alignment_timeout_ms=5_000)
    driver.tell(TriggerCheckpointNow(), ack("a", 1))
    assert after(driver, WAIT_MS + 4_999) == ""
    told = after(driver, 1)
    assert "Barriers overtake records since alignment_timeout_ms=5000, so either one call" in told
    assert "raise the parallelism" not in told


def test_without_exactly_once_nothing_is_aligned() -> None:
    driver = waiting(exactly_once=False)
    driver.tell(TriggerCheckpointNow())
    assert "alignment_timeout_ms" not in after(driver, WAIT_MS)


def test_a_checkpoint_may_take_some_intervals_but_not_most_of_its_timeout() -> None:
    driver = waiting(interval_ms=60_000)
    driver.tell(TriggerCheckpointNow())
    assert after(driver, INTERVALS * 60_000 - 1) == ""
    assert after(driver, 1)
    driver = waiting(interval_ms=60_000, timeout_ms=80_000)
    driver.tell(TriggerCheckpointNow())
    assert after(driver, 39_999) == ""
    assert after(driver, 1)


def test_while_storage_is_awaited_nothing_is_said() -> None:
    driver = make_driver(stores_at_once=False)
    driver.tell(TriggerCheckpointNow(), ack("a", 1), ack("b", 1))
    assert after(driver, 2 * WAIT_MS) == ""
    assert driver.pending_ids() == [1]


def test_a_younger_checkpoint_waits_for_the_older_one() -> None:
    driver = waiting()
    driver.tell(savepoint_now("sp"), TriggerCheckpointNow(), *(ack(name, 1) for name in "abc"))
    assert "savepoint 1 " in after(driver, WAIT_MS)
    assert look(driver) == ""


def test_while_tasks_restart_nothing_is_said() -> None:
    driver = waiting()
    driver.tell(TriggerCheckpointNow(), ack("b", 1))
    driver.coordinator._tasks.fail(ExecutionAttemptId("a"))
    assert after(driver, WAIT_MS) == ""
    driver.tell(AttemptFailed(ExecutionAttemptId("a")))
    assert (after(driver, WAIT_MS), driver.pending_ids()) == ("", [])


@pytest.mark.parametrize("end", [CheckpointExpired(CheckpointId(1)), None])
def test_of_a_checkpoint_that_is_over_or_final_nothing_is_said(end: CheckpointExpired | None) -> None:
    driver = waiting()
    driver.tell(*((TriggerCheckpointNow(), end) if end else (AllDataEnded(),)))
    assert after(driver, WAIT_MS) == ""
