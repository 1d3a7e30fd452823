"""CallLoopThread: the event loop of one TaskManager's process on which the coroutines of its operators run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from contextvars import Context
from typing import Any, Self

from ...actors.async_calls.event_loop import Begin
from ...state.errors import CallIsOver
from ..system.event_loop import SystemLoop, UnendingLoop
from .begun_tasks import note
from .call_runner import LoopRunner


class CallLoopThread:
    """A CallLoop; its thread starts with the first operator that has coroutines, and ends with the context manager."""

    def __init__(self, began: Callable[[asyncio.AbstractEventLoop], None] = lambda _: None) -> None:
        """`began`: called on the loop's thread when that starts."""
        self._began = began
        self._lock = threading.Lock()
        self._started: SystemLoop | None = None
        self.tasks_made = 0

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
                self._started = UnendingLoop("understudy-coroutines")
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
        self.tasks_made += 1
        return note(asyncio.Task(coroutine, loop=loop, context=context, **options), context)

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


def _tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Of an exception that nobody has awaited. With CallIsOver the operator has failed, or nothing is lost."""
    if not isinstance(context.get("exception"), CallIsOver):
        loop.default_exception_handler(context)
