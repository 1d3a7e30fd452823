"""ProcessLoop: one simulated process's asyncio loop. All of a world's loops share its events and its virtual time.

Tasks, futures, `asyncio.timeout` and timers work as on any loop. There are no sockets, threads or executors: what
would block, or come from outside, has a simulated counterpart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .world import Process, World


class Event:
    """Something that will happen. It is also what asyncio knows as a handle."""

    __slots__ = ("args", "context", "function", "is_cancelled", "process", "when_ms")

    def __init__(
        self,
        process: Process | None,
        function: Callable[..., object],
        args: tuple[Any, ...],
        when_ms: float,
        context: Context | None = None,
    ) -> None:
        self.process = process
        self.function = function
        self.args = args
        self.when_ms = when_ms
        self.context = context
        self.is_cancelled = False

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"{name} of {self.process.name if self.process else 'the world'}"

    def run(self) -> None:
        if self.context is None:
            self.function(*self.args)
        else:
            self.context.run(self.function, *self.args)

    # ---- as asyncio.TimerHandle

    def cancel(self) -> None:
        self.is_cancelled = True
        self.function, self.args = _nothing, ()

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.when_ms / 1000


def _nothing() -> None:
    """What a cancelled event does."""


class ProcessLoop(asyncio.AbstractEventLoop):
    """What is asked for here happens on behalf of one process, or not at all when that has died."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world: World = process.world

    def time(self) -> float:
        return self._world.now_ms / 1000

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Event:  # type: ignore[override]
        event = Event(self._process, callback, args, self._world.now_ms, context)
        self._world.soon(event)
        return event

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Event:
        event = Event(self._process, callback, args, when * 1000, context)
        self._world.schedule(event)
        return event

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Event:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Nobody retrieved a task's failure, which in a process that was killed means nothing."""
        if self._process.is_alive:
            self._world.trace.add(self._process.name, "unhandled", context.get("message"), context.get("exception"))
