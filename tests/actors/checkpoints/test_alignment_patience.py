"""Which checkpoints are switched to unaligned, when, and who is told. Flink: the aligned checkpoint timeout."""

from __future__ import annotations

from understudy.actors.checkpoints.checkpoint_events import (
    AlignmentOverdue,
    StartScheduler,
    TriggerCheckpointNow,
)
from understudy.messages import CheckpointId, SwitchToUnaligned

from ..savepoint_requests import savepoint_now
from .checkpoint_driver import Driver, ack, changed, decline, make_driver, sent


def told(effects: list[object]) -> list[tuple[str, int]]:
    return [(each.attempt_id, each.checkpoint_id) for each in sent(SwitchToUnaligned, effects)]  # type: ignore[arg-type]


def driver(**settings: object) -> Driver:
    return make_driver(**{"alignment_timeout_ms": 100, **settings})  # type: ignore[arg-type]


def overdue_timers(one: Driver) -> list[int]:
    return [event.checkpoint_id for event in one.timers if isinstance(event, AlignmentOverdue)]


def test_all_that_have_not_acknowledged_are_told_when_its_time_is_over() -> None:
    one = driver()
    one.tell(TriggerCheckpointNow())
    assert told(one.advance(99)) == []
    assert told(one.advance(1)) == [("a", 1), ("b", 1)]


def test_who_has_acknowledged_is_not_told() -> None:
    one = driver()
    one.tell(TriggerCheckpointNow(), ack("a", 1))
    assert told(one.advance(100)) == [("b", 1)]


def test_none_to_wait_is_at_once() -> None:
    one = driver(alignment_timeout_ms=0)
    one.tell(TriggerCheckpointNow())
    assert told(one.advance(0)) == [("a", 1), ("b", 1)]


def test_nobody_is_told_twice() -> None:
    one = driver()
    one.tell(TriggerCheckpointNow())
    one.advance(100)
    assert told(one.tell(changed("b"), ack("a", 1), AlignmentOverdue(CheckpointId(1)))) == []


def test_one_that_begins_to_run_later_is_told_then() -> None:
    one = driver()
    one.tell(changed("b", running=False), TriggerCheckpointNow())
    assert told(one.advance(100)) == [("a", 1)]
    assert told(one.tell(changed("b"))) == [("b", 1)]


def test_a_checkpoint_that_is_over_is_not_switched() -> None:
    for ends in ([ack("a", 1), ack("b", 1)], [decline("a", 1)]):
        one = driver(tolerable_failures=10)
        one.tell(TriggerCheckpointNow(), *ends)
        assert overdue_timers(one) == []
        assert told(one.tell(AlignmentOverdue(CheckpointId(1)))) == []


def test_one_that_is_being_stored_is_not_switched() -> None:
    one = driver(stores_at_once=False)
    one.tell(TriggerCheckpointNow(), ack("a", 1), ack("b", 1))
    assert told(one.advance(100)) == []


def test_savepoints_and_the_checkpoints_of_at_least_once_are_never_switched() -> None:
    one = driver()
    one.tell(savepoint_now("token"))
    assert told(one.advance(5_000)) == []
    two = driver(exactly_once=False)
    two.tell(TriggerCheckpointNow())
    assert told(two.advance(5_000)) == []
    assert overdue_timers(two) == []


def test_without_a_timeout_there_is_no_timer() -> None:
    one = make_driver()
    one.tell(TriggerCheckpointNow())
    assert overdue_timers(one) == []


def test_a_younger_checkpoint_waits_until_a_savepoint_is_over() -> None:
    """Its barriers would overtake those of the savepoint, which would end it."""
    one = driver()
    one.tell(savepoint_now("token"), TriggerCheckpointNow())
    assert told(one.advance(100)) == []
    assert told(one.tell(ack("a", 1), ack("b", 1))) == [("a", 2), ("b", 2)]


def test_a_younger_checkpoint_waits_until_an_older_one_is_over() -> None:
    """Otherwise each would end the one before it, and none would complete."""
    one = driver(tolerable_failures=10)
    one.tell(TriggerCheckpointNow(), TriggerCheckpointNow())
    assert told(one.advance(200)) == [("a", 1), ("b", 1)]
    assert told(one.tell(ack("a", 1), ack("a", 2), decline("b", 1))) == [("b", 2)]


def test_periodic_checkpoints_are_switched_one_after_the_other() -> None:
    one = driver(interval_ms=1_000, max_concurrent=1)
    one.tell(StartScheduler())
    assert told(one.advance(1_500)) == [("a", 1), ("b", 1)]
    one.tell(ack("a", 1), ack("b", 1))
    assert told(one.advance(1_000)) == [("a", 2), ("b", 2)]


def test_a_younger_checkpoint_does_not_wait_for_one_that_is_being_stored() -> None:
    """Nobody aligns for that one any more, so there is nothing that could be overtaken."""
    one = driver(stores_at_once=False)
    one.tell(TriggerCheckpointNow(), ack("a", 1), ack("b", 1), savepoint_now("token"), ack("a", 2), ack("b", 2))
    one.tell(TriggerCheckpointNow())
    assert told(one.advance(100)) == [("a", 3), ("b", 3)]
