"""JobFuture: what an order to a job or cluster will have come to. `concurrent.futures.Future`, and awaitable.

    path = job.trigger_savepoint().result(timeout=60)      path = await job.trigger_savepoint()

It follows an ActorFuture, and is done when that is. To wait for it is to wait for that one, so that on a simulated
cluster time goes on meanwhile. It cannot be cancelled: the order is on its way.

The callbacks of a future that is done later run on the thread that has the answer, the JobManager's: whatever one
raises is logged, and one that would wait there for another JobFuture is refused, as the JobManager would stand still.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from ...actors.timeouts import timeout_seconds
from ...messages.counted import counted
from ..system.errors import FutureTimeout
from ..system.future import ActorFuture
from .async_twin import warn_of_event_loop
from .unawaited import Unawaited

T = TypeVar("T")
log = logging.getLogger(__name__)
_here = threading.local()
"""`answers`: whether this thread, which brings an answer, calls callbacks just now."""


def _as_it_is(value: Any) -> Any:
    return value


class JobFuture(Unawaited, concurrent.futures.Future[T]):
    """`what` it is the future of, for the text of a timeout; `read` makes its value of the answer, or raises;
    `failed` makes its error of the answer's.
    """

    def __init__(
        self,
        source: ActorFuture[Any],
        what: str,
        read: Callable[[Any], T] = _as_it_is,
        failed: Callable[[BaseException], BaseException] = _as_it_is,
        overdue: Callable[[], str] = str,
    ) -> None:
        """`overdue`: what is wrong, as far as it is known, for the text of a TimeoutError."""
        super().__init__()
        self.set_running_or_notify_cancel()
        self._source = source
        self._what = what
        self._read = read
        self._failed = failed
        self._overdue = overdue
        source.add_done_callback(self._follow)

    def __repr__(self) -> str:
        """For who has printed it in place of its value."""
        if not self.done():
            state = "pending"
        else:
            error = super().exception(0)
            state = "done" if error is None else f"failed with {type(error).__name__}"
        return f"<JobFuture of {self._what}: {state}; await it, or call its result()>"

    def result(self, timeout: float | None = None) -> T:
        """The value, or the error it failed with, raised. Raises TimeoutError after `timeout` seconds; the future is
        still open then, and can be asked again. On an event loop await it: this blocks the loop, and warns.
        """
        if not self.done() and timeout != 0:
            warn_of_event_loop(f"result() of {self._what}", "`await future` in place of `future.result()`")
        self._settle(timeout)
        return super().result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error it failed with, or None. Raises TimeoutError after `timeout` seconds."""
        if not self.done() and timeout != 0:
            warn_of_event_loop(f"exception() of {self._what}", "`await future`, within try and except")
        self._settle(timeout)
        return super().exception()

    def add_done_callback(self, fn: Callable[[concurrent.futures.Future[T]], object]) -> None:
        """Call `fn(future)` once it is done, at once if it is. It must not block: see the module.

        Raises TypeError for `asyncio.wait`, which takes futures of its own event loop alone.
        """
        if getattr(fn, "__module__", None) == "asyncio.tasks":
            raise TypeError(
                f"asyncio.wait takes tasks, found the future of {self._what}: write "
                "asyncio.wait([asyncio.ensure_future(future), ...]), or asyncio.gather(future, ...)"
            )

        def guarded(future: concurrent.futures.Future[T]) -> None:
            if not getattr(_here, "answers", False):
                fn(future)
                return
            try:
                fn(future)
            except BaseException:  # supervision boundary: this thread is the JobManager's
                log.exception("a done callback of %s failed", self._what)

        super().add_done_callback(guarded)

    def __await__(self) -> Generator[Any, None, T]:
        return self._wait().__await__()

    async def _wait(self) -> T:
        if not self.done():
            await self._source.until_done()
        return super().result()

    def _settle(self, timeout: float | None) -> None:
        """Wait until the source is done; then this one is, or is about to be."""
        seconds = timeout_seconds(timeout)
        if not self.done() and getattr(_here, "answers", False):
            raise RuntimeError(
                f"a done callback waits for {self._what}, on the thread that brings it: use job.on_event, or a thread"
            )
        if not self.done() and not self._source.wait(seconds):
            raise FutureTimeout(f"{self._what} is not done after {counted(timeout or 0, 'second')}{self._overdue()}")

    def _follow(self, source: ActorFuture[Any]) -> None:
        before, _here.answers = getattr(_here, "answers", False), True
        try:
            self._take(source)
        finally:
            _here.answers = before

    def _take(self, source: ActorFuture[Any]) -> None:
        try:
            answer = source.get()
        except BaseException as error:  # noqa: BLE001  (whatever the source failed with)
            failure = self._failed(error)
            if failure is not error:
                failure.__cause__ = error
            self.set_exception(failure)
            return
        try:
            value = self._read(answer)
        except Exception as error:  # noqa: BLE001  (an answer that says no)
            self.set_exception(error)
        else:
            self.set_result(value)
