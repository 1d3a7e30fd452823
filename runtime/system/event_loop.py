"""SystemLoop: the asyncio loop of one actor system, on a daemon thread of its own or lent by the caller.

Everything that must happen on the loop (sockets, asyncio actors, timers) goes through `call` and `call_later`, which
any thread may use.

What runs on a loop of our own belongs to no caller: it has an empty context, and not that of whoever called
first. A notebook finds by the context which cell a line belongs to, and so shows those of a JobManager where its user
is, not where the cluster was started.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import Context, copy_context
from typing import Any, TypeVar
from weakref import WeakSet

from .home import Home

T = TypeVar("T")
logger = logging.getLogger(__name__)
_LOOPS: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
"""Those that actor systems run on."""


def check_wait() -> None:
    """Raises RuntimeError on the loop of an actor system: whoever blocks it stops all that happens on it."""
    if asyncio._get_running_loop() in _LOOPS:
        raise RuntimeError(
            "this blocks the event loop of an actor system, whose actors all stand still meanwhile, maybe those that "
            "are to answer: write `await ref.ask(...)` in an `async def`; or, for a handler that blocks, "
            'spawn(..., dispatcher="thread")'
        )


class ScheduledCall:
    """A call that is due later. Once `cancel` has returned on the loop's thread, it will not happen."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function: Callable[[], object] | None = function
        self._handle: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        """From any thread; the loop forgets the dead timer when it comes due."""
        self._function = None

    def arm(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        if self._function is not None:
            self._handle = loop.call_at(deadline, self._fire)

    def release(self) -> None:
        """On the loop's thread: cancel, and give the timer back at once."""
        self._function = None
        if self._handle is not None:
            self._handle.cancel()

    def _fire(self) -> None:
        function, self._function = self._function, None
        if function is not None:
            function()


class SystemLoop:
    """Starts, feeds and ends the loop. With a lent loop, it starts and ends nothing."""

    def __init__(self, name: str, lent: asyncio.AbstractEventLoop | None = None) -> None:
        self._name = name
        self._lent = lent
        self._loop: asyncio.AbstractEventLoop | None = lent
        self._thread: threading.Thread | None = None
        if lent is not None:
            _LOOPS.add(lent)
        self.home: Home | None = None
        """Where the system has been started."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether this process is a fork of the one with the loop."""
        return self.home is not None and self.home.is_elsewhere

    @property
    def is_lent(self) -> bool:
        return self._lent is not None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "the system has not been started"
        return self._loop

    @property
    def is_here(self) -> bool:
        """Whether the caller runs on this loop."""
        return asyncio._get_running_loop() is self._loop is not None

    def start(self) -> None:
        """Start the loop's thread, unless the loop is lent."""
        if self._lent is not None:
            return
        self._loop = self._made_loop()
        _LOOPS.add(self._loop)
        self._thread = threading.Thread(target=self._run, name=f"{self._name}-loop", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the loop's thread, from another thread; tasks still running on it are cancelled first."""
        if self._thread is not None:
            self.call(self.loop.stop)
            self._thread.join()
            self._thread = None

    def call(self, function: Callable[..., object], *args: Any) -> bool:
        """Run `function(*args)` on the loop, soon, in the order of the calls. False when the loop is closed, or is
        that of the process which this one was forked from.
        """
        loop = self.loop
        if self.is_elsewhere:
            return False
        try:
            if asyncio._get_running_loop() is loop:
                loop.call_soon(function, *args)
            else:
                loop.call_soon_threadsafe(function, *args, context=self._context())
        except RuntimeError:
            return False
        return True

    def call_later(self, delay_ms: float, function: Callable[[], object]) -> ScheduledCall:
        """Run `function` on the loop after `delay_ms`."""
        scheduled = ScheduledCall(function)
        deadline = self.loop.time() + delay_ms / 1000
        if self.is_here:
            scheduled.arm(self.loop, deadline)
        else:
            self.call(scheduled.arm, self.loop, deadline)
        return scheduled

    def cancel(self, scheduled: ScheduledCall) -> None:
        """Cancel it now, from any thread, and let the loop give it back."""
        scheduled.cancel()
        if self.is_here:
            scheduled.release()
        else:
            self.call(scheduled.release)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for it, from another thread."""
        return self._begun(coroutine).result()

    async def run_here(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine of this loop from any loop."""
        if self.is_here:
            return await coroutine
        return await asyncio.wrap_future(self._begun(coroutine))

    def _begun(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        return self._context().run(asyncio.run_coroutine_threadsafe, coroutine, self.loop)

    def _context(self) -> Context:
        """In which a call of another thread runs."""
        return copy_context() if self.is_lent else Context()

    def _made_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.new_event_loop()

    def _run_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.run_forever()

    def _run(self) -> None:
        loop = self.loop
        asyncio.set_event_loop(loop)
        try:
            self._run_loop(loop)
        finally:
            _cancel_all_tasks(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            asyncio.set_event_loop(None)
            loop.close()


class UnendingLoop(SystemLoop):
    """One on which users' tasks run: a task that exits, as by sys.exit(), ends itself and whoever awaits it, and not
    the loop, as asyncio has it; and none of them may stop it.
    """

    def __init__(self, name: str, kind: Callable[[], SharedLoop]) -> None:
        super().__init__(name)
        self._kind = kind

    def stop(self) -> None:
        if self._thread is not None:
            assert isinstance(self.loop, SharedLoop)
            self.loop.may_stop = True
        super().stop()

    def _context(self) -> Context:
        """That of the caller, who knows which of a user's calls this is."""
        return copy_context()

    def _made_loop(self) -> asyncio.AbstractEventLoop:
        return self._kind()

    def _run_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                logger.warning("a task of coroutines raised %r: whoever awaits it gets that, and others go on", error)
            else:
                return


class SharedLoop(asyncio.SelectorEventLoop):
    """One that no task of a user's may stop."""

    may_stop = False

    def stop(self) -> None:
        if not self.may_stop:
            raise RuntimeError(
                "loop.stop() was called on the event loop that all coroutines of this TaskManager share: it would end "
                "those of other operators and jobs too; return to end a coroutine, raise to end the attempt"
            )
        super().stop()


def _cancel_all_tasks(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=1))
