"""CallLoopThread: the event loop of one TaskManager's process on which the coroutines of its operators run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as NotDone
from contextvars import Context
from functools import partial
from typing import Any, Self

from ...actors.async_calls.event_loop import Begin
from ...state.errors import CallIsOver
from ..system.event_loop import SharedLoop, SystemLoop, UnendingLoop
from .begun_tasks import BegunTimer, note, noted
from .call_runner import LoopRunner


class CallLoopThread:
    """A CallLoop; its thread starts with the first operator that has coroutines, and ends with the context manager."""

    def __init__(self, began: Callable[[asyncio.AbstractEventLoop], None] = lambda _: None) -> None:
        """`began`: called on the loop's thread when that starts."""
        self._began = began
        self._lock = threading.Lock()
        self._started: SystemLoop | None = None
        self.begun_so_far = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            started, self._started = self._started, None
        if started is not None:
            started.stop()

    def __call__(self) -> Self:
        return self

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """It runs, from the first time that it is asked for."""
        with self._lock:
            if self._started is None:
                self._started = UnendingLoop("understudy-coroutines", partial(_NotingLoop, self._began_something))
                self._started.start()
                self._started.loop.set_task_factory(self._make_task)
                self._started.loop.set_exception_handler(_tell)
                self._started.call(self._began, self._started.loop)
            return self._started.loop

    def runner(self, begin: Begin, what: str, wake: Callable[[], None]) -> LoopRunner:
        return LoopRunner(self.loop, self._complete, begin, what, wake)

    def lock(self) -> threading.RLock:
        return threading.RLock()

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, context: Context | None = None, **options: Any
    ) -> asyncio.Task[Any]:
        """`options`: what a later version of Python gives, as 3.13.3 does the name."""
        self._began_something()
        return note(asyncio.Task(coroutine, loop=loop, context=context, **options), context)

    def _began_something(self) -> None:
        self.begun_so_far += 1

    def _complete(self, coroutine: Coroutine[Any, Any, None], within_ms: float) -> bool:
        with self._lock:
            started = self._started
        if started is None:  # the thread has ended, and all that ran on it
            coroutine.close()
            return True
        future: Future[None] = asyncio.run_coroutine_threadsafe(coroutine, started.loop)
        try:
            future.result(within_ms / 1000)
        except NotDone:
            if future.done():  # it is the coroutine that has raised it
                raise
            future.cancel()
            return False
        return True


class _NotingLoop(SharedLoop):
    """Notes what records begin on it beside tasks, of which its task factory hears."""

    def __init__(self, began: Callable[[], None]) -> None:
        """`began`: called for each."""
        super().__init__()
        self._began = began

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = noted(callback, context)
        return self._noted(timer, super().call_at(self.time() + delay, timer or callback, *args, context=context))

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = noted(callback, context)
        return self._noted(timer, super().call_at(when, timer or callback, *args, context=context))

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, function: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        self._began()
        return note(super().run_in_executor(executor, function, *args), None)

    def _noted(self, timer: BegunTimer | None, handle: asyncio.TimerHandle) -> asyncio.TimerHandle:
        if timer is not None:
            timer.set(handle)
            self._began()
        return handle


def _tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Of an exception that nobody has awaited. With CallIsOver the operator has failed, or nothing is lost."""
    if not isinstance(context.get("exception"), CallIsOver):
        loop.default_exception_handler(context)
