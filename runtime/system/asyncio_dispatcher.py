"""AsyncioDispatcher: each actor is a task of the system's loop. Plain handlers must be short.

Handlers may be `async def`. While one waits, its actor takes no other message, and all other actors go on.
"""

from __future__ import annotations

import asyncio

from .dispatcher import Driven
from .event_loop import SystemLoop

_TURN = 32
"""Messages an actor handles before it lets the others on."""


class AsyncioSeat:
    """An actor's task, and the event that wakes it."""

    runs_coroutines = True

    def __init__(self, cell: Driven, loop: SystemLoop) -> None:
        self.cell = cell
        self.task: asyncio.Task[None] | None = None
        self._loop = loop
        self._event = asyncio.Event()
        self._signalled = False

    def signal(self) -> None:
        if self._loop.is_here:
            self._event.set()
        elif not self._signalled:  # one call is enough until the task has looked
            try:
                self._signalled = True
                self._loop.call(self._event.set)
            except BaseException:  # as by Ctrl-C in the middle: the next one is to wake it
                self._signalled = False
                raise

    async def run(self) -> None:
        """The actor's life."""
        cell = self.cell
        try:
            await cell.start()
            while not cell.is_terminated:
                self._event.clear()
                self._signalled = False
                if await self._turn():
                    await asyncio.sleep(0)
                else:
                    await self._event.wait()
        finally:
            cell.abandon("its task was cancelled")

    async def _turn(self) -> bool:
        """Handle a few messages; True when there may be more."""
        for _ in range(_TURN):
            if not await self.cell.handle_next():
                return self.cell.is_terminated
        return True


class AsyncioDispatcher:
    """Owns the actors' tasks."""

    def __init__(self, loop: SystemLoop) -> None:
        self._loop = loop
        self._seats: dict[Driven, AsyncioSeat] = {}

    def attach(self, cell: Driven, argument: str) -> AsyncioSeat:
        return AsyncioSeat(cell, self._loop)

    def launch(self, seat: AsyncioSeat) -> None:
        self._loop.call(self._start, seat)

    async def close(self, timeout_ms: float) -> list[str]:
        tasks = {seat.task: seat.cell.name for seat in self._seats.values() if seat.task is not None}
        for task in tasks:
            task.cancel()
        if not tasks:
            return []
        _, pending = await asyncio.wait(tasks, timeout=timeout_ms / 1000)
        return [tasks[task] for task in pending]

    def _start(self, seat: AsyncioSeat) -> None:
        seat.task = self._loop.loop.create_task(seat.run(), name=f"actor {seat.cell.name}")
        self._seats[seat.cell] = seat
        seat.task.add_done_callback(lambda _: self._seats.pop(seat.cell, None))
