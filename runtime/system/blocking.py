"""BlockingPool: a bounded pool of threads for code that blocks; its outcomes are ActorFutures."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ...actors.ask_errors import ActorDead
from .future import ActorFuture

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Blocking(Protocol):
    """Where blocking code runs; the simulator has another place for it."""

    def submit(self, function: Callable[..., T], *args: Any) -> ActorFuture[T]: ...

    async def close(self, timeout_ms: float) -> None: ...


class BlockingPool:
    """Threads are made when first needed, and end with the system."""

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._executor = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._running: set[concurrent.futures.Future[Any]] = set()
        self._lock = threading.Lock()
        self._is_closed = False

    def submit(self, function: Callable[..., T], *args: Any) -> ActorFuture[T]:
        """The outcome of `function(*args)`; ActorDead when the pool is closed before it runs, and RuntimeError when the
        machine lets it have no thread. It does not run later then.
        """
        outcome: ActorFuture[T] = ActorFuture()
        try:
            work = self._executor.submit(_run, outcome, function, args)
        except RuntimeError as error:
            outcome.try_fail(ActorDead(self._name, "its system is shut down") if self._is_closed else error)
            return outcome
        with self._lock:
            self._running.add(work)
        work.add_done_callback(lambda done: self._done(done, outcome))
        return outcome

    async def close(self, timeout_ms: float) -> None:
        """Drop what has not begun, and wait for the rest; code that does not end in time is left to itself."""
        self._is_closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            running = [asyncio.wrap_future(work) for work in self._running]
        if running:
            _, stuck = await asyncio.wait(running, timeout=timeout_ms / 1000)
            if stuck:
                logger.warning(
                    "%s: %d calls on its threads have not ended after %.1f s, and are left to themselves",
                    *(self._name, len(stuck), timeout_ms / 1000),
                )
                return
        self._executor.shutdown(wait=True)

    def _done(self, work: concurrent.futures.Future[Any], outcome: ActorFuture[Any]) -> None:
        with self._lock:
            self._running.discard(work)
        if work.cancelled():
            outcome.try_fail(ActorDead(self._name, "its system was shut down before it ran"))


def _run(outcome: ActorFuture[T], function: Callable[..., T], args: tuple[Any, ...]) -> None:
    if outcome.is_done:  # the executor has queued it, and then got no thread for it
        return
    try:
        outcome.try_set(function(*args))
    except BaseException as error:  # noqa: BLE001  (the outcome of user code, whatever it is)
        outcome.try_fail(error)
