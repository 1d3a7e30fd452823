"""What the coroutine of a record has begun and may leave behind, with the line that began it: a task or the work of an
executor (BegunTask), or a timer of the event loop (BegunTimer).

Noted as it is made, on the event loop's thread, in the record's unit of work. A task that still runs when the record is
done, or a timer that waits, has not been awaited: LeftTasks has these of one operator.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from functools import cache, partial
from types import CodeType, FrameType
from typing import Any, Protocol, TypeAlias, TypeVar
from weakref import WeakSet, ref

from ...state.backends.unit_of_work import CURRENT, UnitOfWork
from ..library_code import is_library, is_library_file
from .waiting_code import each_once, shown_line

log = logging.getLogger(__name__)

F = TypeVar("F", bound="asyncio.Future[Any]")

_SEEN_WITHIN_S = 1.0
"""Whoever awaits a task that fails knows it by then."""

_OF_SLEEP = vars(asyncio.tasks)
"""Those of the module whose timers there are most of: `asyncio.sleep` is called by many a record."""
_BETWEEN = frozenset({asyncio.__name__, __name__.partition(".")[0]})


class Handle(Protocol):
    """An asyncio.TimerHandle, or what stands for one."""

    def cancelled(self) -> bool: ...

    def when(self) -> float: ...


class _Place:
    """The instruction that has begun something."""

    __slots__ = ("_code", "_lasti", "unit")

    def __init__(self, unit: UnitOfWork, code: CodeType | None, lasti: int) -> None:
        self.unit, self._code, self._lasti = unit, code, lasti

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


class BegunTask(_Place):
    """Cheap to make: one is made for each part of an `asyncio.gather`."""

    __slots__ = ("_task",)

    def __init__(self, task: asyncio.Future[Any], unit: UnitOfWork, code: CodeType | None, lasti: int) -> None:
        super().__init__(unit, code, lasti)
        self._task = ref(task)

    @property
    def held(self) -> asyncio.Future[Any] | None:
        """The task. None when it is gone: it is not kept from that, as each would live as long as its record."""
        return self._task()

    @property
    def is_done(self) -> bool:
        task = self._task()
        return task is None or task.done()

    def when_done(self, then: Callable[[], None]) -> None:
        """Call it on the event loop's thread; it is not done yet."""
        task = self._task()
        assert task is not None
        task.add_done_callback(lambda _: then())


class BegunTimer(_Place):
    """The callback of a timer (`loop.call_later`), in place of the user's. A timer is done when it has been called, or
    was cancelled.
    """

    __slots__ = ("__wrapped__", "_handle", "_then")

    def __init__(self, callback: Callable[..., object], unit: UnitOfWork, code: CodeType, lasti: int) -> None:
        super().__init__(unit, code, lasti)
        self.__wrapped__ = callback
        self._handle: Any = None
        self._then: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return getattr(self.__wrapped__, "__qualname__", repr(self.__wrapped__))

    def __call__(self, *args: Any) -> None:
        try:
            self.__wrapped__(*args)
        finally:
            self._handle = None
            if self._then is not None:
                self._then()

    def set(self, handle: Handle) -> None:
        self._handle = handle
        self.unit.has_begun(self)

    @property
    def held(self) -> Any:
        """The handle of the event loop."""
        return self._handle

    @property
    def is_done(self) -> bool:
        return self._handle is None or self._handle.cancelled()

    def when_done(self, then: Callable[[], None]) -> None:
        """The same. Of one that is cancelled it is noticed when its time has come."""
        self._then = then
        asyncio.get_running_loop().call_at(self._handle.when(), self._look)

    def _look(self) -> None:
        if self._handle is not None and self._handle.cancelled() and self._then is not None:
            self._then()


Begun: TypeAlias = "BegunTask | BegunTimer"


def note(task: F, context: Context | None) -> F:
    """It has just been made, to run in this context, by default a copy of the one that made it."""
    unit = CURRENT.get() if context is None else context.get(CURRENT)
    if unit is not None:
        frame = sys._getframe(2)  # whoever made it is called by asyncio, or by the user
        while (caller := frame.f_back) is not None and _is_between(frame.f_globals.get("__name__")):
            frame = caller
        known = caller is not None
        unit.has_begun(BegunTask(task, unit, frame.f_code if known else None, frame.f_lasti))
    elif isinstance(task, asyncio.Task):
        _watch(task)
    return task


def _watch(task: asyncio.Task[Any]) -> None:
    """One that goes on beside the records, as `open` begins it: asyncio says nothing of a failure while it is kept."""
    beginner: FrameType | None = sys._getframe(3)
    while beginner is not None and beginner.f_globals.get("__name__", "").partition(".")[0] == asyncio.__name__:
        beginner = beginner.f_back
    if beginner is not None and not is_library(beginner):
        line = shown_line(beginner.f_code.co_filename, beginner.f_lineno)
        task.add_done_callback(partial(_look_at_failure, line))


def _look_at_failure(line: str, task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and _is_unseen(task):
        task.get_loop().call_later(_SEEN_WITHIN_S, _say_failure, line, task)


def _say_failure(line: str, task: asyncio.Task[Any]) -> None:
    if _is_unseen(task) and (error := task.exception()) is not None:
        log.error(
            "the task that was begun at %s has failed, and nothing awaits it: %s: %s",
            line,
            type(error).__name__,
            error,
            exc_info=error,
        )


def _is_unseen(task: asyncio.Task[Any]) -> bool:
    """Whether it has an exception that nobody has asked for: by this asyncio knows what to say when it is gone."""
    return bool(getattr(task, "_log_traceback", False))


def context_of_unit() -> Context | None:
    """For a callback that is to be called soon: as asyncio makes one, where it is a unit of work that asks for it."""
    if CURRENT.get() is None or _is_between(sys._getframe(2).f_globals.get("__name__")):
        return None
    return copy_context()


def noted(callback: Callable[..., object], context: Context | None) -> BegunTimer | None:
    """For a timer that is to be made in this context: to be called in place of the callback, and `set`. None where
    it is of no unit, or asyncio or Understudy makes it: who has asked for it waits for it.
    """
    frame = sys._getframe(2)
    if frame.f_globals is _OF_SLEEP:
        return None
    unit = CURRENT.get() if context is None else context.get(CURRENT)
    if unit is None:
        return None
    if _is_between(frame.f_globals.get("__name__")):
        return None
    return BegunTimer(callback, unit, frame.f_code, frame.f_lasti)


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
        self._left: dict[Begun, Any] = {}
        self._beside: WeakSet[asyncio.Future[Any]] = WeakSet()
        """Those of tries that have failed: no loss, but nobody wants them any more."""
        self._cancelled: list[asyncio.Future[Any]] = []
        self._is_awaited = self._is_limited = self._is_over = False

    def add(self, begun: Iterable[Begun]) -> None:
        """Keeps them, as asyncio alone may forget them, but those of libraries, which live as long as a client."""
        for each in begun:
            held = each.held
            if held is not None and not each.is_of_library and each not in self._left:
                self._left[each] = held
                each.when_done(partial(self._is_done, each))

    def add_undone(self, begun: Iterable[Begun]) -> None:
        """Of a try that has failed, or was cut off: what they do is no loss, and they are not awaited."""
        for each in begun:
            if isinstance(each, BegunTask) and not each.is_of_library and (task := each.held) is not None:
                self._beside.add(task)

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

    def cancel(self) -> list[asyncio.Future[Any]]:
        """Cancel all of them, as the attempt has ended; those that have yet to end by it."""
        running = [each for each in (*self._left.values(), *self._beside) if each is not None]
        for each in running:
            each.cancel()
        self._cancelled = [each for each in running if isinstance(each, asyncio.Future)]
        return self.not_ended

    @property
    def not_ended(self) -> list[asyncio.Future[Any]]:
        """Those that have been cancelled, and go on."""
        return [each for each in self._cancelled if not each.done()]

    def _is_done(self, begun: Begun) -> None:
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
            "%s: %d tasks or callbacks that it has begun are not over %.1f s after the last record, begun at %s: what "
            "they would emit or store is lost; await them, or begin in `open` what goes on beside the records",
            self._what,
            len(self._left),
            waited_ms / 1000,
            each_once(each.line for each in self._left),
        )
        self._wake()
