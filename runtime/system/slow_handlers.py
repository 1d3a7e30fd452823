"""Plain handlers that hold the event loop of their actor system, found when they have returned.

Only of a user's actors: what the library's own take is short, unless the machine has no time for them. An `async def`
is not looked at: it should wait.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable
from typing import Any

from ...actors.context import Clock

logger = logging.getLogger(__name__)

SLOW_HANDLER_MS = 1000
"""From then on it is logged, each time."""

_LIBRARY = __name__.partition(".")[0]


def is_watched(actor: type) -> bool:
    """Whether it is of a user's program."""
    return actor.__module__.partition(".")[0] != _LIBRARY


def watched(handle: Callable[[Any], Any], actor: type, address: str, message: Any, clock: Clock) -> Any:
    """What `handle(message)` returns."""
    began_ms = clock.now_ms()
    result = handle(message)
    held_ms = clock.now_ms() - began_ms
    if held_ms >= SLOW_HANDLER_MS:
        logger.warning(
            "%s: %s.on_receive (%s) held the event loop of its actor system for %.1f s with a %s; all its actors, "
            'timers and connections wait meanwhile: spawn(..., dispatcher="thread"), or an `async def on_receive` with '
            "`await self.context.run_blocking(...)`",
            *(address, actor.__qualname__, _place(actor), held_ms / 1000, type(message).__qualname__),
        )
    return result


def _place(actor: Any) -> str:
    code = getattr(inspect.unwrap(actor.on_receive), "__code__", None)
    return "no source" if code is None else f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
