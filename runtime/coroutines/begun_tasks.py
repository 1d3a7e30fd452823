"""BegunTask: an asyncio.Task that the coroutine of a record has begun, with the line that began it.

Noted as the task is made, on the event loop's thread, in the record's unit of work. A task that still runs when the
record is done has not been awaited.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextvars import Context, copy_context
from linecache import getline
from types import CodeType
from typing import Any

from ...state.backends.unit_of_work import CURRENT
from ..library_code import is_library_file, is_ours

_ASYNCIO = f"{os.path.dirname(asyncio.__file__)}/"


class BegunTask:
    """Cheap to make: one is made for each part of an `asyncio.gather`."""

    __slots__ = ("_code", "_lasti", "_task")

    def __init__(self, task: asyncio.Task[Any], code: CodeType | None, lasti: int) -> None:
        self._task, self._code, self._lasti = task, code, lasti

    @property
    def task(self) -> asyncio.Task[Any]:
        return self._task

    @property
    def is_done(self) -> bool:
        return self._task.done()

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
        source = getline(path, line).strip()
        return f"{path}:{line}: {source}" if source else f"{path}:{line}"


def note(task: asyncio.Task[Any], context: Context | None) -> asyncio.Task[Any]:
    """It has just been made, to run in this context, by default a copy of the one that made it."""
    unit = CURRENT.get() if context is None else context.get(CURRENT)
    if unit is not None:
        frame = sys._getframe(1)
        while frame.f_back is not None and (is_ours(frame) or frame.f_code.co_filename.startswith(_ASYNCIO)):
            frame = frame.f_back
        known = frame.f_back is not None
        begun = BegunTask(task, frame.f_code if known else None, frame.f_lasti)
        if unit.begun is None:
            unit.begun = [begun]
        else:
            unit.begun.append(begun)
    return task


def context_of_no_unit() -> Context:
    """For a task that goes on when the unit is over."""
    context = copy_context()
    context.run(CURRENT.set, None)
    return context
