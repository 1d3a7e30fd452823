"""LoopRunner on a real event loop: coroutines that never wait and that do, fail, take too long, or will not end."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from understudy.actors.async_calls.call import Call
from understudy.actors.errors import CallTimedOut
from understudy.actors.flow.elements import NO_WATERMARK
from understudy.runtime.coroutines.call_loop import CallLoopThread
from understudy.runtime.coroutines.call_runner import LoopRunner
from understudy.state.backends.unit_of_work import CURRENT, UnitOfWork
from understudy.state.errors import CallIsOver

DEADLINE_S = 20.0
"""Nobody waits for so long unless something is broken."""


class Running:
    """A runner, and what comes of it. `began`: the records in the order in which their coroutines began."""

    def __init__(self, loop: CallLoopThread, work: Any) -> None:
        self._woken = threading.Condition()
        self._wakes = 0
        self.began: list[Any] = []
        self._work = work
        self.runner: LoopRunner = loop.runner(self._begin, "Test.process", self._wake)

    def _begin(self, call: Call) -> Any:
        self.began.append(call.record)
        return self._work(call.record)

    def _wake(self) -> None:
        with self._woken:
            self._wakes += 1
            self._woken.notify_all()

    def submit(self, *records: Any, limit_ms: float | None = None) -> list[Call]:
        calls = [Call(number, number, record, NO_WATERMARK) for number, record in enumerate(records)]
        for each in calls:
            each.limit_ms = limit_ms
        self.runner.submit(calls)
        return calls

    def ended(self, count: int) -> list[Call]:
        """Wait for this number of calls to have ended, as a task does: looks when it is woken."""
        found: list[Any] = []
        with self._woken:
            while len(found := [*found, *self.runner.taken()]) < count:
                assert self._woken.wait(DEADLINE_S), f"only {len(found)} of {count} have ended"
        assert len(found) == count
        return found


@pytest.fixture
def loop() -> Iterator[CallLoopThread]:
    with CallLoopThread() as thread:
        yield thread


def records_of(calls: list[Call]) -> list[Any]:
    return [each.record for each in calls]


def test_coroutines_that_never_wait_end_in_their_order(loop: CallLoopThread) -> None:
    async def work(_: Any) -> None:
        pass

    running = Running(loop, work)
    running.submit(*range(5_000))

    assert records_of(running.ended(5_000)) == running.began == list(range(5_000))
    running.runner.close(1_000, None)


def test_those_that_wait_do_so_together(loop: CallLoopThread) -> None:
    """All 200 have begun before the first one ends."""
    everybody = threading.Event()
    done = asyncio.Event()

    async def work(record: int) -> None:
        if record == 199:
            everybody.set()
            done.set()
        await done.wait()

    running = Running(loop, work)
    running.submit(*range(200))

    assert everybody.wait(DEADLINE_S)
    assert sorted(records_of(running.ended(200))) == list(range(200))
    running.runner.close(1_000, None)


def test_each_coroutine_has_its_call_as_the_current_unit_and_a_task_of_its_own(loop: CallLoopThread) -> None:
    seen: dict[int, Any] = {}

    async def work(record: int) -> None:
        task = asyncio.current_task()
        await asyncio.sleep(0)
        unit: Any = CURRENT.get()
        seen[record] = (unit.record, asyncio.current_task() is task, id(task))

    running = Running(loop, work)
    running.submit(*range(20))
    running.ended(20)

    assert {record: found[:2] for record, found in seen.items()} == {number: (number, True) for number in range(20)}
    running.runner.close(1_000, None)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_what_it_raises_is_the_error_of_its_call_alone(loop: CallLoopThread, error: BaseException, waits: bool) -> None:
    async def work(record: int) -> None:
        if waits:
            await asyncio.sleep(0)
        if record == 1:
            raise error

    running = Running(loop, work)
    running.submit(0, 1, 2)

    assert {each.record: each.error for each in running.ended(3)} == {0: None, 1: error, 2: None}
    running.submit(7)
    assert records_of(running.ended(1)) == [7]
    running.runner.close(1_000, None)


def test_tasks_are_made_with_whatever_the_loop_of_this_python_gives(loop: CallLoopThread) -> None:
    """3.13.3 and 3.14 give the task factory the name and more; before, the loop itself names the task."""

    async def nothing() -> None: ...

    async def made() -> list[str]:
        running = asyncio.get_running_loop()
        factory: Any = running.get_task_factory()
        tasks = [
            factory(running, nothing(), name="first", context=None),
            asyncio.create_task(nothing(), name="second"),
        ]
        async with asyncio.TaskGroup() as group:
            tasks.append(group.create_task(nothing(), name="third"))
        await asyncio.gather(*tasks)
        return [each.get_name() for each in tasks]

    assert asyncio.run_coroutine_threadsafe(made(), loop.loop).result(DEADLINE_S) == ["first", "second", "third"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="its tasks cannot begin at once")
def test_a_task_that_begins_at_once_is_made(loop: CallLoopThread) -> None:
    async def value() -> int:
        return 1

    async def made() -> bool:
        running = asyncio.get_running_loop()
        factory: Any = running.get_task_factory()
        return bool(factory(running, value(), eager_start=True).done())

    assert asyncio.run_coroutine_threadsafe(made(), loop.loop).result(DEADLINE_S)


def test_none_may_stop_the_loop_that_all_share(loop: CallLoopThread) -> None:
    async def work(record: int) -> None:
        if record == 1:
            asyncio.get_running_loop().stop()

    running = Running(loop, work)
    running.submit(0, 1, 2)

    errors = {each.record: each.error for each in running.ended(3)}
    assert errors[0] is errors[2] is None
    with pytest.raises(RuntimeError, match=r"loop.stop\(\) was called on the event loop that all coroutines"):
        raise errors[1] or AssertionError
    running.submit(7)
    assert records_of(running.ended(1)) == [7]
    running.runner.close(1_000, None)


@pytest.mark.parametrize("waits", [False, True])
def test_what_it_returns_is_refused(loop: CallLoopThread, waits: bool) -> None:
    async def work(_: Any) -> Any:
        if waits:
            await asyncio.sleep(0)
        return [1]

    running = Running(loop, work)
    running.submit("record")

    (call,) = running.ended(1)
    assert "Test.process" in str(call.error)
    running.runner.close(1_000, None)


def test_a_hook_that_is_no_coroutine_may_be_done_at_once(loop: CallLoopThread) -> None:
    running = Running(loop, lambda _: None)
    running.submit("timer")

    assert running.ended(1)[0].error is None
    running.runner.close(1_000, None)


def test_a_try_that_takes_too_long_is_cancelled_and_the_worker_goes_on_unharmed(loop: CallLoopThread) -> None:
    async def work(record: str) -> None:
        if record == "slow":
            await asyncio.sleep(3_600)
        async with asyncio.timeout(3_600), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))

    running = Running(loop, work)
    running.submit("slow", limit_ms=20)
    (call,) = running.ended(1)
    assert isinstance(call.error, CallTimedOut)
    assert "20 ms" in str(call.error)

    running.submit(*["quick"] * 5)
    assert [each.error for each in running.ended(5)] == [None] * 5
    running.runner.close(1_000, None)


def test_who_catches_its_cancellation_is_done_and_leaves_none_of_it_to_the_next(loop: CallLoopThread) -> None:
    """A TaskGroup whose task fails says so only in a task that nobody has cancelled."""

    async def fails() -> None:
        raise ValueError("no")

    async def work(record: str) -> None:
        if record == "stubborn":
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                return
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())

    running = Running(loop, work)
    running.submit("stubborn", limit_ms=20)
    assert running.ended(1)[0].error is None

    running.submit("next")
    assert isinstance(running.ended(1)[0].error, ExceptionGroup)
    running.runner.close(1_000, None)


def test_a_deadline_of_an_earlier_try_does_not_end_a_later_one(loop: CallLoopThread) -> None:
    """The wheel still has the first deadline when the second try begins."""
    released = asyncio.Event()

    async def work(record: str) -> None:
        await released.wait()

    running = Running(loop, work)
    loop.loop.call_soon_threadsafe(released.set)
    (call,) = running.submit("record", limit_ms=50)
    running.ended(1)
    loop.loop.call_soon_threadsafe(released.clear)
    call.tries += 1
    call.limit_ms = None
    running.runner.submit([call])
    passed = threading.Event()
    loop.loop.call_soon_threadsafe(lambda: loop.loop.call_later(0.1, passed.set))
    assert passed.wait(DEADLINE_S)
    loop.loop.call_soon_threadsafe(released.set)

    assert running.ended(1)[0].error is None
    running.runner.close(1_000, None)


def test_close_cancels_all_that_runs_waits_for_it_and_runs_the_last_one(loop: CallLoopThread) -> None:
    happened: list[str] = []
    waits = threading.Event()

    async def work(_: Any) -> None:
        try:
            waits.set()
            await asyncio.sleep(3_600)
        finally:
            await asyncio.sleep(0)
            happened.append("cleaned up")

    async def last() -> None:
        happened.append("closed")

    running = Running(loop, work)
    running.submit("record", "another")
    assert waits.wait(DEADLINE_S)
    running.runner.close(DEADLINE_S * 1_000, last)

    assert happened[-1] == "closed"
    assert set(happened[:-1]) <= {"cleaned up"}


def test_what_ends_after_close_goes_nowhere(loop: CallLoopThread) -> None:
    """A coroutine of an attempt that is over: it caught its cancellation, and it has a result all the same."""
    waits = threading.Event()

    async def work(_: Any) -> None:
        try:
            waits.set()
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)

    running = Running(loop, work)
    running.submit("record")
    assert waits.wait(DEADLINE_S)
    running.runner.close(DEADLINE_S * 1_000, None)

    assert not running.runner.has_ended
    assert running.runner.taken() == []


def test_who_catches_its_cancellation_does_not_keep_close_waiting(
    loop: CallLoopThread, caplog: pytest.LogCaptureFixture
) -> None:
    """Its worker would wait for another call, for ever."""
    waits = threading.Event()

    async def work(_: Any) -> None:
        try:
            waits.set()
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            pass

    running = Running(loop, work)
    running.submit("record")
    assert waits.wait(DEADLINE_S)
    with caplog.at_level(logging.WARNING):
        running.runner.close(DEADLINE_S * 1_000, None)

    assert caplog.records == []


def test_who_goes_on_in_spite_of_it_is_left_behind_after_the_deadline(
    loop: CallLoopThread, caplog: pytest.LogCaptureFixture
) -> None:
    waits, may_end = threading.Event(), asyncio.Event()

    async def work(_: Any) -> None:
        while not may_end.is_set():
            try:
                waits.set()
                await may_end.wait()
            except asyncio.CancelledError:
                continue

    running = Running(loop, work)
    running.submit("record")
    assert waits.wait(DEADLINE_S)
    running.runner.close(30, None)
    loop.loop.call_soon_threadsafe(may_end.set)

    assert "1 of its coroutines still run" in caplog.text
    assert running.runner.taken() == []


def test_what_the_last_one_raises_close_raises(loop: CallLoopThread) -> None:
    async def last() -> None:
        raise ValueError("cannot close")

    running = Running(loop, lambda _: None)
    with pytest.raises(ValueError, match="cannot close"):
        running.runner.close(DEADLINE_S * 1_000, last)


@pytest.mark.parametrize("error", [None, ValueError("no"), SystemExit(3)])
def test_one_that_belongs_to_no_call_says_how_it_ended(loop: CallLoopThread, error: BaseException | None) -> None:
    ended: list[BaseException | None] = []
    is_over = threading.Event()

    async def opening() -> None:
        await asyncio.sleep(0)
        if error is not None:
            raise error

    def then(found: BaseException | None) -> None:
        ended.append(found)
        is_over.set()

    running = Running(loop, lambda _: None)
    running.runner.run(opening, then)

    assert is_over.wait(DEADLINE_S)
    assert ended == [error]
    running.runner.close(1_000, None)


def test_close_cancels_one_that_still_opens(loop: CallLoopThread) -> None:
    """It would make its connections when nobody closes them any more."""
    waits, ended = threading.Event(), threading.Event()
    happened: list[str] = []

    async def opening() -> None:
        try:
            waits.set()
            await asyncio.sleep(3_600)
        finally:
            happened.append("cancelled")
            ended.set()

    async def last() -> None:
        happened.append("closed")

    running = Running(loop, lambda _: None)
    running.runner.run(opening, lambda _: None)
    assert waits.wait(DEADLINE_S)
    running.runner.close(DEADLINE_S * 1_000, last)

    assert ended.wait(DEADLINE_S)
    assert happened == ["cancelled", "closed"]


@pytest.mark.filterwarnings("error")
def test_who_closes_before_it_opens_does_not_open() -> None:
    """As a task does that fails at once."""
    happened: list[str] = []

    async def opening() -> None:
        happened.append("opened")

    def complete(coroutine: Any, _: float) -> bool:
        own.run_until_complete(coroutine)
        return True

    own = asyncio.new_event_loop()
    runner = LoopRunner(own, complete, lambda _: None, "Test.process", lambda: None)
    runner.run(opening, lambda _: None)
    runner.close(DEADLINE_S * 1_000, None)
    own.close()
    gc.collect()
    assert not happened


@pytest.mark.filterwarnings("error")
def test_a_loop_that_ends_before_it_opens_leaves_no_coroutine_that_nobody_awaits() -> None:
    async def opening() -> None:
        raise AssertionError("its process has ended")

    own = asyncio.new_event_loop()
    runner = LoopRunner(own, lambda *_: True, lambda _: None, "Test.process", lambda: None)
    runner.run(opening, lambda _: None)
    own.close()
    gc.collect()


def test_a_loop_that_goes_away_under_its_coroutines_ends_them() -> None:
    """A generator that is closed may not wait for anything more: that would be a RuntimeError nobody sees."""
    cleaned: list[str] = []

    async def work(record: str) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cleaned.append(record)

    async def begin_and_go() -> Any:
        own = asyncio.get_running_loop()
        runner = LoopRunner(own, lambda *_: True, lambda call: work(call.record), "Test.process", lambda: None)
        runner.submit([Call(0, 0, "record", NO_WATERMARK)])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return runner

    own = asyncio.new_event_loop()
    runner = own.run_until_complete(begin_and_go())
    own.close()
    (worker,) = runner._workers
    coroutine = worker.task.get_coro()
    coroutine.close()

    assert cleaned == ["record"]


@pytest.mark.filterwarnings("error")
def test_who_closes_when_the_loop_has_ended_starts_no_other_one() -> None:
    """Nothing of the operator runs any more; its `close` has no loop to run on."""
    happened: list[str] = []

    async def last() -> None:
        happened.append("closed")

    with CallLoopThread() as loop:
        running = Running(loop, lambda _: None)
    before = threading.active_count()
    running.runner.close(DEADLINE_S * 1000, last)
    gc.collect()
    assert (threading.active_count(), happened) == (before, [])


@pytest.mark.parametrize("how", ["", "waits", "fails", "a second try"])
def test_a_task_that_a_call_leaves_running_is_awaited_at_the_end_if_it_ended_well(
    loop: CallLoopThread, how: str
) -> None:
    left = []

    async def work(_: Any) -> None:
        left.append(asyncio.create_task(asyncio.sleep(3600)))
        if how == "waits":
            await asyncio.sleep(0)
        if how == "fails":
            raise ValueError

    running = Running(loop, work)
    call = Call(0, 0, "a", NO_WATERMARK)
    if how == "a second try":
        call.retried = UnitOfWork(0)
    running.runner.submit([call])
    running.ended(1)
    assert running.runner.awaits_begun(60_000) == (how != "fails")
    running.runner.close(1_000, None)
    assert not running.runner.awaits_begun(60_000)


@pytest.mark.parametrize("how", ["has ended", "has failed", "waits"])
def test_what_a_call_leaves_running_is_cancelled_at_the_close_behind_the_operators_own(
    loop: CallLoopThread, how: str
) -> None:
    happened: list[str] = []
    began = threading.Event()

    async def later() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            happened.append("cancelled")
            raise

    async def work(_: Any) -> None:
        task = asyncio.create_task(later())
        await asyncio.sleep(0)
        began.set()
        if how == "has failed":
            raise ValueError
        if how == "waits":
            await asyncio.wait([task])

    async def last() -> None:
        happened.append("closed")

    running = Running(loop, work)
    running.submit("a")
    if how == "waits":
        assert began.wait(DEADLINE_S)
    else:
        running.ended(1)
    running.runner.close(DEADLINE_S * 1000, last)
    assert happened == ["closed", "cancelled"]


def test_an_error_that_nobody_has_awaited_is_logged_unless_its_record_was_over(
    loop: CallLoopThread, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(record: BaseException) -> None:
        asyncio.get_running_loop().call_exception_handler({"message": "nobody has awaited it", "exception": record})

    running = Running(loop, work)
    running.submit(CallIsOver("out"), ValueError("no"))
    running.ended(2)
    running.runner.close(1_000, None)
    (said,) = caplog.records
    assert said.exc_info is not None
    assert said.exc_info[0] is ValueError
