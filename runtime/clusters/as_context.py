"""AsContext: what is started by `with` or `async with`, and closed at the end of the block."""

from __future__ import annotations

import asyncio
import sys
from abc import abstractmethod
from contextvars import ContextVar
from types import TracebackType
from typing import Self

from .async_twin import Blocking, async_twin, warn_of_event_loop
from .not_called import NotCalled

_closing_error: ContextVar[type[BaseException] | None] = ContextVar("closing_error", default=None)


class AsContext(Blocking, metaclass=NotCalled):
    """Base of clusters."""

    @abstractmethod
    def start(self) -> Self: ...

    start_async = async_twin(start)

    @abstractmethod
    def close(self) -> None: ...

    close_async = async_twin(close)

    def __enter__(self) -> Self:
        warn_of_event_loop("a cluster's `with`, at its start and its end,", "`async with`")
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        starting = asyncio.ensure_future(self.start_async())
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._given_up(starting)))
            raise

    async def _given_up(self, starting: asyncio.Future[Self]) -> None:
        """Nobody will leave what is being entered: close it once it has started."""
        await self.close_async()  # what waits, as for leadership, gives up
        await asyncio.wait([starting])
        if starting.cancelled() or starting.exception() is not None:
            return
        await self.close_async()

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        token = _closing_error.set(kind)
        try:
            await self.close_async()
        finally:
            _closing_error.reset(token)


def closing_error() -> type[BaseException] | None:
    """What closes the cluster: Ctrl-C, say, or a mistake behind `submit`. For whom `close` calls, also on the thread on
    which `async with` closes.
    """
    return sys.exc_info()[0] or _closing_error.get()
