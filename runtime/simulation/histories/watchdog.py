"""Watchdog: ends this process when one history takes far too long in real time, and says which one it was.

Virtual time ends every history that waits too long; but code that never gives the world a turn hangs for ever. Nothing
can be unwound then, so the process ends at once, with the stacks of its threads on stderr.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

HUNG = 3
"""The exit code."""

LIMIT_S = 60.0


class Watchdog:
    """A thread that looks on. Use it as a context manager, and `watching` around each history."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s
        self._watched: tuple[str, float] | None = None
        """What runs, and until when it may."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @contextmanager
    def watching(self, what: str) -> Iterator[None]:
        """This has to end in time."""
        self._watched = (what, time.monotonic() + self._limit_s)
        try:
            yield
        finally:
            self._watched = None

    def _watch(self) -> None:
        while not self._ended.wait(min(1.0, self._limit_s / 4)):
            watched = self._watched
            if watched is not None and time.monotonic() > watched[1]:
                self._end(watched[0])

    def _end(self, what: str) -> None:
        print(f"{what} has not ended after {self._limit_s:g} s of real time; this is where it is:", file=sys.stderr)
        sys.stderr.flush()
        faulthandler.dump_traceback(sys.__stderr__ or 2, all_threads=True)
        os._exit(HUNG)
