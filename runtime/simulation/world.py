"""World: one history. Virtual time, seeded chance, and the processes that live in it.

Everything that happens is an event at a virtual time, on behalf of one process. Events run one after another on one
thread, in the order of their times and, at the same time, of their making; so a seed decides all that happens.
A dead process's events are forgotten, a frozen one's wait until it thaws. What a process does to the outside
(send, write) must first pass `check_alive`, for it may have been killed in the middle of an event.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from .event_loop import Event, ProcessLoop
from .trace import Trace

EPOCH_MS = 1_700_000_000_000
"""Where every world's wall clocks start, but for their skew."""

_STUCK_EVENTS = 50_000
"""So many events within a millisecond mean that something goes round in circles."""


class ProcessKilled(BaseException):
    """The process that does this has just been killed. Passes through all of its code, and is caught by the world."""


class Stuck(RuntimeError):
    """Virtual time does not go on: something repeats itself without end at one instant."""


class Process:
    """One simulated operating system process: alive, then perhaps frozen and thawed, and in the end dead."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.loop = ProcessLoop(self)  # type: ignore[abstract]  # of what asyncio lists, only what can happen here
        self.is_alive = True
        self.is_frozen = False
        self.end_reason = ""
        self.clock = ProcessClock(world, world.chance(f"clock of {name}").uniform(0, 1e6))
        self.operations = 0
        """How many sends and disk operations it has done."""
        self.dies_at_operation: int | None = None
        self._backlog: list[Event] = []
        self._when_ended: list[Callable[[str], object]] = []

    def __repr__(self) -> str:
        return f"<process {self.name}>"

    def kill(self, reason: str) -> None:
        """It is dead at once, with whatever it was doing."""
        if self.is_alive:
            self.is_alive = False
            self.end_reason = reason
            self._backlog.clear()
            self.world.trace.add(self.name, "process ended", reason)
            callbacks, self._when_ended = self._when_ended, []
            for callback in callbacks:
                callback(reason)

    def freeze(self) -> None:
        """Nothing happens in it, as after SIGSTOP."""
        self.is_frozen = True

    def thaw(self) -> None:
        """It goes on where it was, with all that has come due meanwhile, in that order."""
        self.is_frozen = False
        backlog, self._backlog = self._backlog, []
        for event in backlog:
            self.world.repeat(event)

    def postpone(self, event: Event) -> None:
        self._backlog.append(event)

    def when_ended(self, callback: Callable[[str], object]) -> None:
        """Call `callback(reason)` at its end, on behalf of nobody."""
        self._when_ended.append(callback)

    def die_after(self, operations: int) -> None:
        """Let it die in the middle of its so-manieth operation from now on."""
        self.dies_at_operation = self.operations + operations

    def operate(self) -> None:
        """It is about to do something that the outside can see; raises ProcessKilled if it is dead or dies of it."""
        if not self.is_alive:
            raise ProcessKilled(self.name)
        self.operations += 1
        if self.operations == self.dies_at_operation:
            self.kill(f"killed at its operation {self.operations}")
            raise ProcessKilled(self.name)


class ProcessClock:
    """A process's clocks: an arbitrary zero for the monotonic one, and a skew for the wall clock."""

    def __init__(self, world: World, zero_ms: float) -> None:
        self._world = world
        self._zero_ms = zero_ms
        self._skew_ms = 0

    def now_ms(self) -> float:
        return self._world.now_ms + self._zero_ms

    def wall_ms(self) -> int:
        return EPOCH_MS + int(self._world.now_ms) + self._skew_ms

    def skew(self, by_ms: int) -> None:
        """The wall clock jumps."""
        self._skew_ms += by_ms


class World:
    """Virtual time begins at 0 and goes on only from event to event."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now_ms = 0.0
        self.current: Process | None = None
        self.trace = Trace(self)
        self.events = 0
        self._counted = 0
        self._counted_ms = 0.0
        self._numbers = itertools.count()
        self._soon: deque[Event] = deque()
        self._later: list[tuple[float, int, Event]] = []
        self._ids: dict[str, int] = {}
        self.processes: list[Process] = []
        """All that ever lived, in the order of their births."""

    def chance(self, purpose: str) -> random.Random:
        """A random source for one purpose, so that one use of chance does not disturb the others."""
        return random.Random(f"{self.seed}/{purpose}")

    def process(self, name: str) -> Process:
        """A new process."""
        process = Process(self, name)
        self.processes.append(process)
        self.trace.add(name, "process started")
        return process

    def new_id(self, prefix: str) -> str:
        """Ids that no process of this world shares."""
        number = self._ids[prefix] = self._ids.get(prefix, 0) + 1
        return f"{prefix}-{number}"

    # ---- events

    def at(self, when_ms: float, process: Process | None, function: Callable[..., object], *args: Any) -> Event:
        """Have `function(*args)` called at a time, on behalf of a process, or of nobody."""
        event = Event(process, function, args, when_ms)
        heapq.heappush(self._later, (when_ms, next(self._numbers), event))
        return event

    def after(self, delay_ms: float, process: Process | None, function: Callable[..., object], *args: Any) -> Event:
        return self.at(self.now_ms + delay_ms, process, function, *args)

    def soon(self, event: Event) -> None:
        """At this very time, after all else that was asked for so."""
        self._soon.append(event)

    def schedule(self, event: Event) -> None:
        heapq.heappush(self._later, (max(event.when_ms, self.now_ms), next(self._numbers), event))

    repeat = soon

    # ---- running

    def run_until(self, is_over: Callable[[], bool], limit_ms: float) -> bool:
        """Let things happen until `is_over()`, looked at after each event; False when `limit_ms` (a time) comes first.

        The limit is reached too when nothing is left that could happen.
        """
        running, current = asyncio._get_running_loop(), self.current
        try:
            while not is_over():
                if self._soon:
                    self._happen(self._soon.popleft())
                elif self._later and self._later[0][0] <= limit_ms:
                    when_ms, _, event = heapq.heappop(self._later)
                    self.now_ms = max(self.now_ms, when_ms)
                    self._happen(event)
                else:
                    self.now_ms = max(self.now_ms, limit_ms)
                    return False
            return True
        finally:
            self.current = current
            asyncio._set_running_loop(running)

    def run_for(self, duration_ms: float) -> None:
        self.run_until(lambda: False, self.now_ms + duration_ms)

    def _count(self, event: Event) -> None:
        self.events += 1
        if self.now_ms >= self._counted_ms + 1:
            self._counted_ms, self._counted = self.now_ms, self.events
        elif self.events - self._counted > _STUCK_EVENTS:
            raise Stuck(f"{_STUCK_EVENTS} events within a millisecond at {self.now_ms:.3f} ms, the last one {event}")

    def _happen(self, event: Event) -> None:
        process = event.process
        if event.is_cancelled:
            return
        if process is not None:
            if not process.is_alive:
                return
            if process.is_frozen:
                process.postpone(event)
                return
        self._count(event)
        if process is not self.current:
            self.current = process
            asyncio._set_running_loop(None if process is None else process.loop)
        try:
            event.run()
        except ProcessKilled:
            assert process is not None
            assert not process.is_alive
