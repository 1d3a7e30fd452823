"""Upkeep: what keeps a table quick to read, done after a number of commits, on a thread beside the job, as it must not
hold up checkpoints. Never two at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Upkeep:
    """`commits`: how many there are between two; None: none is done. `work` catches what it raises."""

    def __init__(self, name: str, commits: int | None, work: Callable[[], None]) -> None:
        self._name, self._commits, self._work = name, commits, work
        self._since = 0
        self._thread: threading.Thread | None = None

    def committed(self) -> None:
        """One more commit is done."""
        self._since += 1
        if self._commits is None or self._since < self._commits:
            return
        if self._thread is None or not self._thread.is_alive():
            self._since = 0
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        """Wait for what is under way."""
        if self._thread is not None:
            self._thread.join(timeout)


def check_commits_per_compaction(value: int | None) -> None:
    """Raises ValueError for a number that makes no sense."""
    if value is not None and value < 1:
        raise ValueError(f"commits_per_compaction: wanted a number of commits, at least 1, found {value!r}")
