"""Plain handlers that hold the event loop of their actor system, found when they have returned.

Only of a user's actors: what the library's own take is short, unless the machine has no time for them. An `async def`
is not looked at: it should wait.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pykka import messages as pykka_messages

from ...actors.context import Clock
from .inbox import Piped, TimerFired

logger = logging.getLogger(__name__)

SLOW_HANDLER_MS = 1000
"""A handler that takes this long or longer is logged, each time."""


def watched(handle: Callable[[Any], Any], actor: type, address: str, message: Any, clock: Clock) -> Any:
    """What `handle(message)` returns, or raises."""
    began_ms = clock.now_ms()
    try:
        return handle(message)
    finally:
        held_ms = clock.now_ms() - began_ms
        if held_ms >= SLOW_HANDLER_MS:
            method, told = _called(message)
            logger.warning(
                "%s: %s.%s%s blocked the event loop of its actor system for %.1f s%s; all other actors, timers and "
                'connections of that system waited: spawn(..., dispatcher="thread"), or an `async def` with `await '
                "self.context.run_blocking(...)`",
                *(address, actor.__qualname__, method, _place(actor, method), held_ms / 1000, told),
            )


def _called(message: Any) -> tuple[str, str]:
    """The method that it is for, and what is said of it."""
    if isinstance(message, pykka_messages.ProxyCall | pykka_messages.ProxyGetAttr | pykka_messages.ProxySetAttr):
        return ".".join(message.attr_path), ""
    if isinstance(message, Piped):
        return "on_receive", " while it handled the outcome of a future"
    due = message.message if isinstance(message, TimerFired) else message
    return "on_receive", f" while it handled a {type(due).__qualname__}"


def _place(actor: type, method: str) -> str:
    """The file and the line, in brackets; empty where they are not known."""
    with suppress(Exception):  # a user's class may do anything when it is asked
        code = inspect.unwrap(getattr(actor, method)).__code__
        return f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"
    return ""
