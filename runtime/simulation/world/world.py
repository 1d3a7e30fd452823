"""World: one history. Virtual time, seeded chance, and the processes that live in it.

Everything that happens is an event at a virtual time, on behalf of one process. Events run one after another on one
thread, in the order of their times and, at the same time, of their making; so a seed decides all that happens.
A dead process's events are forgotten, a frozen one's wait until it thaws. In the middle of an event its process may be
killed or frozen (see process.py), and a thread may be interrupted (`pause`): others go on meanwhile, on top of it.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import math
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from ....actors.traceback_text import formatting, placeless_traceback
from .event_loop import ProcessLoop
from .process import EPOCH_MS, Event, Process, ProcessClock, ProcessKilled
from .running_loop import put_back, take_out
from .trace import Trace

__all__ = ["EPOCH_MS", "Process", "ProcessClock", "ProcessKilled", "Stuck", "World"]

log = logging.getLogger(__name__)

_STUCK_EVENTS = 50_000
"""More events than this within a millisecond mean an endless cycle."""

_MAX_DEPTH = 4
"""The number of pieces of code that may be interrupted at the same time; the innermost goes on first."""


class Stuck(RuntimeError):
    """Virtual time does not go on: something repeats itself without end at one instant."""


class World:
    """Virtual time begins at 0 and goes on only from event to event."""

    def __init__(self, seed: int, stuck_events: int = _STUCK_EVENTS) -> None:
        self.seed = seed
        self._stuck_events = stuck_events
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
        self.services: dict[str, Any] = {}
        """Other parts of this world, by name: all processes share them, and none is a process."""
        self.unhandled: list[tuple[str, BaseException]] = []
        """What code of living processes has raised where nobody catches it, and whose it was."""
        self.is_on_thread = False
        """Whether the present event is work of a thread beside its process's loop, which `pause` may interrupt."""
        self.interrupted: list[Process | None] = []
        """Whose code stands still just now, in the middle, while others go on; the innermost last."""

    def chance(self, purpose: str) -> random.Random:
        """A random source for one purpose, so that one use of chance does not disturb the others."""
        return random.Random(f"{self.seed}/{purpose}")

    def process(self, name: str, host: str = "") -> Process:
        """A new process, on a host of its own unless one is named."""
        process = Process(self, name, host)
        loop = ProcessLoop(process)  # type: ignore[abstract]  # of what asyncio lists, only what can happen here
        process.loop = loop
        process.when_ended(loop.close_unbegun)
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

    def schedule(self, event: Event) -> Event:
        """At its time, or now if that is past."""
        when_ms = event.when_ms if event.when_ms > self.now_ms else self.now_ms
        heapq.heappush(self._later, (when_ms, next(self._numbers), event))
        return event

    # ---- running

    def run_until(self, is_over: Callable[[], bool], limit_ms: float) -> bool:
        """Let things happen until `is_over()`, looked at after each event; False when `limit_ms` (a time) comes first.

        The limit is reached too when nothing is left that could happen. What was interrupted goes on first, though: so
        it may become a little later, and much later when a process was frozen in the middle of something.
        """
        running, current = take_out(), self.current
        self._enter(current)
        try:
            with formatting(placeless_traceback):
                return self._run_until(is_over, limit_ms)
        finally:
            self.current = current
            put_back(running)

    def run_for(self, duration_ms: float) -> None:
        self.run_until(lambda: False, self.now_ms + duration_ms)

    # ---- interrupting

    def may_interrupt(self, process: Process) -> bool:
        """Whether it is this process's code that runs just now, and can stand still while others go on."""
        return (
            self.current is process
            and len(self.interrupted) < _MAX_DEPTH
            and asyncio.current_task(loop=process.loop) is None
        )

    def meanwhile(self, is_over: Callable[[], bool]) -> None:
        """Let the world go on until `is_over()`, on top of the code that calls this."""
        is_on_thread, self.is_on_thread = self.is_on_thread, False
        self.interrupted.append(self.current)
        try:
            self.run_until(is_over, math.inf)
        finally:
            self.interrupted.pop()
            self.is_on_thread = is_on_thread

    def pause(self, process: Process, for_ms: float) -> None:
        """Let everything else go on for so long, the process's other threads too. Raises ProcessKilled if it dies."""
        if self.is_on_thread and self.may_interrupt(process):
            over: list[bool] = []
            self.after(for_ms, None, over.append, True)
            self.meanwhile(lambda: bool(over) and not (process.is_stopped and process.is_alive))
            if not process.is_alive:
                raise ProcessKilled(process.name)

    # ---- inside

    def _run_until(self, is_over: Callable[[], bool], limit_ms: float) -> bool:
        soon, later, happen = self._soon, self._later, self._happen
        while not is_over():
            if soon:
                event = soon.popleft()
            elif later and later[0][0] <= limit_ms:
                when_ms, _, event = heapq.heappop(later)
                if when_ms > self.now_ms:
                    self.now_ms = when_ms
            else:
                self.now_ms = max(self.now_ms, limit_ms)
                return False
            if not event.is_cancelled:
                happen(event)
        return True

    def _happen(self, event: Event) -> None:
        process = event.process
        if process is not None:
            if not process.is_alive:
                return
            if process.is_stopped:
                process.postpone(event)
                return
        self.events += 1
        if self.now_ms >= self._counted_ms + 1:
            self._counted_ms, self._counted = self.now_ms, self.events
        elif self.events - self._counted > self._stuck_events:
            raise Stuck(
                f"{self._stuck_events} events within a millisecond at {self.now_ms:.3f} ms, the last one {event}"
            )
        if process is not self.current:
            self._enter(process)
        try:
            if event.context is None:
                event.function(*event.args)
            else:
                event.context.run(event.function, *event.args)
        except ProcessKilled:
            assert process is not None
            assert not process.is_alive
        except Stuck:
            raise
        except Exception as error:
            if process is None:
                raise
            self._raised(process, error)

    def _enter(self, process: Process | None) -> None:
        """What happens next happens on behalf of this process, on its event loop."""
        self.current = process
        asyncio._set_running_loop(None if process is None else process.loop)

    def _raised(self, process: Process, error: Exception) -> None:
        """As an event loop does, note it and go on."""
        if process.is_alive:
            self.unhandled.append((process.name, error))
            self.trace.add(process.name, "unhandled", type(error).__name__, str(error))
            log.error("%s: unhandled", process.name, exc_info=error)
