"""AsyncCalls: what becomes of each call, on the task's thread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from understudy import Retry
from understudy.actors.async_calls.failed_record import ERRORS, FailedRecord
from understudy.actors.async_calls.permits import Permits
from understudy.actors.errors import UserCodeError
from understudy.actors.flow.elements import END_OF_TIME, Watermark
from understudy.messages import ExecutionAttemptId, GrantPermits, JobId, OperatorId
from understudy.state.backends.unit_of_work import CURRENT
from understudy.state.errors import CallIsOver

from .async_stage import DAY_MS, Asking, ByKey, Never, Stage, WithTimers

# ---- the way of a call


def test_results_leave_when_the_task_has_its_turn() -> None:
    stage = Stage(Asking())
    stage.take("a", "b")
    stage.hand.end("b", "B")
    stage.turn()
    assert stage.emitted() == []

    stage.hand.end("a", "A", "AA")
    stage.turn()

    assert stage.emitted() == ["A", "AA", "B"]


def test_results_that_a_barrier_has_settled_leave_without_another_event() -> None:
    """Found by the simulator: nothing was due any more, and an operator that was full took nothing."""
    stage = Stage(Asking(), max_in_flight=1)
    stage.take("a")
    stage.hand.end("a", "A")
    stage.calls.settle()

    assert stage.calls.due_ms(stage.clock.wall_ms()) == stage.clock.wall_ms()
    stage.turn()
    assert stage.emitted() == ["A"]


def test_records_of_a_key_wait_for_each_other_and_others_do_not() -> None:
    stage = Stage(ByKey())
    stage.take(("a", 1), ("a", 2), ("b", 3))
    assert stage.hand.records() == [("a", 1), ("b", 3)]

    stage.hand.end(("a", 1))
    stage.turn()

    assert stage.hand.records() == [("b", 3), ("a", 2)]


def test_no_more_run_than_may_and_no_more_are_held_than_there_is_room_for() -> None:
    stage = Stage(Asking(), max_in_flight=2)
    stage.take(*"abcde")

    assert len(stage.hand.begun) == 2
    assert stage.calls.is_full
    assert [each.record for each in stage.frozen()] == [*"abcde"]


def test_records_take_room_until_they_have_left() -> None:
    stage = Stage(Asking(), max_in_flight_bytes=3_000)
    records = [letter * 1_000 for letter in "abcdefgh"]
    stage.take(*records)
    begun = []
    while running := stage.hand.records():
        begun.append(len(running))
        for each in running:
            stage.hand.end(each, each)
        stage.turn()
    assert begun == [3, 3, 2]
    assert stage.emitted() == records


def test_of_records_that_could_not_begin_no_calls_are_made() -> None:
    """They would only make a checkpoint stand still for longer. Those behind a key are passed."""
    stage = Stage(ByKey(), max_in_flight=2)
    stage.take(("a", 1), ("a", 2), ("b", 3), ("c", 4), ("d", 5))
    assert stage.hand.records() == [("a", 1), ("b", 3)]
    assert stage.calls.in_flight == 3

    stage.hand.end(("a", 1))
    stage.turn()

    assert stage.hand.records() == [("b", 3), ("a", 2)]
    assert stage.calls.in_flight == 2


def test_a_snapshot_that_is_written_later_holds_what_was_when_it_was_taken() -> None:
    stage = Stage(ByKey())
    stage.take(("a", 1), ("a", 2), ("b", 3))
    stage.calls.settle()
    frozen = stage.calls.freeze()
    for record in (("a", 1), ("b", 3), ("a", 2)):
        stage.hand.end(record)
        stage.turn()

    written = [*frozen.calls, *frozen.later()]
    assert [(each.record, each.results) for each in written] == [(("a", 1), None), (("a", 2), None), (("b", 3), None)]
    assert all(each.identity for each in written), "one that has begun meanwhile is asked with the same key again"


def test_results_that_leave_before_a_snapshot_is_written_are_in_it_all_the_same() -> None:
    stage = Stage(Asking(), ordered=True)
    stage.take("a", "b")
    stage.hand.end("b", "result")
    stage.turn()
    frozen = stage.calls.freeze()
    stage.hand.end("a")
    stage.turn()
    assert stage.emitted() == ["result"]

    written = [*frozen.calls, *frozen.later()]
    assert [(each.record, each.results) for each in written] == [("a", None), ("b", [("", ["result"])])]


def test_a_barrier_settles_some_and_what_is_left_runs_still_with_its_key() -> None:
    """The task stands still for a barrier, however many have ended."""
    operator = ByKey()
    stage = Stage(operator, max_in_flight=5_000)
    records = [(f"key {number}", number) for number in range(2_000)]
    stage.take(*records)
    for record in records:
        stage.hand.end(record, record[1], do=lambda: operator.count.update(1))

    frozen = stage.frozen()
    done = [each for each in frozen if each.results is not None]

    assert len(frozen) == 2_000
    assert 0 < len(done) < 1_000
    assert all(each.identity for each in frozen)
    stage.turn()
    assert sorted(stage.emitted()) == list(range(2_000))
    assert len(stage.backend.keys("count")) == 2_000


def test_a_record_that_ends_a_run_by_failing_later_is_settled_once() -> None:
    """Found by the simulator: it had failed by the time at which the task looked at the run."""
    stage = Stage(Asking(), retry=Retry(attempts=5))
    stage.calls.take(["a"], 0)
    stage.hand.end("a", error=ValueError("no"))
    stage.turn()
    stage.clock.go_on(100)
    stage.turn()
    assert stage.hand.records() == ["a"]

    stage.hand.end("a", "A")
    stage.turn()

    assert stage.emitted() == ["A"]
    assert not stage.frozen()


def test_the_record_that_ends_a_run_has_a_limit_and_a_try() -> None:
    stage = Stage(Asking(), timeout_ms=70, total_timeout_ms=500)
    stage.take("a")

    (call,) = stage.hand.begun
    assert (call.limit_ms, call.tries) == (70, 1)


def test_keys_that_the_record_gives_are_those_of_each_record() -> None:
    stage = Stage(Asking(), idempotency_key=lambda record: f"order {record}")
    stage.take("a", "b")

    assert [each.idempotency_key for each in stage.hand.begun] == ["order a", "order b"]


def test_a_timer_that_nothing_would_fire_is_refused_when_it_is_registered() -> None:
    operator = ByKey()
    stage = Stage(operator)
    stage.take(("a", 1))
    stage.hand.end(("a", 1), do=lambda: _refused(operator))
    stage.turn()

    assert stage.backend.timers().event.next_ms() is None


def _refused(operator: ByKey) -> None:
    with pytest.raises(NotImplementedError, match=r"ByKey registers a timer and defines no on_timer: define `async"):
        operator.timers.at_event_time(5)


# ---- tries


def test_a_failed_try_is_rolled_back_and_begins_again_after_its_delay_with_the_same_key() -> None:
    operator = ByKey()
    stage = Stage(operator, retry=Retry(attempts=2))
    stage.take(("a", 1))
    key = stage.hand.begun[0].idempotency_key
    stage.hand.end(("a", 1), "lost", error=ValueError("no"), do=lambda: operator.count.update(7))
    stage.turn()
    assert stage.hand.begun == []

    stage.clock.go_on(100)
    stage.turn()

    (call,) = stage.hand.begun
    assert (call.idempotency_key, call.tries) == (key, 2)
    stage.hand.end(("a", 1), "A", do=lambda: operator.count.update(operator.count.value() + 1))
    stage.turn()
    assert stage.emitted() == ["A"]
    stage.backend.current_key = "a"
    assert operator.count.value() == 1


@pytest.mark.parametrize("jump_ms", [-DAY_MS, DAY_MS])
def test_tries_and_batches_wait_by_a_clock_that_nobody_sets(jump_ms: int) -> None:
    """Found by reading: a time of day that is set back by an hour held retries up for an hour."""
    stage = Stage(Asking(), retry=Retry(attempts=2))
    stage.take("a")
    stage.hand.end("a", error=ValueError("no"))
    stage.turn()
    stage.clock.day += jump_ms
    stage.turn()
    assert stage.hand.begun == []

    stage.clock.go_on(100)
    stage.turn()

    assert stage.hand.records() == ["a"]


def test_a_timer_that_a_second_try_sets_is_set() -> None:
    operator = WithTimers()
    operator.seen = []
    stage = Stage(operator, retry=Retry(attempts=2))
    stage.take(("a", 1))
    stage.hand.end(("a", 1), error=ConnectionError())
    stage.turn()
    stage.clock.go_on(100)
    stage.turn()
    stage.hand.end(("a", 1), do=lambda: operator.timers.at_event_time(40))
    stage.watermark(50)
    (timer,) = stage.hand.begun
    assert timer.kind == "timer"


def test_a_record_that_is_given_up_goes_to_the_errors() -> None:
    stage = Stage(ByKey(), on_error="errors", retry=Retry(attempts=2))
    stage.take(("a", 1), ("a", 2))
    for _ in range(2):
        stage.hand.end(("a", 1), error=ValueError("no"))
        stage.turn()
        stage.clock.go_on(100)
        stage.turn()

    assert dict(stage.out.sides()) == {ERRORS.name: [FailedRecord(("a", 1), "ValueError: no", 2, "a")]}
    assert stage.hand.records() == [("a", 2)]


@pytest.mark.parametrize(
    ("operator", "record", "says"),
    [
        (Asking, "a", "operator 'asking' raised at record 0 of this attempt: the record 'a'; "),
        (ByKey, ("a", 1), "the record ('a', 1) of key 'a'; "),
        (Asking, "x" * 1000, "xxx...xxx"),
    ],
)
def test_a_record_that_fails_the_task_is_shown_with_its_key_and_a_way_to_go_on(
    operator: Any, record: Any, says: str
) -> None:
    stage = Stage(operator())
    stage.take(record)
    stage.hand.end(record, error=ValueError("no"))

    with pytest.raises(UserCodeError) as caught:
        stage.turn()
    assert says.replace("'asking'", repr(caught.value.operator_name)) in str(caught.value)
    again = "to try them again retry=Retry(...)"
    advice = f'to go on without such records set on_error="errors", {again} (AsyncSettings)'
    assert str(caught.value).endswith(f"{advice}: ValueError: no")
    assert len(str(caught.value)) < 440


def test_who_has_tried_again_is_not_told_to() -> None:
    stage = Stage(Asking(), retry=Retry(attempts=1))
    stage.take("a")
    stage.hand.end("a", error=ValueError("no"))
    with pytest.raises(UserCodeError, match=r'set on_error="errors" \(AsyncSettings\): ValueError: no$'):
        stage.turn()


@pytest.mark.parametrize("settings", [{"on_error": "errors"}, {"default": "none"}, {}])
def test_what_is_no_error_of_a_record_fails_the_task(settings: dict[str, Any]) -> None:
    stage = Stage(Asking(), **settings)
    stage.take("a")
    stage.hand.end("a", error=SystemExit(3))

    with pytest.raises(UserCodeError):
        stage.turn()


@pytest.mark.parametrize("noticed", ["in its turn", "at a barrier"])
def test_the_first_misuse_by_code_that_has_outlived_its_record_fails_the_task(noticed: str) -> None:
    wakes: list[None] = []
    stage = Stage(ByKey(), where={"wake": lambda: wakes.append(None)})
    first = CallIsOver("count")
    stage.backend.misused(first)
    assert wakes
    stage.backend.misused(CallIsOver("out"))

    with pytest.raises(UserCodeError) as caught:
        stage.turn() if noticed == "in its turn" else stage.calls.settle()
    assert caught.value.__cause__ is first


def test_what_a_coroutine_does_after_the_close_is_refused_and_wakes_no_one() -> None:
    wakes: list[None] = []
    operator = ByKey()
    stage = Stage(operator, where={"wake": lambda: wakes.append(None)})
    stage.take(("a", 1))
    (call,) = stage.hand.begun
    stage.calls.close()
    token = CURRENT.set(call)
    with pytest.raises(CallIsOver):
        operator.count.update(1)
    CURRENT.reset(token)
    assert wakes == []


# ---- watermarks


def test_a_watermark_goes_behind_the_results_of_the_records_before_it() -> None:
    stage = Stage(ByKey())
    stage.take(("a", 1), ("b", 2))
    stage.watermark(50)
    stage.take(("c", 3))
    for record in (("c", 3), ("b", 2)):
        stage.hand.end(record, record[1])
        stage.turn()
    assert stage.emitted() == [2]

    stage.hand.end(("a", 1), 1)
    stage.turn()

    assert stage.emitted() == [1, Watermark(50), 3]


def test_records_behind_a_watermark_begin_when_its_timers_have_fired() -> None:
    operator = WithTimers()
    operator.seen = []
    stage = Stage(operator)
    stage.take(("a", 1))
    stage.watermark(50)
    stage.take(("a", 2))
    stage.hand.end(("a", 1), do=lambda: operator.timers.at_event_time(40))
    stage.turn()
    (timer,) = stage.hand.begun
    assert timer.kind == "timer"

    stage.hand.end(timer.record, "timer")
    stage.turn()

    assert stage.hand.records() == [("a", 2)]
    assert stage.emitted() == ["timer", Watermark(50)]
    assert operator.seen == [50]


def test_a_task_that_a_record_has_left_running_holds_back_the_end_of_time_alone() -> None:
    stage = Stage(Asking())
    stage.hand.has_begun = True
    stage.watermark(10)
    assert stage.emitted() == [Watermark(10)]
    stage.watermark(END_OF_TIME)
    assert stage.calls.advance(END_OF_TIME), "it has more to do"

    stage.hand.has_begun = False
    stage.turn()
    assert not stage.calls.advance(END_OF_TIME)


def test_the_end_of_time_waits_for_all_and_the_operator_learns_of_it() -> None:
    operator = WithTimers()
    operator.seen = []
    stage = Stage(operator)
    stage.take(("a", 1))
    assert stage.watermark(END_OF_TIME)
    assert stage.calls.is_draining

    stage.hand.end(("a", 1), "A")
    stage.turn()

    assert stage.emitted() == ["A"]
    assert operator.seen == [END_OF_TIME]
    assert not stage.calls.advance(END_OF_TIME)


def test_the_end_of_time_does_not_pass_code_that_has_just_outlived_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the loop's thread the last task that was left has failed, and ended, since the task's thread last looked."""
    operator = WithTimers()
    operator.seen = []
    stage = Stage(operator)

    def fails_and_ends(_: float) -> bool:
        stage.backend.misused(CallIsOver("count", "the-operator"))
        return False

    stage.hand.has_begun = True
    stage.watermark(END_OF_TIME)
    monkeypatch.setattr(stage.hand, "awaits_begun", fails_and_ends)
    with pytest.raises(UserCodeError):
        stage.calls.do_due(stage.clock.wall_ms(), stage.out)
    assert operator.seen == []


GRANT = GrantPermits(JobId("job"), ExecutionAttemptId("attempt"), OperatorId("the-operator"), 2, 100.0)


class OpensLate(ByKey):
    async def open(self) -> None:  # type: ignore[override]
        await Never()


@pytest.mark.parametrize("granted_first", [False, True])
def test_records_that_came_before_it_was_open_get_their_permits(granted_first: bool) -> None:
    """No other record may ever come."""
    wanted: list[int] = []
    stage = Stage(OpensLate(), permits=Permits(wanted.append, lambda _: None), rate_per_second=100)
    stage.take(("a", 1), ("b", 2))
    if granted_first:
        stage.calls.granted(GRANT)
    (opened,) = stage.hand.opening
    opened(None)
    stage.turn()
    if not granted_first:
        assert wanted == [2]
        stage.calls.granted(GRANT)
    assert stage.hand.records() == [("a", 1), ("b", 2)]


# ---- between two tries


class Busy(Exception):
    def __init__(self, retry_after_ms: int) -> None:
        self.retry_after_ms = retry_after_ms


@pytest.mark.parametrize(("wanted_ms", "waits_ms"), [(10, 100), (500, 500)])
def test_a_pause_is_as_long_as_the_retry_says_or_the_other_end_if_that_wants_more(
    wanted_ms: int, waits_ms: int
) -> None:
    stage = Stage(Asking(), retry=Retry(attempts=2))
    stage.take("a")
    stage.hand.end("a", error=Busy(wanted_ms))
    stage.turn()
    stage.clock.go_on(waits_ms - 1)
    stage.turn()
    assert stage.hand.records() == []
    stage.clock.go_on(1)
    stage.turn()
    assert stage.hand.records() == ["a"]


@pytest.mark.parametrize(("total_ms", "is_tried_again"), [(100, False), (101, True)])
def test_a_try_for_which_no_time_would_be_left_is_not_waited_for(total_ms: int, is_tried_again: bool) -> None:
    stage = Stage(Asking(), retry=Retry(attempts=2), total_timeout_ms=total_ms, on_error="errors")
    stage.take("a")
    stage.hand.end("a", error=ValueError("no"))
    stage.turn()
    assert bool(dict(stage.out.sides())) != is_tried_again
    stage.clock.go_on(100)
    stage.turn()
    assert stage.hand.records() == ["a"] * is_tried_again


def rated(**settings: Any) -> Stage:
    """A stage that begins no call without a grant."""
    permits = Permits(lambda _: None, lambda _: None)
    return Stage(Asking(), permits=permits, retry=Retry(attempts=5), rate_per_second=20, **settings)


def grant(stage: Stage, count: int) -> None:
    stage.calls.granted(replace(GRANT, count=count))
    stage.turn()


def test_a_record_whose_time_is_over_before_its_turn_comes_is_not_tried_in_vain() -> None:
    """It would be asked, and cancelled after a millisecond. Its turn is another record's."""
    stage = rated(total_timeout_ms=3_000, on_error="errors")
    stage.take("a", "b", "c")
    grant(stage, 1)
    stage.hand.end("a", error=ConnectionError("away"))
    stage.turn()
    stage.clock.go_on(3_000)
    stage.turn()
    grant(stage, 1)
    assert stage.hand.records() == ["b"]
    (failed,) = dict(stage.out.sides())[ERRORS.name]
    assert (failed.record, failed.tries) == ("a", 1)
    assert "3000 ms (total_timeout_ms) were over while try 2 waited for its turn" in failed.error
    assert "rate_per_second=20" in failed.error


def test_one_that_waits_for_its_first_turn_has_all_its_time_before_it() -> None:
    stage = rated(total_timeout_ms=3_000)
    stage.take("a")
    stage.clock.go_on(10_000)
    grant(stage, 1)
    assert stage.hand.records() == ["a"]


def test_a_record_that_is_tried_again_goes_before_those_that_were_not_tried_yet() -> None:
    """Where turns are few, its time would be over behind all the others."""
    stage = rated()
    stage.take("a", "b", "c", "d")
    grant(stage, 2)
    for record in "ab":
        stage.hand.end(record, error=ConnectionError("away"))
    stage.turn()
    stage.clock.go_on(100)
    stage.turn()
    grant(stage, 3)
    assert stage.hand.records() == ["a", "b", "c"]
