"""AsContext: what is started by `with` or `async with`, and closed at the end of the block."""

from __future__ import annotations

from abc import abstractmethod
from types import TracebackType
from typing import Self

from .async_twin import Blocking, async_twin
from .not_called import NotCalled


class AsContext(Blocking, metaclass=NotCalled):
    """Base of clusters."""

    @abstractmethod
    def start(self) -> Self: ...

    start_async = async_twin(start)

    @abstractmethod
    def close(self) -> None: ...

    close_async = async_twin(close)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await self.start_async()

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        await self.close_async()
