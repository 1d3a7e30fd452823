"""SimulatedCallLoop: the coroutines of operators on their process's loop, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Self

from .world import Process


class SimulatedCallLoop:
    """A CallLoop. What runs on it runs between the turns of tasks, as chance has it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._asked = 0

    def __call__(self) -> Self:
        return self

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._process.loop

    def tasks_made(self) -> int:
        """As if one were made between any two questions."""
        self._asked += 1
        return self._asked

    def complete(self, coroutine: Coroutine[Any, Any, None], within_ms: float) -> bool:
        self._process.loop.create_task(coroutine)
        return True
