"""CallLoop: the asyncio event loop that the coroutines of operators run on. `runtime/` supplies it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NoReturn, Protocol


class CallLoop(Protocol):
    """One for each TaskManager, and not the thread of any task."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """It runs, from the first time that it is asked for."""
        ...

    def tasks_made(self) -> int:
        """A number that grows with each asyncio.Task that is made on it."""
        ...

    def complete(self, coroutine: Coroutine[Any, Any, None], within_ms: float) -> bool:
        """Run it to its end, and block for so long at most; whether it has ended. Where nothing may block, as in the
        simulator, it goes on by itself. Raises what it raises, if it has.
        """
        ...


def no_call_loop() -> NoReturn:
    """Where there is none."""
    raise RuntimeError("operators with `async def` do not run here: there is no event loop for them")
