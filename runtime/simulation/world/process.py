"""Process: one simulated operating system process. Alive, then perhaps frozen and thawed, and in the end dead.

What a process does to the outside (send, write) is an operation, and must first be announced with `operate`: the
process may have been killed before, and may be killed or frozen just there, between two effects of one piece of code.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import Any, Protocol

from .trace import Trace

EPOCH_MS = 1_700_000_000_000
"""Where every world's wall clocks start, but for their skew."""

_MAX_SKEW_MS = 500
"""No two hosts agree on the time of day."""

Callback = Callable[[str], object]


class ProcessKilled(BaseException):
    """The process that does this has just been killed. Passes through all of its code, and is caught by the world."""


class Timeline(Protocol):
    """The world, as its processes and their loops see it: virtual time, chance, and what happens next."""

    now_ms: float
    trace: Trace
    is_on_thread: bool

    def chance(self, purpose: str) -> Random: ...

    def after(self, delay_ms: float, process: Process | None, function: Callable[..., object], *args: Any) -> Event: ...

    def soon(self, event: Event) -> None: ...

    def schedule(self, event: Event) -> Event: ...

    def may_interrupt(self, process: Process) -> bool: ...

    def meanwhile(self, is_over: Callable[[], bool]) -> None: ...


class Event:
    """Something that will happen. It is also what asyncio knows as a handle."""

    __slots__ = ("args", "context", "function", "is_cancelled", "lane", "process", "when_ms")

    def __init__(
        self,
        process: Process | None,
        function: Callable[..., object],
        args: tuple[Any, ...],
        when_ms: float,
        context: Context | None = None,
        lane: object = None,
    ) -> None:
        """Events of one lane keep their order when a process that was frozen goes on."""
        self.process = process
        self.function = function
        self.args = args
        self.when_ms = when_ms
        self.context = context
        self.is_cancelled = False
        self.lane = lane

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"{name} of {self.process.name if self.process else 'the world'}"

    # ---- as asyncio.TimerHandle

    def cancel(self) -> None:
        self.is_cancelled = True
        self.function, self.args = _nothing, ()

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.when_ms / 1000


class Process:
    """Its events happen while it is alive and not frozen; those of a dead one are forgotten."""

    def __init__(self, world: Timeline, name: str, host: str = "") -> None:
        self.world = world
        self.name = name
        self.host = host or name
        """The machine it is on: what goes wrong between two machines does so for all of their processes."""
        self.reached_as = name
        """The first part of its addresses. A process may take that of one that is dead, like a port on its machine."""
        self.loop: asyncio.AbstractEventLoop
        """Set by the world, which makes it."""
        self.is_alive = True
        self.is_frozen = False
        self.is_stopped = False
        """Frozen, or not back yet where it was frozen in the middle of something: its events wait."""
        self.frozen_since_ms = 0.0
        self.end_reason = ""
        chance = world.chance(f"clock of {name}")
        self.clock = ProcessClock(world, chance.uniform(0, 1e6), chance.randint(-_MAX_SKEW_MS, _MAX_SKEW_MS))
        self.operations = 0
        """How many sends and disk operations it has done."""
        self.slow_steps_ms: list[float] = []
        """How much longer each step of its tasks takes, for the time being."""
        self.slow_files_ms: list[float] = []
        """And how much longer each piece of its work with files."""
        self.dies_at_operation: int | None = None
        self._freezes_at_operation: int | None = None
        self._frozen_for_ms = 0.0
        self._is_in_the_middle = False
        self._backlog: list[Event] = []
        self._when_ended: list[Callback] = []
        self._when_frozen: list[Callable[[], object]] = []

    def __repr__(self) -> str:
        return f"<process {self.name}>"

    # ---- its life

    def kill(self, reason: str) -> None:
        """It is dead at once, with whatever it was doing."""
        if self.is_alive:
            self.is_alive = False
            self.end_reason = reason
            self._when_frozen.clear()
            self.world.trace.add(self.name, "process ended", reason)
            callbacks, self._when_ended = self._when_ended, []
            for callback in callbacks:
                callback(reason)
            self._backlog.clear()

    def freeze(self) -> None:
        """Nothing happens in it, as after SIGSTOP."""
        if not self.is_frozen:
            self.is_frozen = self.is_stopped = True
            self.frozen_since_ms = self.world.now_ms
            for callback in self._when_frozen:
                callback()

    def thaw(self) -> None:
        """It goes on where it was, with all that has come due meanwhile.

        Each lane keeps its order, but which of them goes first is chance: a timer that came due long ago, or a frame
        that has only just come.
        """
        self.is_frozen = False
        if not self._is_in_the_middle:
            self._go_on()

    def postpone(self, event: Event) -> None:
        self._backlog.append(event)

    def when_ended(self, callback: Callback) -> None:
        """Call `callback(reason)` at its end, on behalf of nobody."""
        self._when_ended.append(callback)

    def when_frozen(self, callback: Callable[[], object]) -> None:
        """Call back whenever it is frozen, on behalf of nobody."""
        self._when_frozen.append(callback)

    # ---- what it does to the outside

    def die_after(self, operations: int) -> None:
        """Let it die in the middle of the last of this number of operations from now on."""
        self.dies_at_operation = self.operations + operations

    def freeze_after(self, operations: int, for_ms: float) -> None:
        """Let it freeze in the middle of the last of this number of operations from now on, or of a later one."""
        self._freezes_at_operation = self.operations + operations
        self._frozen_for_ms = for_ms

    def operate(self) -> None:
        """It is about to do something that the outside can see; raises ProcessKilled if it is dead or dies of it."""
        if not self.is_alive:
            raise ProcessKilled(self.name)
        self.operations += 1
        if self.operations == self.dies_at_operation:
            self.kill(f"killed at its operation {self.operations}")
            raise ProcessKilled(self.name)
        freezes_at = self._freezes_at_operation
        if freezes_at is not None and self.operations >= freezes_at and self.world.may_interrupt(self):
            self._freezes_at_operation = None
            self._freeze_in_the_middle()

    def _freeze_in_the_middle(self) -> None:
        """Others go on while this one's code stands still; raises ProcessKilled if it never goes on."""
        self.world.trace.add(self.name, "frozen", f"in the middle of its operation {self.operations}")
        self.freeze()
        self.world.after(self._frozen_for_ms, None, self.thaw)
        self._is_in_the_middle = True
        try:
            self.world.meanwhile(lambda: not self.is_frozen or not self.is_alive)
        finally:
            self._is_in_the_middle = False
        if not self.is_alive:
            raise ProcessKilled(self.name)
        self.world.trace.add(self.name, "goes on")
        self._go_on()

    def _go_on(self) -> None:
        self.is_stopped = False
        lanes: dict[object, deque[Event]] = {}
        for event in self._backlog:
            lanes.setdefault(event.lane, deque()).append(event)
        self._backlog = []
        chance = self.world.chance(f"{self.name} goes on at {self.world.now_ms}")
        while lanes:
            lane = chance.choice(list(lanes))
            for _ in range(chance.choice((1, 1, 2, len(lanes[lane])))):
                if lanes[lane]:
                    self.world.soon(lanes[lane].popleft())
            if not lanes[lane]:
                del lanes[lane]


class ProcessClock:
    """A process's clocks: an arbitrary zero for the monotonic one, and a skew for the wall clock."""

    def __init__(self, world: Timeline, zero_ms: float, skew_ms: int = 0) -> None:
        self._world = world
        self._zero_ms = zero_ms
        self._skew_ms = skew_ms

    def now_ms(self) -> float:
        return self._world.now_ms + self._zero_ms

    def wall_ms(self) -> int:
        return EPOCH_MS + int(self._world.now_ms) + self._skew_ms

    def skew(self, by_ms: int) -> None:
        """The wall clock jumps."""
        self._skew_ms += by_ms


def _nothing() -> None:
    """What a cancelled event does."""
