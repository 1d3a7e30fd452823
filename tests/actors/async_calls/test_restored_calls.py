"""AsyncCalls: what a snapshot holds of calls, what becomes of them after a restore, and which one has failed."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import Retry
from understudy.actors.async_calls.failed_record import ERRORS
from understudy.actors.async_calls.frozen_calls import CallInFlight
from understudy.actors.errors import UserCodeError
from understudy.actors.flow.elements import NO_WATERMARK
from understudy.actors.operators.timers import Domain, KeyedTimer

from .async_stage import Asking, ByKey, Stage, WithTimers, in_flight

# ---- snapshots and restores


def test_a_snapshot_has_running_waiting_and_done_ones() -> None:
    stage = Stage(Asking(), max_in_flight=3, retry=Retry(attempts=5))
    stage.take(*"abcd")
    stage.hand.end("b", "B")
    stage.hand.end("c", error=ValueError("no"))

    found = {each.record if each.results is None else "done": each for each in stage.frozen()}

    assert found["done"].results == [("", ["B"])]
    assert (found["a"].tries, found["c"].tries, found["d"].tries) == (0, 1, 0)
    prefix = f"{stage.operator.context.operator_id}-{stage.operator.context.attempt_id}-"
    assert [found[each].identity for each in "acd"] == [f"{prefix}0", f"{prefix}2", ""]


def test_a_restored_one_is_asked_with_its_key_and_the_tries_that_are_left_and_a_done_one_is_not() -> None:
    restored = [
        in_flight(7, ("a", 1), identity="paid", results=[("", ["A"])]),
        in_flight(8, ("b", 2), identity="asked", tries=1),
        in_flight(9, ("b", 3)),
    ]
    stage = Stage(ByKey(), restored, retry=Retry(attempts=2), on_error="errors")
    stage.turn()
    assert stage.emitted() == ["A"]
    assert [(each.record, each.idempotency_key, each.tries) for each in stage.hand.begun] == [(("b", 2), "asked", 2)]

    stage.hand.end(("b", 2), error=ValueError("no"))
    stage.turn()

    assert [each.tries for each in dict(stage.out.sides())[ERRORS.name]] == [2]
    assert stage.hand.records() == [("b", 3)]


def test_one_that_waits_for_its_next_try_goes_on_waiting_after_a_restore() -> None:
    stage = Stage(ByKey(), retry=Retry(attempts=3))
    stage.take(("a", 1), ("a", 2))
    stage.hand.end(("a", 1), error=ValueError("no"))
    stage.turn()
    restored = Stage(ByKey(), stage.frozen(), retry=Retry(attempts=3))
    restored.clock.day += 40
    restored.turn()
    assert restored.hand.begun == []

    restored.clock.go_on(60)
    restored.turn()

    assert [(each.record, each.tries) for each in restored.hand.begun] == [(("a", 1), 2)]
    assert {each.again_wall_ms for each in restored.frozen()} == {0}


def test_it_does_not_wait_for_longer_than_after_any_try_whatever_the_time_of_day_is_there() -> None:
    restored = Stage(
        ByKey(), [in_flight(1, ("a", 1), tries=1, again_wall_ms=2**42)], retry=Retry(attempts=3, max_delay_ms=500)
    )
    restored.turn()
    restored.clock.go_on(500)
    restored.turn()

    assert restored.hand.records() == [("a", 1)]


def test_before_they_are_begun_again_they_are_in_the_next_snapshot_as_they_were() -> None:
    restored = [in_flight(7, ("a", 1), identity="paid", results=[("", ["A"])]), in_flight(8, ("b", 2), tries=1)]
    stage = Stage(ByKey(), restored)

    assert stage.frozen() == restored


def test_a_snapshot_knows_which_watermark_each_waits_behind() -> None:
    operator = WithTimers()
    operator.seen = []
    stage = Stage(operator, max_in_flight=1)
    stage.take(("a", 1))
    stage.watermark(50)
    stage.take(("a", 2))
    stage.watermark(60)
    stage.take(*(("b", number) for number in range(8)))

    behind = [each.behind_ms for each in stage.frozen()]

    assert behind == [NO_WATERMARK, 50, *[60] * 8]


def test_after_a_restore_timers_come_before_the_records_behind_their_watermark() -> None:
    """Found by the simulator: they were in the order of their numbers, and all before the watermark."""
    operator = WithTimers()
    operator.seen = []
    timer = in_flight(9, ("a", 0), kind="timer", time_ms=40)._replace(record=(40, "event", ()))
    stage = Stage(operator, [in_flight(3, ("a", 1)), in_flight(4, ("a", 2), behind_ms=50), timer])
    stage.watermark(50)
    began = []
    while stage.hand.begun:
        (call,) = stage.hand.begun
        began.append(call.record)
        stage.hand.end(call.record)
        stage.turn()

    assert began == [("a", 1), (40, "event", ()), ("a", 2)]


def timer_of(key: str, time_ms: int, domain: Domain = "event", results: Any = None) -> CallInFlight:
    at_ms = time_ms if domain == "event" else None
    found = in_flight(1, (key, 0), kind="timer", time_ms=at_ms, results=results)
    return found._replace(record=KeyedTimer(time_ms, domain, ()))


def with_timers(*restored: CallInFlight) -> Stage:
    operator = WithTimers()
    operator.seen = []
    return Stage(operator, restored)


def test_a_timer_that_was_done_holds_up_no_other_of_its_key() -> None:
    stage = with_timers(timer_of("a", 40, results=[("", ["done"])]))
    stage.backend.timers().event.add((60, "a", ()))
    stage.watermark(70)

    assert [each.record for each in stage.hand.begun] == [(60, "event", ())]


def test_a_timer_that_fires_again_may_delete_the_next_one_of_its_key() -> None:
    stage = with_timers(timer_of("a", 40, "processing"))
    stage.backend.timers().processing.add((45, "a", ()))
    stage.turn()
    timers: Any = stage.operator.timers  # type: ignore[attr-defined]
    stage.hand.end((40, "processing", ()), do=lambda: timers.delete_processing_time(45))
    stage.clock.go_on(10)
    stage.turn()

    assert stage.hand.begun == []


def test_after_a_rescale_no_watermark_is_further_than_that_of_all() -> None:
    """One of the old subtasks was at 50, the slowest at 20."""
    operator = WithTimers()
    operator.seen = []
    stage = Stage(operator, [in_flight(3, ("a", 1)), in_flight(4, ("b", 2), behind_ms=50)])
    stage.watermark(20)
    for record in (("a", 1), ("b", 2)):
        stage.hand.end(record)
        stage.turn()

    assert max(operator.seen) == 20


@pytest.mark.parametrize("subtask", [0, 1])
def test_what_has_no_keys_lies_in_the_key_groups_of_its_subtask(subtask: int) -> None:
    """Found by the simulator: checkpoints of two subtasks were declined."""
    stage = Stage(Asking(), where={"parallelism": 2, "subtask_index": subtask})
    stage.take(*range(20))
    stage.calls.settle()
    groups = {group for group, _ in stage.calls.freeze().payloads(16, None)}

    assert groups <= set(range(8 * subtask, 8 * subtask + 8))


def test_after_close_nothing_of_it_may_touch_state() -> None:
    operator = ByKey()
    stage = Stage(operator)
    stage.take(("a", 1))
    (call,) = stage.hand.begun
    stage.calls.close()

    assert stage.hand.is_closed
    assert call.is_over


class Closing(Asking):
    closed = 0

    async def close(self) -> None:  # type: ignore[override]
        self.closed += 1


@pytest.mark.parametrize("opened", [False, True])
def test_an_operator_is_closed_even_if_it_could_not_be_opened(opened: bool) -> None:
    """Found by the simulator, as a coroutine that was never awaited: its state could not be restored."""
    operator = Closing()
    Stage(operator, opened=opened).calls.close()

    assert operator.closed == 1


# ---- which record has failed


def test_a_failure_names_the_record_and_says_whether_others_were_answered() -> None:
    """By the key, the JobManager knows it again after a restart."""
    stage = Stage(ByKey(), [in_flight(7, ("a", 1), identity="paid"), in_flight(8, ("b", 2))])
    stage.turn()
    stage.hand.end(("b", 2), "B")
    stage.turn()
    stage.hand.end(("a", 1), error=TimeoutError())

    with pytest.raises(UserCodeError) as caught:
        stage.turn()
    assert (caught.value.record_key, caught.value.others_ended, caught.value.record_position) == ("paid", True, None)


def test_where_nothing_was_answered_the_failure_says_so() -> None:
    stage = Stage(ByKey(), [in_flight(7, ("a", 1), identity="paid"), in_flight(8, ("b", 2))])
    stage.turn()
    stage.hand.end(("a", 1), error=TimeoutError())

    with pytest.raises(UserCodeError) as caught:
        stage.turn()
    assert not caught.value.others_ended
