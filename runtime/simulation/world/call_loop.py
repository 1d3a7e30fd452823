"""SimulatedCallLoop: the coroutines of operators on their process's loop, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

from ....actors.async_calls.event_loop import Begin
from ...coroutines.call_runner import LoopRunner
from .world import Process


class SimulatedCallLoop:
    """A CallLoop. What runs on it runs between the turns of tasks, as chance has it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._asked = 0

    def __call__(self) -> Self:
        return self

    def runner(self, begin: Begin, what: str, wake: Callable[[], None]) -> LoopRunner:
        return LoopRunner(self._process.loop, self._complete, begin, what, wake)

    def lock(self) -> AbstractContextManager[Any]:
        """There is one thread."""
        return nullcontext()

    @property
    def begun_so_far(self) -> int:
        """As if something were begun between any two questions."""
        self._asked += 1
        return self._asked

    def _complete(self, coroutine: Coroutine[Any, Any, None], within_ms: float) -> bool:
        """Nothing may block here: it goes on by itself, unless its process is dead."""
        if self._process.is_alive:
            self._process.loop.create_task(coroutine)
        else:
            coroutine.close()
        return True
