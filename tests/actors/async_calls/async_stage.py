"""Stage: AsyncCalls of one operator on the task's side. The event loop is the test: it says what has ended."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from understudy import AsyncSettings, KeyedOperator, Operator, ValueState
from understudy.actors.async_calls.async_calls import AsyncCalls
from understudy.actors.async_calls.call import Call
from understudy.actors.async_calls.event_loop import Begin
from understudy.actors.async_calls.frozen_calls import CallInFlight
from understudy.actors.async_calls.permits import Permits
from understudy.actors.async_calls.run import Run
from understudy.actors.flow.elements import NO_WATERMARK, TimedBatch, Watermark
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
    opening: list[Callable[[BaseException | None], None]] = field(default_factory=list)
    """What is to be called when an operator has opened."""
    is_closed = False
    made = 0
    has_begun = False
    """Whether a call has left a task running."""

    def runner(self, begin: Begin, what: str, wake: Callable[[], None]) -> Hand:
        self.begin = begin
        return self

    def lock(self) -> AbstractContextManager[Any]:
        return nullcontext()

    @property
    def begun_so_far(self) -> int:
        self.made += 1
        return self.made

    @property
    def has_ended(self) -> bool:
        return bool(self.ended)

    def awaits_begun(self, within_ms: float) -> bool:
        return self.has_begun

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

    def run(self, make: Callable[[], Coroutine[Any, Any, Any]], then: Callable[[BaseException | None], None]) -> None:
        self.opening.append(then)

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
        await Never()


class ByKey(KeyedOperator):
    count = ValueState(int, default=0)

    async def process(self, record: Any, out: Collector) -> None:
        await Never()


class WithTimers(ByKey):
    seen: list[int]

    async def on_timer(self, timer: Any, out: Collector) -> None:
        await Never()

    def on_watermark(self, watermark_ms: int, out: Collector) -> None:
        self.seen.append(watermark_ms)


class Never:
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
        permits: Permits | None = None,
        **settings: Any,
    ) -> None:
        self.clock, self.hand, self.operator = Hands(), Hand(), operator
        operator.async_settings = AsyncSettings(**settings)
        operator.context = replace(context(), clock=self.clock, **(where or {}))
        at = operator.context
        groups = key_group_range(at.max_parallelism, at.parallelism, at.subtask_index)
        self.backend = SharedBackend(HeapBackend(groups.first, groups.last, at.max_parallelism), nullcontext())
        given = operator.async_settings
        self.calls = AsyncCalls(operator, given, self.backend, self.hand, lambda retry, tries: 100.0, permits)
        bind_states(operator, self.backend, OperatorStateBackend(), "the-operator", None)
        if isinstance(operator, KeyedOperator):
            operator._backend, operator.timers = self.backend, Timers(self.backend, operator._no_timers)
            operator._selectors = (KeySelector(lambda record: record[0]),)
        self.calls._restored.waiting.extend(restored)
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
