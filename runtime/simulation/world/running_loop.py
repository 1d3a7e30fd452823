"""Which event loop runs in this thread, and which of its tasks: taken out so that another loop may run within, and put
back.

Up to Python 3.13 each loop has a current task of its own; from 3.14 on a thread has one, so a task that is interrupted
must be taken out with its loop.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, TypeAlias

Running: TypeAlias = "tuple[asyncio.AbstractEventLoop | None, asyncio.Task[Any] | None]"


def take_out() -> Running:
    """No loop runs in this thread then."""
    loop = asyncio._get_running_loop()
    task: asyncio.Task[Any] | None = None
    if sys.version_info >= (3, 14) and loop is not None:
        task = asyncio.tasks._swap_current_task(loop, None)
    asyncio._set_running_loop(None)
    return loop, task


def put_back(running: Running) -> None:
    """In place of whatever runs."""
    loop, task = running
    asyncio._set_running_loop(loop)
    if sys.version_info >= (3, 14) and loop is not None:
        asyncio.tasks._swap_current_task(loop, task)
