"""Sent: what `send` of an inlet returns: await it, or call its `result`; then the records last.

A JobFuture follows one answer; there is a Sent per call, tens of thousands a second, and one answer is that of many. So
it has no lock of its own and no callbacks, and those who await are woken together.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Generator, Iterable
from typing import Any, Protocol

from ...actors.timeouts import timeout_seconds
from ...messages.counted import counted
from ..system.future import ActorFuture
from .async_twin import warn_of_event_loop
from .unawaited import Unawaited

Promise = Callable[[], ActorFuture[None]]


class Way(Protocol):
    """Where records are sent to; its repr is shown by errors."""

    @property
    def trouble(self) -> str:
        """Why nothing gets through at the moment; empty if that is not known."""
        ...


log = logging.getLogger("understudy.inlet")

_lock = threading.Lock()
"""Of all: held for a moment by who begins to wait, and by who wakes."""


class Sent(Unawaited):
    """`number`: that of the last of its records, or 0 as long as it has none; also the result.

    One that fails, and whose result nobody has awaited or asked for, is logged: once for each error, as one fails many.
    """

    __slots__ = ("_error", "_is_asked", "_is_done", "_promise", "_timeout", "_waiters", "_what", "number")

    def __init__(self, what: Way | None, timeout: float | None, promise: Promise | None) -> None:
        """`what`: where it goes; None: nobody waits for it. `promise`: makes what one waits for where time goes on only
        then; None: loops and threads wait.
        """
        self.number = 0
        self._error: BaseException | None = None
        self._what = what
        self._timeout = None if timeout is None else timeout_seconds(timeout)
        self._promise = promise
        self._is_done = self._is_asked = False
        self._waiters: list[Any] | None = None

    def __repr__(self) -> str:
        """For who has printed it, or returned it, in place of its value."""
        which = f"record {self.number}" if self.number else "a record"
        state = "pending" if not self._is_done else "done" if self._error is None else "failed"
        to = "" if self._what is None else f" of {self._what}"
        return f"<Sent: {which}{to}: {state}; await it, or call its result()>"

    def done(self) -> bool:
        """Whether its records last, or never will by this call: `result` says which."""
        return self._is_done

    def result(self, timeout: float | None = None) -> int:
        """Wait until its records last. Raises InletClosed, NumberGap; TimeoutError after `timeout` seconds, or those
        that `send` was given: the records are under way still, and it can be asked again.
        """
        self._is_asked = True
        if not self._is_done:
            if timeout != 0:
                warn_of_event_loop(f"result() of a record for {self._what}", "`await inlet.send(record)`")
            seconds = self._timeout if timeout is None else timeout_seconds(timeout)
            waiter = self._promised()
            if waiter is not None and not waiter.wait(seconds):
                raise self._overdue(seconds)
        return self._outcome()

    def __await__(self) -> Generator[Any, None, int]:
        self._is_asked = True
        if not self._is_done:
            if self._timeout is None and self._promise is None:
                loop = asyncio.get_running_loop()
                future: asyncio.Future[None] = loop.create_future()
                if self._enter((loop, future)):
                    yield from future
            else:
                yield from self._wait().__await__()
        return self._outcome()

    def __del__(self) -> None:
        error: BaseException | None = getattr(self, "_error", None)  # Ctrl-C may have come before it was made
        if error is None or self._is_asked or self._what is None or getattr(error, "is_logged", False):
            return
        error.is_logged = True  # type: ignore[attr-defined]
        log.warning(
            "%r: records may be lost, and no code has asked for the outcome of what send() returned: %s: %s; write "
            "`await inlet.send(record)`, or inlet.send(record).result() on a thread",
            self._what,
            type(error).__name__,
            error,
        )

    async def _wait(self) -> None:
        """It takes longer than the short way."""
        try:
            async with asyncio.timeout(self._timeout):
                waiter: ActorFuture[None] = ActorFuture() if self._promise is None else self._promise()
                if self._enter(waiter):
                    await waiter.until_done()
        except TimeoutError as error:
            raise self._overdue(self._timeout) from error

    def _promised(self) -> ActorFuture[None] | None:
        waiter: ActorFuture[None] = ActorFuture() if self._promise is None else self._promise()
        return waiter if self._enter(waiter) else None

    def _enter(self, waiter: Any) -> bool:
        """Whether there is something to wait for."""
        with _lock:
            if self._is_done:
                return False
            if self._waiters is None:
                self._waiters = [waiter]
            else:
                self._waiters.append(waiter)
        return True

    def _overdue(self, seconds: float | None) -> TimeoutError:
        which = f"record {self.number}" if self.number else "the record"
        why = f" ({self._what.trouble})" if self._what is not None and self._what.trouble else ""
        again = f"send it again with number={self.number}, or " if self.number else ""
        return TimeoutError(
            f"{which} of {self._what} is not acknowledged after {counted(seconds or 0, 'second')}{why}; it is still "
            f"under way: {again}wait for what send() returned"
        )

    def _outcome(self) -> int:
        if self._error is not None:
            raise self._error
        return self.number


def settle(sent: Iterable[Sent], error: BaseException | None = None) -> None:
    """They are done, or have failed so."""
    waiters: list[Any] = []
    with _lock:
        for each in sent:
            each._error, each._is_done = error, True  # in this order: others look at it without the lock
            if each._waiters is not None:
                waiters += each._waiters
                each._waiters = None
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for waiter in waiters:
        if type(waiter) is tuple:
            by_loop.setdefault(waiter[0], []).append(waiter[1])
        else:
            waiter.try_set(None)
    for loop, futures in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            loop.call_soon_threadsafe(_wake, futures)


def _wake(futures: Iterable[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
