"""OwnThread: keyed state of a plain operator belongs to the thread of its task, as its current key does.

A thread of the user's own, as one that goes through `self.keys()` every second, would take the key away from the record
that is being processed, or write under it. A look at each access would cost too much; so a thread is noticed in a loop
over `keys()`, and where it finds no key.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable
from typing import NoReturn

from ..errors import CallIsOver


class OwnThread:
    """The thread that made it. `misused` notes what another one has tried: the task is to fail with it."""

    __slots__ = ("_ident", "_misused")

    def __init__(self, misused: Callable[[CallIsOver], None]) -> None:
        self._ident = get_ident()
        self._misused = misused

    def check(self, used: str, operator: str) -> None:
        """Raises CallIsOver on any other thread."""
        if get_ident() != self._ident:
            self._refuse(used, operator)

    def _refuse(self, used: str, operator: str) -> NoReturn:
        error = CallIsOver(used, operator, in_thread=True)
        self._misused(error)
        raise error
