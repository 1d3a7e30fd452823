"""SimulatedBlocking: code that blocks begins after the time that it might have taken, and takes none of its own.

It is work of a thread, though: it may be interrupted between two of its disk operations, and others go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...system.future import ActorFuture
from .event_loop import off_loop
from .world import Process, ProcessKilled, Stuck

T = TypeVar("T")


class SimulatedBlocking:
    """One process's pool. `delay_ms` says how long the next call takes."""

    def __init__(self, process: Process, delay_ms: Callable[[], float]) -> None:
        self._world = process.world
        self._loop = process.loop
        self._delay_ms = delay_ms

    def submit(self, function: Callable[..., T], *args: Any) -> ActorFuture[T]:
        outcome: ActorFuture[T] = ActorFuture()
        self._loop.call_later(self._delay_ms() / 1000, self._run, outcome, function, args)
        return outcome

    async def close(self, timeout_ms: float) -> None:
        """There are no threads to wait for."""

    def _run(self, outcome: ActorFuture[T], function: Callable[..., T], args: tuple[Any, ...]) -> None:
        try:
            value = self._on_thread(function, args)
        except (ProcessKilled, Stuck, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  (the outcome of user code, whatever it is)
            outcome.try_fail(error)
        else:
            outcome.try_set(value)

    def _on_thread(self, function: Callable[..., T], args: tuple[Any, ...]) -> T:
        self._world.is_on_thread = True
        try:
            with off_loop():
                return function(*args)
        finally:
            self._world.is_on_thread = False
