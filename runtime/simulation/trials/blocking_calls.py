"""BlockingCalls: calls in coroutines of a user's job that block the event loop in place of waiting.

A real job logs them, as all coroutines of a TaskManager wait meanwhile. In the simulator no virtual time passes, so
nothing shows. Python's profiler hook sees them: while the watch is on, it is called at each call of a C function.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from types import FrameType
from typing import Any

from ...library_code import is_library, is_our_frame
from ...output.running_code import RunningCode

_FUNCTIONS = {time.sleep: "time.sleep", sqlite3.connect: "sqlite3.connect", os.system: "os.system"}
_INSIDE = {"fork_exec": "subprocess", "getaddrinfo": "socket.getaddrinfo"}
"""What modules of the standard library call in the end."""
_METHODS = frozenset({"connect", "recv", "recv_into", "send", "sendall"})
"""Of a socket that waits for its answer."""
_STATEMENTS = frozenset({"execute", "executemany", "executescript", "commit", "fetchone", "fetchall", "fetchmany"})
"""Of sqlite3."""
_NAMES = frozenset({*(each.__name__ for each in _FUNCTIONS), *_INSIDE, *_METHODS, *_STATEMENTS})
_COROUTINE = CO_COROUTINE | CO_ASYNC_GENERATOR

WHAT_BLOCKS = "a coroutine blocks"
WHAT_TO_DO = (
    "No virtual time passes there, but in a real job all coroutines of the TaskManager wait meanwhile: use an async "
    "client (asyncio.sleep for time.sleep), or `await asyncio.to_thread(...)`"
)


class BlockingCalls:
    """`found`: a sentence for each line, without an end."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], str] = {}

    @property
    def found(self) -> list[str]:
        return list(self._found.values())

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at the calls on this thread meanwhile."""
        before = sys.getprofile()
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _called(self, frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and getattr(function, "__name__", "") in _NAMES and (call := _blocking(function)):
            self._look_at(frame, call)

    def _look_at(self, frame: FrameType, call: str) -> None:
        if not _is_in_a_coroutine(frame):
            return
        code = RunningCode.of(frame)
        if code.operator is not None:
            self._found.setdefault(
                (code.path, code.line),
                f"operator {code.operator.context.name!r} in {code.method} calls {call}, which holds the event loop: "
                f"{code}",
            )


def _blocking(function: Any) -> str:
    """Its name in words, if it blocks; empty if not."""
    owner, name = function.__self__, function.__name__
    if isinstance(owner, socket.SocketType):
        return f"socket.{name}" if name in _METHODS and owner.gettimeout() != 0 else ""
    if isinstance(owner, sqlite3.Connection | sqlite3.Cursor):
        return f"sqlite3's {name}" if name in _STATEMENTS else ""
    return _INSIDE.get(name) or _FUNCTIONS.get(function, "")


def _is_in_a_coroutine(frame: FrameType | None) -> bool:
    """Of the user's, and not in what that has given to a thread."""
    while frame is not None:
        if frame.f_code.co_name == "run_in_executor" and is_our_frame(frame):
            return False
        if frame.f_code.co_flags & _COROUTINE and not is_library(frame):
            return True
        frame = frame.f_back
    return False
