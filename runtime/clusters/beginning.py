"""Beginning: the start of something, for which whoever closes it from another thread waits: what is closed half-way
would leave behind what comes after.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Beginning:
    """Of one cluster. The thread that starts it may close it in the middle, as when the start fails."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._thread: int | None = None

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """It is being started as long as the context lasts."""
        with self._lock:
            before, self._thread = self._thread, threading.get_ident()
            try:
                yield
            finally:
                self._thread = before

    @contextmanager
    def over(self, give_up: Callable[[], object]) -> Iterator[None]:
        """Wait for the end of a start of another thread, which is to `give_up` where it waits itself. None begins as
        long as the context lasts.
        """
        if self._thread not in (None, threading.get_ident()):
            give_up()
        with self._lock:
            yield
