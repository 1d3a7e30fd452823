"""CallLoopThread: the event loop of one TaskManager's process on which the coroutines of its operators run."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from contextvars import Context
from typing import Any, Self

from .event_loop import SystemLoop

log = logging.getLogger(__name__)


class CallLoopThread:
    """A CallLoop; its thread starts when the first operator asks for it, and ends with the context manager."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: SystemLoop | None = None
        self._tasks_made = 0

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
        with self._lock:
            if self._started is None:
                self._started = SystemLoop("understudy-coroutines")
                self._started.start()
                self._started.loop.set_task_factory(self._make_task)
            return self._started.loop

    def tasks_made(self) -> int:
        return self._tasks_made

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, context: Context | None = None
    ) -> asyncio.Task[Any]:
        self._tasks_made += 1
        return asyncio.Task(coroutine, loop=loop, context=context)

    def complete(self, coroutine: Coroutine[Any, Any, None], within_ms: float) -> bool:
        future: Future[None] = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            future.result(within_ms / 1000)
        except NotDone:
            if future.done():  # it is the coroutine that has raised it
                raise
            future.cancel()
            return False
        return True
