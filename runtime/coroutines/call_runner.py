"""LoopRunner: runs calls on the event loop, and hands over those that have ended, many at a time.

Calls run in workers: asyncio tasks that live on and take one call after the other. A worker drives its coroutine by
itself, so it knows at once whether that waits: then another worker takes the next call. A coroutine that never waits
costs no task; one that waits has a task like any other, with `asyncio.current_task()`, timeouts and cancellation.

`submit`, `taken` and `close` are called on the task's thread, all else happens on the loop's. It decides nothing: what
becomes of a call that has failed, or was cancelled, is settled by who takes it.
"""

from __future__ import annotations

import asyncio
import logging
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Final, TypeAlias

from ...actors.async_calls.call import Call
from ...actors.async_calls.event_loop import Begin, Ended
from ...actors.async_calls.run import Run
from ...actors.errors import CallTimedOut
from ...actors.unrun import refuse
from ...state.backends.unit_of_work import CURRENT, UnitOfWork
from .begun_tasks import LeftTasks, context_of_no_unit
from .timer_wheel import TimerWheel
from .waiting_code import waiting_at, waiting_lines

log = logging.getLogger(__name__)

Complete: TypeAlias = "Callable[[Coroutine[Any, Any, None], float], bool]"
"""Runs a coroutine to its end, and blocks for this many ms at most; whether it has ended. Raises what it raises."""

_WITHOUT_A_PAUSE: Final = 1000
"""This many calls that never wait run before the loop may do anything else."""
_PATIENCE_MS: Final = 1000
"""A coroutine that was cancelled may take this long to put things in order."""
_OPENED_WITHIN_S: Final = 10
"""An `open` that takes longer is logged."""


class _Worker:
    """One asyncio task, and what it waits for when there is no call."""

    __slots__ = ("coroutine", "task", "unit", "woken")

    def __init__(self) -> None:
        self.coroutine: Coroutine[Any, Any, Any] | None = None
        """The one that waits."""
        self.unit: UnitOfWork | None = None
        """Its own."""
        self.task: asyncio.Task[None] | None = None
        self.woken: asyncio.Future[None] | None = None


class LoopRunner:
    """A CallRunner; `wake` is called when calls of one turn of the loop have ended."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, complete: Complete, begin: Begin, what: str, wake: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._complete = complete
        self._begin = begin
        self._what = what
        self._wake = wake
        self._incoming: deque[Call | Run] = deque()
        self._ended: deque[Ended] = deque()
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._opening: asyncio.Task[None] | None = None
        """The task of `run`, which the loop alone would forget."""
        self._wheel: TimerWheel[tuple[Call, int]] = TimerWheel(self._loop, self._expire)
        self._is_signalled = False
        self._is_woken = False
        self._is_closed = False
        self._has_warned = False
        self._left = LeftTasks(loop, what, wake)

    # -- on the task's thread

    def awaits_begun(self, within_ms: float) -> bool:
        """Whether what calls have begun, and not awaited, still runs or waits, at most for this long after it was first
        asked; what then still does is logged.
        """
        return self._left.awaits(within_ms)

    def submit(self, calls: Sequence[Call | Run]) -> None:
        """Begin them soon, in this order."""
        self._incoming.extend(calls)
        if not self._is_signalled:
            self._is_signalled = True
            self._loop.call_soon_threadsafe(self._signalled)

    def taken(self, most: int | None = None) -> list[Ended]:
        """What has ended since, in the order in which it did. `error` says what a call has failed with."""
        self._is_woken = False
        ended = self._ended
        count = len(ended)
        return [ended.popleft() for _ in range(count if most is None else min(count, most))]

    @property
    def has_ended(self) -> bool:
        """Whether `taken` would return any."""
        return bool(self._ended)

    def run(self, make: Callable[[], Coroutine[Any, Any, Any]], then: Callable[[BaseException | None], None]) -> None:
        """Make and run one that belongs to no call, as `open`, unless it is closed before."""

        async def whole() -> None:
            watch: asyncio.TimerHandle | None = None
            try:
                coroutine = make()
                watch = self._loop.call_later(_OPENED_WITHIN_S, self._tell_of, coroutine)
                await coroutine
            except BaseException as error:  # noqa: BLE001 - user code; whoever asked gets it
                then(error)
            else:
                then(None)
            if watch is not None:
                watch.cancel()
            self._wake()

        def begin() -> None:
            if not self._is_closed:
                self._opening = self._loop.create_task(whole())

        self._loop.call_soon_threadsafe(begin)

    def close(self, within_ms: float, last: Callable[[], Coroutine[Any, Any, Any]] | None) -> None:
        """Cancel all that runs, wait for its end, then run `last`; blocks for this long at most. What ends from now on
        goes nowhere. Raises what `last` raises.
        """
        self._is_closed = True
        self._left.close()
        if not self._complete(self._close(last), within_ms):
            left = sum(1 for worker in self._workers if worker.task is not None and not worker.task.done())
            begun = [each for each in self._left.not_ended if isinstance(each, asyncio.Task)]
            log.warning(
                "%s: the operator has been closed, and %d of its coroutines still run after %.1f s, at %s: they caught "
                "their CancelledError, or `close` takes longer",
                self._what,
                left + len(begun),
                within_ms / 1000,
                waiting_lines([*self._waiting(), *(each.get_coro() for each in begun)]),
            )

    def waiting_at(self) -> str:
        """The lines at which coroutines wait."""
        return waiting_lines(self._waiting())

    def _waiting(self) -> list[Coroutine[Any, Any, Any]]:
        return [each.coroutine for each in tuple(self._workers) if each.coroutine is not None]

    # -- on the loop's

    async def _close(self, last: Callable[[], Coroutine[Any, Any, Any]] | None) -> None:
        self._wheel.close()
        self._incoming.clear()
        of_workers = (worker.task for worker in self._workers)
        tasks = [task for task in (self._opening, *of_workers) if task is not None]
        for worker in self._workers:
            if worker.unit is not None:
                self._left.add_undone(worker.unit.left_running())
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks)
            if last is not None:
                await last()  # it may want to end by itself what records have begun
        finally:
            left = self._left.cancel()
        if left:
            await asyncio.wait(left)

    @staticmethod
    def _tell_of(coroutine: Coroutine[Any, Any, Any]) -> None:
        log.warning(
            "%s has not ended after %d s, and the operator's records wait for it: it waits at %s; give what it waits "
            "for a timeout, as with `async with asyncio.timeout(5)`",
            getattr(coroutine, "__qualname__", "open"),
            _OPENED_WITHIN_S,
            waiting_at(coroutine),
        )

    def _signalled(self) -> None:
        self._is_signalled = False
        self._let_another_work()

    def _let_another_work(self) -> None:
        """One that has no call takes the next one, if there is one."""
        if not self._incoming or self._is_closed:
            return
        if self._idle:
            woken = self._idle.pop().woken
            assert woken is not None
            woken.set_result(None)
        else:
            worker = _Worker()
            self._workers.add(worker)
            worker.task = self._loop.create_task(self._task_of(worker), context=context_of_no_unit())

    async def _task_of(self, worker: _Worker) -> None:
        await self._work(worker)

    @types.coroutine
    def _work(self, worker: _Worker) -> Generator[Any, Any, None]:
        incoming, begin = self._incoming, self._begin
        unpaused = 0
        while True:
            while incoming:
                unpaused += 1
                if unpaused > _WITHOUT_A_PAUSE:
                    unpaused = 0
                    yield
                    continue
                item = incoming.popleft()
                coroutine: Coroutine[Any, Any, Any] | None
                if isinstance(item, Run):
                    waiting = item.go_on(self._refused)
                    if item.is_over:
                        self._end(item)
                    else:
                        incoming.appendleft(item)
                        unpaused = _WITHOUT_A_PAUSE
                    if waiting is None:
                        continue
                    assert item.stopped is not None
                    call, (coroutine, awaited) = item.stopped, waiting
                else:
                    call = item
                    CURRENT.set(call.retried or call)
                    try:
                        coroutine = _begun(begin, call)
                        if coroutine is None:
                            self._end(call)
                            continue
                        awaited = coroutine.send(None)
                    except StopIteration as end:
                        call.error = None if end.value is None else self._refused(end.value)
                        self._end(call)
                        continue
                    except BaseException as error:  # noqa: BLE001 - user code may call sys.exit; who takes it decides
                        call.error = error
                        self._end(call)
                        continue
                yield from self._wait(worker, call, coroutine, awaited)
                if self._is_closed:  # it caught its CancelledError
                    return
                unpaused = 0
            CURRENT.set(None)
            worker.woken = self._loop.create_future()
            self._idle.append(worker)
            try:
                yield from worker.woken
            except asyncio.CancelledError:
                if self._is_closed:
                    raise
                _forget_cancellation(worker)  # a record has left it behind, which is over
                if worker in self._idle:
                    self._idle.remove(worker)
            unpaused = 0

    def _wait(
        self, worker: _Worker, call: Call, coroutine: Coroutine[Any, Any, Any], awaited: Any
    ) -> Generator[Any, Any, None]:
        """The rest of a call that waits."""
        self._let_another_work()
        call.task, worker.coroutine, worker.unit = worker.task, coroutine, call.retried or call
        if call.limit_ms is not None:
            self._wheel.add((call, call.tries), call.limit_ms)
        is_gone = False
        try:
            while True:
                try:
                    sent = yield awaited
                except GeneratorExit:  # the loop has gone away under it
                    is_gone = True
                    coroutine.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - for the coroutine
                    awaited = coroutine.throw(error)
                else:
                    awaited = coroutine.send(sent)
        except StopIteration as end:
            call.error = None if end.value is None else self._refused(end.value)
            if call.is_expired:
                _forget_cancellation(worker)
        except GeneratorExit as error:
            if is_gone:
                raise
            call.error = error
        except asyncio.CancelledError as error:
            if self._is_closed:
                raise
            _forget_cancellation(worker)
            call.error = error
            if call.is_expired:
                call.error = CallTimedOut(self._what, call.limit_ms or 0, call.tries).with_traceback(
                    error.__traceback__
                )
                call.error.__suppress_context__ = True
        except BaseException as error:  # noqa: BLE001 - the same
            call.error = error
            if call.is_expired:
                _forget_cancellation(worker)
        call.task = worker.coroutine = worker.unit = None
        self._end(call)

    def _refused(self, result: Any) -> BaseException:
        """The error of a coroutine that has returned something."""
        try:
            refuse(self._what, result)
        except Exception as error:  # noqa: BLE001 - what it raises is what is wanted
            error.__suppress_context__ = True
            return error.with_traceback(None)

    def _end(self, ended: Ended) -> None:
        if self._is_closed:
            return
        if isinstance(ended, Run):
            self._left.add(ended.begun)
        elif (unit := ended.retried or ended).begun is not None:
            left = unit.left_running()
            if ended.error is None:
                self._left.add(left)
            else:
                self._left.add_undone(left)
        self._ended.append(ended)
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon(self._wake)  # when what ends in the same turn has ended, too

    def _expire(self, tried: tuple[Call, int]) -> None:
        call, tries = tried
        if call.task is None or call.tries != tries:
            return
        if not call.is_expired:
            call.is_expired = True
            call.task.cancel()
            self._wheel.add(tried, _PATIENCE_MS)
        elif not self._has_warned:
            self._has_warned = True
            lines = [each.coroutine for each in self._workers if each.task is call.task]
            log.warning(
                "%s: a coroutine goes on although it was cancelled, as it took longer than %.0f ms, at %s: it catches "
                "asyncio.CancelledError, so no timeout ends it; let that pass",
                self._what,
                call.limit_ms or 0,
                waiting_lines(lines),
            )


def _forget_cancellation(worker: _Worker) -> None:
    """The task goes on with another call, which nobody has cancelled."""
    task = worker.task
    assert task is not None
    while task.cancelling():
        task.uncancel()


def _begun(begin: Begin, call: Call) -> Coroutine[Any, Any, Any] | None:
    """Its coroutine. A plain method that raises StopIteration has failed, and not returned."""
    try:
        return begin(call)
    except StopIteration as error:
        raise RuntimeError("StopIteration was raised where no generator runs") from error
