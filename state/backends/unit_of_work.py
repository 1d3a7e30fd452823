"""UnitOfWork: what one call of an operator does to keyed state, until it is committed or rolled back.

A coroutine waits in the middle of its work, and others run meanwhile. So the key, and what was there before its
changes, belong to the unit and not to the backend: whoever reads or writes finds its unit in CURRENT, which asyncio
keeps apart for each of its tasks.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

_MOST_BEGUN: Final = 32


class UnitOfWork:
    """One call's. Its key is fixed, and at any time there is one unit at most that runs for it."""

    before: dict[tuple[Any, Any], Any] | None = None
    """By accessor and namespace, what was there before it wrote; None: it has written nothing."""
    namespaces: dict[Any, Any] | None = None
    """By accessor, where it is not the default one."""
    timers: dict[tuple[Any, Any], bool] | None = None
    """By queue and timer, whether it was added (True) or removed; in force when the unit is committed."""
    lent: list[tuple[tuple[Any, Any], Any, Any]] | None = None
    """Accessor and namespace, the copy that it was given of a value, and the value: a change of it would be lost."""
    begun: list[Any] | None = None
    """The tasks that its code has begun: `is_done` says whether one is over, `line` where it was begun."""
    has_begun_more = False
    """Since it was last looked which of them still run."""
    most_begun = _MOST_BEGUN
    """With this many it is looked which of them still run."""
    is_over = False
    """Committed or given up: from now on it may touch nothing."""
    is_undone = False
    """Given up: what its code still does is no loss."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def has_begun(self, task: Any) -> None:
        """Its code has begun this task; it may begin more of them than are worth remembering, one after the other."""
        if self.begun is None:
            self.begun = [task]
        else:
            self.begun.append(task)
            if len(self.begun) >= self.most_begun:
                self.most_begun = _MOST_BEGUN + 2 * len(self.left_running())
        self.has_begun_more = True

    def left_running(self) -> list[Any]:
        """The tasks that it has begun and that still run. Others are forgotten: each holds its unit, in turn."""
        self.has_begun_more = False
        running = [each for each in self.begun or () if not each.is_done]
        self.begun = running or None
        return running


CURRENT: Final[ContextVar[UnitOfWork | None]] = ContextVar("understudy-unit-of-work", default=None)
"""The unit whose code runs."""
