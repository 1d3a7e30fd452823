"""BlockedLooks: finds a thread at one line again and again, in a system call that waits.

So it tells calls that block, as `time.sleep`, from a line that has much to do, and from one that waits for Python's own
lock. Each look is one small read of /proc; where there is none, as outside of Linux, nothing is found.
"""

from __future__ import annotations

import platform
from collections import deque
from collections.abc import Hashable
from typing import Final

LOOKS: Final = 40
MOST: Final = LOOKS // 2
"""This many of them at one line are too many."""

_FUTEX = {"x86_64": "202", "aarch64": "98"}.get(platform.machine(), "")
"""Waits for a lock: Python's, nearly always."""


def waits_in_a_system_call(native_id: int) -> bool:
    """Whether this thread of this process does, and not for a lock."""
    if not _FUTEX:
        return False
    try:
        with open(f"/proc/self/task/{native_id}/syscall", encoding="ascii") as file:
            number, *arguments = file.read().split()
    except (OSError, ValueError):
        return False
    return bool(arguments) and number not in (_FUTEX, "-1")


class BlockedLooks:
    """Of one thread."""

    def __init__(self) -> None:
        self._last: deque[Hashable] = deque(maxlen=LOOKS)
        self._told: set[Hashable] = set()

    def noted(self, place: Hashable) -> bool:
        """Whether it is time to say that it blocks here, which is once for each place. None: it did not block."""
        self._last.append(place)
        if place is None or place in self._told or self._last.count(place) < MOST:
            return False
        self._told.add(place)
        return True
