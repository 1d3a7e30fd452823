"""AttemptCalls and ThreadCalls: what the threads of an attempt do, where the attempt may have threads of its own.

Seen are the threads that the connector starts, by `threading.Thread` and what builds on it, as pools; not those that a
client starts for itself, or that are C's own. In them each line of the connector's code is a place where they can be
stopped, and so is each call to the outside, before and after. On the attempt's thread they have turns between lines,
too, so that a race with `poll` or `offset` is found.
"""

from __future__ import annotations

import queue
import socket
import sys
import threading
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from types import CodeType, FrameType
from typing import Any

from .moments import Place
from .outside_calls import CallPlan, Fault, Killed, OutsideCalls, When
from .watched_threads import WatchedThreads

_START = threading.Thread.start.__code__
_SOCKET = socket.socket.__init__.__code__
_WAITS = frozenset({threading.Thread.join.__code__, threading.Condition.wait.__code__})


class _Calls(OutsideCalls):
    """`own`: packages and modules of the connector."""

    def __init__(self, plan: CallPlan, *, own: Collection[str], threads: WatchedThreads) -> None:
        super().__init__(plan)
        self._own, self._threads = tuple(own), threads
        self._is_own: dict[CodeType, bool] = {}
        self._thread = 0

    def install(self) -> None:
        self._thread = threading.get_ident()
        super().install()
        sys.settrace(self._trace)

    def remove(self) -> None:
        sys.settrace(None)
        super().remove()

    def _waits(self, more: int) -> None:
        """It begins to wait (1), or has waited (-1)."""
        raise NotImplementedError

    def _line(self, frame: FrameType) -> None:
        """A line of the connector's is about to run, outside of any call to the outside."""
        raise NotImplementedError

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call":
            if code is _START and self._library is None:
                self._threads.adopt(frame.f_locals["self"], self._of_a_thread())
            elif code is _SOCKET:
                self._threads.opened(frame.f_locals["self"])
            elif code in _WAITS:
                self._waits(1)
        elif event == "return":
            if code in _WAITS:
                self._waits(-1)
        elif _waits_in_c(arg):
            self._waits(1 if event == "c_call" else -1)
        super()._profile(frame, event, arg)

    def _trace(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        code = frame.f_code
        if code not in self._is_own:
            name = frame.f_globals.get("__name__", "")
            is_generated = code.co_filename.startswith("<")  # as of a dataclass
            self._is_own[code] = _is_in(name, self._own) and not is_generated and not self._is_outside(name)
        return self._lines if self._is_own[code] else None

    def _lines(self, frame: FrameType, event: str, _arg: Any) -> Any:
        """Frames may outlive their thread, and end in another one."""
        if event == "line" and self._library is None and threading.get_ident() == self._thread:
            self._line(frame)
        return self._lines

    def _traced_again(self, frame: FrameType) -> Any:
        return self._trace(frame, "call", None)

    def _of_a_thread(self) -> ThreadCalls:
        return ThreadCalls(replace(self._plan, hooks=(), fault=None), own=self._own, threads=self._threads)


class AttemptCalls(_Calls):
    """Of the thread that calls the connector."""

    is_waiting = False
    """For another thread, as a rule."""

    def die(self, happened: str) -> None:
        """The attempt is killed here."""
        self.happened, self.is_dead = happened, True
        raise Killed

    def stand_still(self, happened: str) -> None:
        self.happened = happened
        self.remove()
        self._plan.freeze()

    def _waits(self, more: int) -> None:
        self.is_waiting = more > 0

    def _line(self, frame: FrameType) -> None:
        if not self.is_dead:
            self._threads.turn_within()


class ThreadCalls(_Calls):
    """Of one thread that the connector has started."""

    def _waits(self, more: int) -> None:
        self._threads.waits(self, more)

    _is_unwinding = False

    def _line(self, frame: FrameType) -> None:
        if self._is_unwinding:
            return
        if self._threads.passes(self, Place(frame.f_code.co_filename, frame.f_lineno)) == "kill":
            self._is_unwinding = True
            raise Killed

    def _at(self, when: When, number: int, frame: FrameType) -> None:
        if not self.is_dead:
            if when == "before":
                self._threads.calls_outside += 1
            inside = self._inside(frame)
            call = f"{when} {self.names[number - 1]}"
            place = Place(inside.f_code.co_filename, inside.f_lineno or 0, call)
            act = self._threads.passes(self, place)
            if act == "fail":
                self._fault = Fault(number, when, "fail")
        super()._at(when, number, frame)

    def _inside(self, frame: FrameType) -> FrameType:
        """The line of the connector's that makes the call."""
        each: FrameType | None = frame
        while each is not None:
            if self._trace(each, "call", None) is not None:
                return each
            each = each.f_back
        return frame


def _waits_in_c(function: Any) -> bool:
    if function is time.sleep:
        return True
    return function.__name__ == "get" and type(getattr(function, "__self__", None)) is queue.SimpleQueue


def _is_in(module: str, packages: Iterable[str]) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in packages)


def own_packages(kind: type) -> tuple[str, ...]:
    """Where the code of a connector lies: the packages of its class, and of the classes that it builds on."""
    found: dict[str, None] = {}
    for each in kind.__mro__:
        module = each.__module__
        top = module.partition(".")[0]
        if ".actors." in module or each is object:
            continue
        found["understudy.runtime.connectors" if top == "understudy" else top] = None
    return tuple(found)
