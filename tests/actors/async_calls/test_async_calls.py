"""AsyncCalls: what becomes of each call, on the task's thread. The event loop is the test: it says what has ended."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from understudy import AsyncSettings, KeyedOperator, Operator, Retry, ValueState
from understudy.actors.async_calls.async_calls import AsyncCalls
from understudy.actors.async_calls.call import Call
from understudy.actors.async_calls.event_loop import Begin
from understudy.actors.async_calls.failed_record import ERRORS, FailedRecord
from understudy.actors.async_calls.frozen_calls import CallInFlight
from understudy.actors.async_calls.run import Run
from understudy.actors.errors import UserCodeError
from understudy.actors.flow.elements import END_OF_TIME, NO_WATERMARK, TimedBatch, Watermark
from understudy.actors.flow.key_selector import KeySelector
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.timers import Timers
from understudy.state import HeapBackend, OperatorStateBackend, bind_states
from understudy.state.backends.shared_backend import SharedBackend
from understudy.state.backends.unit_of_work import CURRENT
from understudy.state.keys.key_groups import key_group_range

from ..operators.conftest import context

DAY_MS = 86_400_000


@dataclass
class Hands:
    """A clock that is set by hand; the time of day may be set apart."""

    now: float = 0.0
    day: int = 1_700_000_000_000

    def now_ms(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return self.day

    def go_on(self, ms: float) -> None:
        self.now += ms
        self.day += int(ms)


@dataclass
class Hand:
    """A CallLoop and its CallRunner. Calls begin in the order of `submit`, and wait until the test ends them."""

    begun: list[Call] = field(default_factory=list)
    ended: list[Any] = field(default_factory=list)
    begin: Begin | None = None
    is_closed = False
    made = 0

    def runner(self, begin: Begin, what: str, wake: Callable[[], None]) -> Hand:
        self.begin = begin
        return self

    def lock(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def tasks_made(self) -> int:
        self.made += 1
        return self.made

    @property
    def has_ended(self) -> bool:
        return bool(self.ended)

    def submit(self, calls: Sequence[Any]) -> None:
        for each in calls:
            if isinstance(each, Run):
                while not each.is_over:
                    if copy_context().run(each.go_on, lambda result: TypeError(str(result))) is not None:
                        assert each.stopped is not None
                        self.begun.append(each.stopped)
                self.ended.append(each)
            else:
                self.begun.append(each)

    def taken(self, most: int | None = None) -> list[Any]:
        ended, self.ended = self.ended[:most], [] if most is None else self.ended[most:]
        return ended

    def run(self, coroutine: Coroutine[Any, Any, Any], then: Callable[[BaseException | None], None]) -> None:
        raise AssertionError("these operators open at once")

    def close(self, within_ms: float, last: Callable[[], Coroutine[Any, Any, Any]] | None) -> None:
        self.is_closed = True
        if last is not None:
            with pytest.raises(StopIteration):
                last().send(None)

    def end(self, record: Any, *results: Any, error: BaseException | None = None, do: Any = None) -> None:
        """The coroutine of this record has done this, and ended."""
        call = next(each for each in self.begun if each.record == record)
        self.begun.remove(call)
        token = CURRENT.set(call.retried or call)
        if do is not None:
            do()
        CURRENT.reset(token)
        for each in results:
            call.out.collect(each)
        call.error = error
        self.ended.append(call)

    def records(self) -> list[Any]:
        return [each.record for each in self.begun]


class Asking(Operator):
    async def process(self, record: Any, out: Collector) -> None:
        await _never()


class ByKey(KeyedOperator):
    count = ValueState(int, default=0)

    async def process(self, record: Any, out: Collector) -> None:
        await _never()


class WithTimers(ByKey):
    seen: list[int]

    async def on_timer(self, timer: Any, out: Collector) -> None:
        await _never()

    def on_watermark(self, watermark_ms: int, out: Collector) -> None:
        self.seen.append(watermark_ms)


class _never:
    def __await__(self) -> Any:
        yield


class Stage:
    """One attempt of an operator, with what its task does to it."""

    def __init__(
        self,
        operator: Operator,
        restored: Sequence[CallInFlight] = (),
        *,
        where: dict[str, Any] | None = None,
        opened: bool = True,
        **settings: Any,
    ) -> None:
        self.clock, self.hand, self.operator = Hands(), Hand(), operator
        operator.async_settings = AsyncSettings(**settings)
        operator.context = replace(context(), clock=self.clock, **(where or {}))
        at = operator.context
        groups = key_group_range(at.max_parallelism, at.parallelism, at.subtask_index)
        self.backend = SharedBackend(HeapBackend(groups.first, groups.last, at.max_parallelism), nullcontext())
        given = operator.async_settings
        self.calls = AsyncCalls(operator, given, self.backend, self.hand, lambda retry, tries: 100.0)
        bind_states(operator, self.backend, OperatorStateBackend(), "the-operator", None)
        if isinstance(operator, KeyedOperator):
            operator._backend, operator.timers = self.backend, Timers(self.backend)
            operator._selectors = (KeySelector(lambda record: record[0]),)
        self.calls._restored.extend(restored)
        operator._calls = self.calls
        self.out = Collector()
        if opened:
            self.calls.open()

    def take(self, *records: Any) -> None:
        self.calls.take(list(records), 0)
        self.turn()

    def watermark(self, ms: int) -> bool:
        self.operator.watermark = ms
        more = self.calls.advance(ms)
        self.turn()
        return more

    def turn(self) -> None:
        """As long as there is something to do, do it."""
        for _ in range(100):
            due_ms = self.calls.due_ms(self.clock.wall_ms())
            if due_ms is None or due_ms > self.clock.wall_ms():
                return
            self.calls.do_due(self.clock.wall_ms(), self.out)
        raise AssertionError("it is due for ever")

    def emitted(self) -> list[Any]:
        """Records, and watermarks as such."""
        found: list[Any] = []
        for each in self.out.taken():
            match each:
                case Watermark():
                    found.append(each)
                case TimedBatch(records=records):
                    found += records
                case _:
                    found += each
        return found

    def frozen(self) -> list[CallInFlight]:
        """Record by record, also those of which no calls have been made."""
        self.calls.settle()
        frozen, found = self.calls.freeze(), list[CallInFlight]()
        for each in [*frozen.calls, *frozen.later()]:
            found += self.calls._backlog.calls_of(each) if each.kind == "waiting" else (each,)
        return sorted(found, key=lambda each: each.number)


def in_flight(number: int, record: Any, **changes: Any) -> CallInFlight:
    usual = CallInFlight(record[0], number, "", "record", record, None, 0, 0, 0, 0, NO_WATERMARK, 0, None)
    return usual._replace(**changes)


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


@pytest.mark.parametrize("settings", [{"on_error": "errors"}, {"default": "none"}, {}])
def test_what_is_no_error_of_a_record_fails_the_task(settings: dict[str, Any]) -> None:
    stage = Stage(Asking(), **settings)
    stage.take("a")
    stage.hand.end("a", error=SystemExit(3))

    with pytest.raises(UserCodeError):
        stage.turn()


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
