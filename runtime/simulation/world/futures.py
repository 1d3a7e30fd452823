"""WorldFuture: an answer from a simulated cluster. To wait for it is to let the world go on until it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ....actors.timeouts import timeout_seconds
from ....messages.counted import counted
from ...system.errors import FutureTimeout
from ...system.future import ActorFuture

T = TypeVar("T")
Run = Callable[[Callable[[], bool], float | None], bool]
"""Lets the world go on until the condition holds, at most this number of virtual seconds; tells whether it held."""


class WorldFuture(ActorFuture[T]):
    """`get(timeout)` counts virtual seconds. Awaited on an event loop it keeps that loop waiting too; with `slice_s`
    for that many seconds at a time, so that timeouts and cancellation come through.
    """

    def __init__(self, run: Run | None = None, slice_s: float | None = None) -> None:
        """Without `run` it is what Pykka derives from another one, by `map` and the like, and waits for that."""
        super().__init__()
        self._run = run
        self._slice_s = slice_s

    def get(self, *, timeout: float | None = None) -> Any:
        if self._run is None:
            return super().get(timeout=timeout)
        seconds = timeout_seconds(timeout)
        if not self.is_done and not self._run(lambda: self.is_done, seconds):
            raise FutureTimeout(f"not done after {counted(timeout or 0, 'second')}")
        return super().get(timeout=0)

    def wait(self, timeout: float | None = None) -> bool:
        if self._run is None:
            return super().wait(timeout)
        seconds = timeout_seconds(timeout)
        return self.is_done or self._run(lambda: self.is_done, seconds)

    async def until_done(self) -> None:
        if self._run is None:  # `get` waits for what it is derived from
            return
        while self._slice_s is not None and not self.is_done:
            self._run(lambda: self.is_done, self._slice_s)
            await asyncio.sleep(0)
        self.wait()

    async def _wait(self) -> T:
        await self.until_done()
        return cast(T, self.get())


def follow(source: ActorFuture[T], run: Run, slice_s: float | None = None) -> WorldFuture[T]:
    """A future with the source's outcome."""
    future: WorldFuture[T] = WorldFuture(run, slice_s)

    def take(done: ActorFuture[T]) -> None:
        try:
            future.try_set(done.get())
        except Exception as error:  # noqa: BLE001  (whatever the source failed with)
            future.try_fail(error)

    source.add_done_callback(take)
    return future
