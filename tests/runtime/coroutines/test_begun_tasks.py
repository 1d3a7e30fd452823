"""Tasks that a record has begun: where that was, and who waits for them at the end of the data."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextvars import Context
from typing import Any

import pytest

from understudy.runtime.coroutines.begun_tasks import BegunTask, LeftTasks, context_of_no_unit, note
from understudy.runtime.coroutines.call_loop import CallLoopThread
from understudy.state.backends.unit_of_work import CURRENT, UnitOfWork

DEADLINE_S = 20.0
"""Nobody waits for so long unless something is broken."""


async def nothing() -> None:
    pass


def begun_by(work: Callable[[], object]) -> list[str]:
    """The lines of the tasks that this begins, for a unit of work."""
    unit = UnitOfWork("key")

    def noted(loop: Any, coroutine: Any, context: Context | None = None) -> asyncio.Task[Any]:
        return note(asyncio.Task(coroutine, loop=loop, context=context), context)

    async def begin() -> None:
        asyncio.get_running_loop().set_task_factory(noted)
        CURRENT.set(unit)
        work()

    asyncio.run(begin())
    return [each.line for each in unit.begun or ()]


def library(source: str) -> Any:
    """What this source defines as `function`, in a module of Understudy."""
    names = {"__name__": "understudy.library", "asyncio": asyncio}
    exec(compile(source, "library.py", "exec"), names)
    return names["function"]


def test_each_task_that_a_unit_begins_is_known_with_its_line() -> None:
    def work() -> None:
        asyncio.create_task(nothing())  # noqa: RUF006 - the first
        asyncio.create_task(nothing())  # noqa: RUF006 - the second

    first, second = begun_by(work)
    assert first.endswith("the first")
    assert second.endswith("the second")


def test_a_task_that_the_library_makes_was_begun_where_it_was_called() -> None:
    make = library("def function(made): return asyncio.create_task(made)")
    (line,) = begun_by(lambda: make(nothing()))  # it is called here
    assert line.endswith("it is called here")


def test_a_task_is_begun_by_the_unit_of_its_context() -> None:
    assert begun_by(lambda: asyncio.create_task(nothing(), context=context_of_no_unit())) == []


def test_its_line_is_that_of_the_instruction() -> None:
    code = library("def function(a):\n  return a(\n    a(),\n    a\n  )").__code__
    of: Any = UnitOfWork("key")
    for start, end, number in code.co_lines():
        for lasti in range(start, end, 2):
            assert BegunTask(of, of, code, lasti).line == f"library.py:{number}"


class Ending(dict[Any, Any]):
    """Tasks that end as soon as somebody has looked whether there are any."""

    end: Callable[[], None]

    def __len__(self) -> int:
        count = super().__len__()
        if count:
            self.end()
        return count


def test_a_task_that_ends_while_it_is_asked_for_wakes() -> None:
    """On the event loop's thread, between two steps of the task's."""
    wakes: list[None] = []

    async def ask() -> bool:
        left = LeftTasks(asyncio.get_running_loop(), "Test.process", lambda: wakes.append(None))
        task = asyncio.create_task(asyncio.sleep(3600))
        begun = BegunTask(task, UnitOfWork("key"), ask.__code__, 0)
        left.add([begun])
        left._left = tasks = Ending(left._left)
        tasks.end = lambda: left._is_done(begun)
        said = left.awaits(60_000)
        left.close()
        return said

    is_awaited = asyncio.run(ask())
    assert wakes or not is_awaited


class Waiting:
    """Some tasks of the user's that records have left running, and who waits for them."""

    def __init__(self, *codes: Any) -> None:
        loop = asyncio.get_running_loop()
        self.wakes: list[None] = []
        self.tasks: list[Any] = [loop.create_future() for _ in codes]
        self.left = LeftTasks(loop, "Test.process", lambda: self.wakes.append(None))
        unit = UnitOfWork("key")
        self.left.add(BegunTask(task, unit, code, 0) for task, code in zip(self.tasks, codes, strict=True))

    async def ends(self, task: int) -> None:
        self.tasks[task].set_result(None)
        await turns()


async def turns() -> None:
    """What is due now is done."""
    for _ in range(5):
        await asyncio.sleep(0)


OWN = nothing.__code__


@pytest.mark.parametrize("code", [None, asyncio.sleep.__code__, pytest.main.__code__])
def test_what_a_library_has_begun_is_not_awaited(code: Any) -> None:
    async def ask() -> bool:
        return Waiting(code).left.awaits(60_000)

    assert not asyncio.run(ask())


def test_the_last_that_ends_wakes_who_waits() -> None:
    async def ask() -> None:
        waiting = Waiting(OWN, OWN, OWN)
        await waiting.ends(0)
        assert waiting.left.awaits(60_000)
        await waiting.ends(1)
        assert waiting.left.awaits(60_000)
        assert waiting.wakes == []
        await waiting.ends(2)
        assert waiting.wakes == [None]
        assert not waiting.left.awaits(60_000)

    asyncio.run(ask())


def test_those_that_go_on_are_logged_once_and_awaited_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        waiting = Waiting(OWN, OWN)
        assert waiting.left.awaits(0)
        async with asyncio.timeout(DEADLINE_S):
            while not waiting.wakes:
                await turns()
        assert not waiting.left.awaits(0)
        await waiting.ends(0)
        await waiting.ends(1)
        assert waiting.wakes == [None]

    with caplog.at_level(logging.WARNING):
        asyncio.run(ask())
    (said,) = caplog.messages
    assert said.startswith(
        "Test.process: 2 tasks or callbacks that it has begun are not over 0.0 s after the last record, begun at "
    )


class Noting:
    """An event loop that says how long it was to wait."""

    def call_soon_threadsafe(self, function: Any, *args: Any) -> None:
        function(*args)

    def call_later(self, seconds: float, *_: Any) -> None:
        self.seconds = seconds


def test_they_are_awaited_for_so_many_milliseconds() -> None:
    async def ask() -> float:
        left, loop = Waiting(OWN).left, Noting()
        left._loop = loop  # type: ignore[assignment]
        assert left.awaits(500)
        return loop.seconds

    assert asyncio.run(ask()) == 0.5


@pytest.mark.parametrize("over", ["all have ended", "it is closed"])
def test_when_the_wait_is_over_nothing_is_logged(over: str, caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> list[None]:
        waiting = Waiting(OWN)
        assert waiting.left.awaits(0)
        if over == "it is closed":
            waiting.left.close()
        await waiting.ends(0)
        await turns()
        return waiting.wakes

    assert asyncio.run(ask()) == ([] if over == "it is closed" else [None])
    assert caplog.messages == []


class Timers:
    """A unit of work that sets timers on the loop of coroutines."""

    def __init__(self, thread: CallLoopThread) -> None:
        self.loop = thread.loop
        self.unit = UnitOfWork("key")

    def do(self, work: Callable[[], Any]) -> Any:
        """On the loop, as the unit."""

        async def doing() -> Any:
            CURRENT.set(self.unit)
            return work()

        return asyncio.run_coroutine_threadsafe(doing(), self.loop).result(DEADLINE_S)

    def left(self) -> list[str]:
        return [each.line for each in self.unit.left_running()]


@pytest.fixture
def timers() -> Iterator[Timers]:
    with CallLoopThread() as thread:
        yield Timers(thread)


def test_a_timer_is_left_until_it_has_been_called_or_cancelled(timers: Timers) -> None:
    happened = threading.Event()
    handle = timers.do(lambda: timers.loop.call_later(3600, nothing))  # it stays
    timers.do(lambda: timers.loop.call_later(3600, nothing).cancel())
    timers.do(lambda: timers.loop.call_at(0, happened.set))
    assert happened.wait(DEADLINE_S)
    (line,) = timers.do(timers.left)
    assert line.endswith("# it stays")
    timers.do(handle.cancel)
    assert timers.do(timers.left) == []


def test_a_timer_of_asyncio_or_of_the_library_is_none_of_the_record(timers: Timers) -> None:
    wait = library("def function(loop): loop.call_later(3600, print)")

    async def pausing() -> list[str]:
        CURRENT.set(timers.unit)
        wait(timers.loop)
        async with asyncio.timeout(3600):
            pause = asyncio.ensure_future(asyncio.sleep(3600))
            await asyncio.sleep(0)
            left = [each for each in timers.unit.left_running() if each.held is not pause]
            pause.cancel()
        return left

    assert asyncio.run_coroutine_threadsafe(pausing(), timers.loop).result(DEADLINE_S) == []


def test_what_a_timer_raises_is_told_with_the_name_of_its_function(
    timers: Timers, caplog: pytest.LogCaptureFixture
) -> None:
    happened = threading.Event()

    def wrong() -> None:
        timers.loop.call_soon(happened.set)
        raise ValueError("no")

    timers.do(lambda: timers.loop.call_later(0, wrong))
    assert happened.wait(DEADLINE_S)
    (said,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
    assert "wrong" in said


@pytest.mark.parametrize("how", ["called", "cancelled"])
def test_a_timer_that_is_over_wakes_who_waits(how: str, timers: Timers) -> None:
    woken = threading.Event()
    left = LeftTasks(timers.loop, "Test.process", woken.set)
    handle = timers.do(lambda: timers.loop.call_later(0.2, lambda: None))
    timers.do(lambda: left.add(timers.unit.left_running()))
    assert left.awaits(60_000)
    if how == "cancelled":
        timers.do(handle.cancel)
    assert woken.wait(DEADLINE_S)
    assert not left.awaits(60_000)


def test_what_is_left_is_cancelled_in_the_end() -> None:
    async def cancelled() -> list[bool]:
        waiting = Waiting(OWN, OWN, asyncio.sleep.__code__)
        one, other, client = waiting.tasks
        beside = [asyncio.get_running_loop().create_future() for _ in range(2)]
        waiting.left.add_undone(
            BegunTask(task, UnitOfWork("key"), code, 0)
            for task, code in zip(beside, [OWN, asyncio.sleep.__code__], strict=True)
        )
        other.set_result(None)
        assert set(waiting.left.cancel()) == set()  # futures end at once
        return [each.cancelled() for each in (one, other, client, *beside)]

    assert asyncio.run(cancelled()) == [True, False, False, True, False]
