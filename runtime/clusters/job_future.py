"""JobFuture: what an order to a job or cluster will have come to. `concurrent.futures.Future`, and awaitable.

    path = job.trigger_savepoint().result(timeout=60)      path = await job.trigger_savepoint()

It follows an ActorFuture, and is done when that is. To wait for it is to wait for that one, so that on a simulated
cluster time goes on meanwhile. It cannot be cancelled: the order is on its way.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from ..system.errors import FutureTimeout
from ..system.future import ActorFuture

T = TypeVar("T")


def _as_it_is(value: Any) -> Any:
    return value


class JobFuture(concurrent.futures.Future[T]):
    """`what` it is the future of, for the text of a timeout; `read` makes its value of the answer, or raises;
    `failed` makes its error of the answer's.
    """

    def __init__(
        self,
        source: ActorFuture[Any],
        what: str,
        read: Callable[[Any], T] = _as_it_is,
        failed: Callable[[BaseException], BaseException] = _as_it_is,
    ) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        self._source = source
        self._what = what
        self._read = read
        self._failed = failed
        source.add_done_callback(self._follow)

    def result(self, timeout: float | None = None) -> T:
        """The value, or the error it failed with, raised. Raises TimeoutError after `timeout` seconds; the future is
        still open then, and can be asked again.
        """
        self._settle(timeout)
        return super().result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error it failed with, or None. Raises TimeoutError after `timeout` seconds."""
        self._settle(timeout)
        return super().exception()

    def __await__(self) -> Generator[Any, None, T]:
        return self._wait().__await__()

    async def _wait(self) -> T:
        if not self.done():
            await self._source.until_done()
        return super().result()

    def _settle(self, timeout: float | None) -> None:
        """Wait until the source is done; then this one is, or is about to be."""
        if not self.done() and not self._source.wait(timeout):
            raise FutureTimeout(f"{self._what} is not done after {timeout} seconds")

    def _follow(self, source: ActorFuture[Any]) -> None:
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
