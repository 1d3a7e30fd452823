"""Outbox: what a TaskManager's process has logged and printed and has not sent yet.

Any thread fills it; the TaskManager's actor empties it, so that whatever a task wrote before it reported its end
arrives before that report. runtime/output supplies the real one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Outbox(Protocol):
    """One process's."""

    def when_filled(self, call: Callable[[], None]) -> None:
        """Call, on any thread, when there is something and there was nothing; at once if there is now."""
        ...

    def take(self, *, final: bool = False) -> Sequence[Any]:
        """Messages for the JobManager: the oldest first, not more than the connection stands. With `final` all that is
        to be sent now.
        """
        ...

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left; if not, it is to be asked again a moment later, and will not call."""
        ...


class NoOutbox:
    """Of a process whose logs and prints are the user's own anyway."""

    is_empty = True

    def when_filled(self, call: Callable[[], None]) -> None: ...

    def take(self, *, final: bool = False) -> Sequence[Any]:
        return ()
