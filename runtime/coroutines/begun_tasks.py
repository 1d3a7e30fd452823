"""BegunTask: an asyncio.Task that the coroutine of a record has begun, with the line that began it.

Noted as the task is made, on the event loop's thread, in the record's unit of work. A task that still runs when the
record is done has not been awaited: LeftTasks has these of one operator.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from functools import cache, partial
from types import CodeType
from typing import Any
from weakref import ref

from ...state.backends.unit_of_work import CURRENT, UnitOfWork
from ..library_code import is_library_file
from .waiting_code import each_once, shown_line

log = logging.getLogger(__name__)

_BETWEEN = frozenset({asyncio.__name__, __name__.partition(".")[0]})


class BegunTask:
    """Cheap to make: one is made for each part of an `asyncio.gather`."""

    __slots__ = ("_code", "_lasti", "_task", "unit")

    def __init__(self, task: asyncio.Task[Any], unit: UnitOfWork, code: CodeType | None, lasti: int) -> None:
        self._task, self.unit, self._code, self._lasti = ref(task), unit, code, lasti

    @property
    def task(self) -> asyncio.Task[Any] | None:
        """None when it is gone: it is not kept from that, as each would live as long as its record."""
        return self._task()

    @property
    def is_done(self) -> bool:
        task = self._task()
        return task is None or task.done()

    @property
    def is_of_library(self) -> bool:
        """An installed package has begun it, as a client does that keeps its connection alive."""
        return self._code is None or is_library_file(self._code.co_filename)

    @property
    def line(self) -> str:
        """As in `/home/me/job.py:12: asyncio.create_task(self.later(out))`; empty if it is not known."""
        if self._code is None:
            return ""
        path, line = self._code.co_filename, 0
        for start, end, number in self._code.co_lines():
            if start <= self._lasti < end and number is not None:
                line = number
        return shown_line(path, line)


def note(task: asyncio.Task[Any], context: Context | None) -> asyncio.Task[Any]:
    """It has just been made, to run in this context, by default a copy of the one that made it."""
    unit = CURRENT.get() if context is None else context.get(CURRENT)
    if unit is not None:
        frame = sys._getframe(2)  # whoever made it is called by asyncio, or by the user
        while (caller := frame.f_back) is not None and _is_between(frame.f_globals.get("__name__")):
            frame = caller
        known = caller is not None
        unit.has_begun(BegunTask(task, unit, frame.f_code if known else None, frame.f_lasti))
    return task


@cache
def _is_between(module: str | None) -> bool:
    """Whether it is asyncio's, or ours: neither has wanted the task."""
    return str(module).partition(".")[0] in _BETWEEN


def context_of_no_unit() -> Context:
    """For a task that goes on when the unit is over."""
    context = copy_context()
    context.run(CURRENT.set, None)
    return context


class LeftTasks:
    """What records that have ended well have left running. On the event loop's thread, but `awaits` and `close`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, what: str, wake: Callable[[], None]) -> None:
        """`what`: whose they are; `wake`: to be called when what `awaits` says has changed."""
        self._loop = loop
        self._what = what
        self._wake = wake
        self._left: dict[BegunTask, asyncio.Task[Any]] = {}
        self._is_awaited = self._is_limited = self._is_over = False

    def add(self, begun: Iterable[BegunTask]) -> None:
        """Keeps them, as asyncio alone may forget them, but those of libraries, which live as long as a client."""
        for each in begun:
            task = each.task
            if task is not None and not each.is_of_library and each not in self._left:
                self._left[each] = task
                task.add_done_callback(partial(self._is_done, each))

    def awaits(self, within_ms: float) -> bool:
        """Whether some still run, at most for this long after it was first asked; then those that do are logged."""
        self._is_awaited = True  # before it looks: one that ends from now on wakes
        if not self._left or self._is_over:
            return False
        if not self._is_limited:
            self._is_limited = True
            self._loop.call_soon_threadsafe(self._loop.call_later, within_ms / 1000, self._give_up, within_ms)
        return bool(self._left) and not self._is_over

    def close(self) -> None:
        """Nobody waits any more."""
        self._is_over = True

    def _is_done(self, begun: BegunTask, _: object) -> None:
        if begun.unit.has_begun_more:  # maybe it, which has left them running
            self.add(begun.unit.left_running())
        self._left.pop(begun, None)
        if self._is_awaited and not self._left and not self._is_over:
            self._wake()

    def _give_up(self, waited_ms: float) -> None:
        if self._is_over or not self._left:
            return
        self._is_over = True
        log.warning(
            "%s: %d tasks that it has begun still run %.1f s after the last record, begun at %s: await them, or begin "
            "in `open` what goes on beside the records",
            self._what,
            len(self._left),
            waited_ms / 1000,
            each_once(each.line for each in self._left),
        )
        self._wake()
