"""AwaitedCall: what an async twin returns. Who forgets to await it reads that, and what to write."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar

from .unawaited import Unawaited

T = TypeVar("T")


class AwaitedCall(Coroutine[Any, Any, T], Unawaited):
    """The coroutine of one call, which is made when it is awaited, or a task of it begins. `call`: its name, as in
    `LocalCluster.submit_async`.
    """

    __slots__ = ("__name__", "__qualname__", "_begin", "_coroutine")

    def __init__(self, call: str, begin: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.__qualname__ = call
        self.__name__ = call.rpartition(".")[2]
        self._begin = begin
        self._coroutine: Coroutine[Any, Any, T] | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        return self._begun().__await__()

    def send(self, value: Any, /) -> Any:
        return self._begun().send(value)

    def throw(self, kind: Any, value: BaseException | object = None, traceback: TracebackType | None = None, /) -> Any:
        if value is None and traceback is None:
            return self._begun().throw(kind)
        return self._begun().throw(kind, value, traceback)

    def close(self) -> None:
        self._begun().close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("cr_"):  # what asyncio shows of a coroutine
            return getattr(self._coroutine, name)
        raise AttributeError(f"no .{name} here: found {self!r}")

    def __repr__(self) -> str:
        return f"<{self.__qualname__}(...), which was not awaited: write `await ...{self.__name__}(...)`>"

    def __del__(self) -> None:
        if self._coroutine is None:
            instead = f"write `await ...{self.__name__}(...)`"
            text = f"{self.__qualname__}(...) was never awaited, so nothing was done: {instead}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def _begun(self) -> Coroutine[Any, Any, T]:
        if self._coroutine is None:
            self._coroutine = self._begin()
        return self._coroutine
