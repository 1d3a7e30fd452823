"""Background: a thread of a source's own that does one thing at a time, while the task goes on.

The source gives it something to do, and takes the result in a later `poll`; the thread wakes the task when there is
one. The things to do are not at home here.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_JOIN_S = 5.0


class Closed(Exception):
    """Raised on the thread: the attempt has ended, and nobody wants the result."""


class Background(Generic[T]):
    """`wake` is called from the thread; `finish` on it, last."""

    def __init__(self, name: str, wake: Callable[[], None], finish: Callable[[], Any]) -> None:
        self.is_busy = False
        """Something was begun whose result was not taken."""
        self._wake, self._finish = wake, finish
        self._begun: queue.SimpleQueue[Callable[[], T] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def begin(self, act: Callable[[], T]) -> None:
        assert not self.is_busy, "one thing at a time"
        self.is_busy = True
        self._begun.put(act)

    def take(self) -> T | None:
        """The result of what was begun; None as long as there is none. Raises what it raised."""
        if self._done.empty():
            return None
        result, error = self._done.get()
        self.is_busy = False
        if error is not None:
            raise error
        return result

    def pause(self, seconds: float) -> None:
        """On the thread: wait. Raises Closed when the attempt has ended."""
        if self._is_closed.wait(seconds):
            raise Closed

    def close(self) -> None:
        self._is_closed.set()
        self._begun.put(None)
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        try:
            while (act := self._begun.get()) is not None and not self._is_closed.is_set():
                try:
                    self._done.put((act(), None))
                except Closed:
                    break
                except BaseException as error:  # noqa: BLE001  (raised again on the task's thread)
                    self._done.put((None, error))
                self._wake()
        finally:
            self._finish()
