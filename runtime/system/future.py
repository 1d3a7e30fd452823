"""ActorFuture: Pykka's future, which can also be awaited on any event loop, and calls back when it is done.

Pykka's own `__await__` blocks the loop. The futures that `map`, `filter`, `reduce` and `join` derive are lazy, as
Pykka's are: they are done when their sources are, and compute their value when it is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar, cast

import pykka
from pykka import ThreadingFuture

from ...actors.answer import Answer
from ...actors.timeouts import timeout_seconds
from ...messages.counted import counted
from .errors import FutureTimeout
from .event_loop import check_wait

T = TypeVar("T")
M = TypeVar("M")
J = TypeVar("J")
R = TypeVar("R")
Callback = Callable[["ActorFuture[Any]"], object]


class ActorFuture(ThreadingFuture[T], Answer[T]):
    """The outcome of an ask or of blocking work. Set once, by whichever of answer, failure and timeout comes first."""

    def __init__(self) -> None:
        super().__init__()
        self._callbacks: list[Callback] = []
        self._sources: tuple[pykka.Future[Any], ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether `get` returns or raises at once."""
        if self._sources:
            return all(source.is_done for source in self._sources if isinstance(source, ActorFuture))
        return self._result is not None

    def done(self) -> bool:
        return self.is_done

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is done, at most `timeout` seconds; whether it is. Not for what `map` and the like give."""
        seconds = timeout_seconds(timeout)
        with self._condition:
            return self._condition.wait_for(lambda: self._result is not None, seconds)

    def get(self, *, timeout: float | None = None) -> Any:
        """The outcome: its value, or the error it failed with. Raises FutureTimeout after `timeout` seconds."""
        seconds = timeout_seconds(timeout)
        done = self._result
        if done is not None and done.exc_info is None:
            return done.value
        if done is None and seconds != 0:
            check_wait()
        try:
            return super().get(timeout=seconds)
        except pykka.Timeout as error:
            if type(error) is not pykka.Timeout:  # what it failed with, as an AskTimeout
                raise
            raise FutureTimeout(f"not done after {counted(timeout or 0, 'second')}") from None

    def set(self, value: T | None = None) -> None:
        super().set(value)
        self._call_back()

    def set_exception(self, exc_info: Any = None) -> None:
        super().set_exception(exc_info)
        self._call_back()

    def try_set(self, value: T) -> bool:
        """Set the value unless an outcome is there already; tells whether this was the first."""
        with contextlib.suppress(queue.Full):
            self.set(value)
            return True
        return False

    def try_fail(self, error: BaseException) -> bool:
        """Set the failure unless an outcome is there already; tells whether this was the first."""
        with contextlib.suppress(queue.Full):
            self.set_exception((type(error), error, error.__traceback__))
            return True
        return False

    def add_done_callback(self, callback: Callback) -> None:
        """Call `callback(self)` once it is done: at once if it is, else on the thread that sets it."""
        if self._sources:
            _when_all_done(self._sources, lambda: callback(self))
            return
        with self._condition:
            if self._result is None:
                self._callbacks.append(callback)
                return
        callback(self)

    def _call_back(self) -> None:
        with self._condition:
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def __await__(self) -> Generator[Any, None, T]:
        return self._wait().__await__()

    __iter__ = __await__

    async def _wait(self) -> T:
        if self._get_hook is not None and not self._sources:  # somebody's own hook: only a thread can wait for it
            return cast(T, await asyncio.get_running_loop().run_in_executor(None, self.get))
        await self.until_done()
        return cast(T, self.get())

    async def until_done(self) -> None:
        """The same as `wait`, without blocking the event loop."""
        if not self.is_done:
            loop = asyncio.get_running_loop()
            done = loop.create_future()
            self.add_done_callback(lambda _: _call_on(loop, _set_done, done))
            await done

    def map(self, func: Callable[[T], M]) -> ActorFuture[M]:
        return _derived(super().map(func), self)

    def filter(self: ActorFuture[Iterable[J]], func: Callable[[J], bool]) -> ActorFuture[Iterable[J]]:
        return _derived(super().filter(func), self)

    def reduce(self: ActorFuture[Iterable[J]], func: Callable[[R, J], R], *args: R) -> ActorFuture[R]:
        return _derived(super().reduce(func, *args), self)

    def join(self, *futures: pykka.Future[Any]) -> ActorFuture[Iterable[Any]]:
        return _derived(super().join(*futures), self, *futures)


def _derived(future: pykka.Future[M], *sources: pykka.Future[Any]) -> ActorFuture[M]:
    derived = cast("ActorFuture[M]", future)
    derived._sources = sources
    return derived


def _when_all_done(sources: Iterable[pykka.Future[Any]], callback: Callable[[], object]) -> None:
    waiting = [source for source in sources if isinstance(source, ActorFuture) and not source.is_done]
    if not waiting:
        callback()
        return
    waiting[0].add_done_callback(lambda _: _when_all_done(waiting, callback))


def _call_on(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits there any more
        loop.call_soon_threadsafe(function, *args)


def _set_done(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
