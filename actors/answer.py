"""Answer: what `ask` returns. Pykka's future, with the methods of `concurrent.futures.Future`, and awaitable.

A handler may return one. `map`, `join` and the like are Pykka's. `runtime/` supplies the class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pykka

from .timeouts import timeout_seconds

T = TypeVar("T")


class Answer(pykka.Future[T]):
    """Waiting for it never changes it: after a TimeoutError it can be asked again."""

    def result(self, timeout: float | None = None) -> T:
        """The value, or the error it failed with, raised. Raises TimeoutError after `timeout` seconds."""
        return self.get(timeout=timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error it failed with, or None. Raises TimeoutError after `timeout` seconds."""
        timeout = timeout_seconds(timeout)
        try:
            self.get(timeout=timeout)
        except BaseException as error:
            if not self.done():  # the wait has failed, and not what was waited for
                raise
            return error
        return None

    def done(self) -> bool:
        """Whether `result` returns or raises at once."""
        raise NotImplementedError

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call `callback(self)` once it is done: at once if it is, else on the thread that sets it."""
        raise NotImplementedError
