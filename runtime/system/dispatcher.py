"""What drives an actor. A dispatcher owns threads or tasks; a cell owns the actor's inbox and life.

The contract, which the real dispatchers and the simulator's share: between `attach` and the end of the cell, exactly
one thread or task at a time drives it: `start` once, then `handle_next` whenever there may be a message, until
`is_terminated`. `Seat.signal` says that there may be one. Nothing here knows a clock, except to wait in real time.
"""

from __future__ import annotations

import inspect
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from ...actors.actor import Step

T = TypeVar("T")


class Driven(Protocol):
    """A cell, as its dispatcher sees it."""

    @property
    def name(self) -> str: ...

    @property
    def is_terminated(self) -> bool: ...

    @property
    def has_messages(self) -> bool:
        """Whether any wait; it is cheaper to ask this than to call `handle_next` without need."""
        ...

    @property
    def idle_ms(self) -> float | None:
        """How long a stepping actor idles at most; None: until it is signalled."""
        ...

    @property
    def is_stepping(self) -> bool:
        """Whether the actor has a `step` at all."""
        ...

    async def start(self) -> None: ...

    async def handle_next(self) -> bool:
        """Handle one message; False when there was none to handle."""
        ...

    def handle_at_once(self) -> bool:
        """`handle_next` for a seat that runs no coroutines: most messages are handled without one."""
        ...

    async def step(self) -> Step: ...

    def step_at_once(self) -> Step:
        """The same for `step`."""
        ...

    def abandon(self, reason: str) -> None:
        """The dispatcher cannot drive it any more: it is dead, without any further call to the actor."""
        ...


class Seat(Protocol):
    """One cell's place at its dispatcher."""

    @property
    def runs_coroutines(self) -> bool:
        """Whether handlers may be `async def`."""
        ...

    def signal(self) -> None:
        """From any thread: there is a message, or the actor was woken. Never blocks, and never drives the cell."""
        ...


class Dispatcher(Protocol):
    """Drives cells. One per system and kind, made by the system."""

    def attach(self, cell: Driven, argument: str) -> Seat:
        """Make a seat for `cell`. `argument` is what stands behind the colon, as in "stepping:slot-0"."""
        ...

    def launch(self, seat: Any) -> None:
        """Begin to drive the seat's cell, from any thread; returns at once."""
        ...

    async def close(self, timeout_ms: float) -> list[str]:
        """End what still runs. The names of the actors that would not end in time."""
        ...


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, off any event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    coroutine.close()
    raise RuntimeError(f"{coroutine!r} waits for an event loop, and this thread runs none")


async def outcome_of(result: Any, may_suspend: bool) -> Any:
    """The value of a handler's `result`, awaiting it when the handler is `async def`."""
    if not inspect.iscoroutine(result):
        return result
    if not may_suspend:
        result.close()
        raise TypeError(f"{result.__qualname__} is async def: spawn its actor with dispatcher='asyncio'")
    return await result
