"""The simulator's dispatchers: actors driven by events instead of threads and tasks, under the same contract.

Actors of different threads may interleave in any way; here chance decides, by giving each turn a duration. A handler
that is `async def` and waits for something is not supported: nothing in a cluster has one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from ...system.dispatcher import Driven, drive
from ...system.stepping_dispatcher import SteppingSeat
from .event_loop import off_loop
from .world import Process, ProcessKilled, Stuck

_TURN = 32
_MIN_TURN_MS = 0.01
_MAX_TURN_MS = 1.0


class SimulatedSeat:
    """An actor that takes its messages as they come."""

    runs_coroutines = False

    def __init__(self, cell: Driven, dispatcher: SimulatedDispatcher) -> None:
        self.cell = cell
        self._dispatcher = dispatcher
        self._is_launched = self._is_started = self._is_due = self._is_turning = False

    def signal(self) -> None:
        if self._is_launched and not self._is_due:
            self._is_due = True
            self._dispatcher.soon(self)

    def launch(self) -> None:
        self._is_launched = True
        self.signal()

    def turn(self) -> None:
        """Handle a few messages, and come again when there may be more."""
        if self._is_turning:  # its handler waits for a future, and the world goes on meanwhile
            return
        self._is_turning = True
        try:
            is_more = self._handle_some()
        finally:
            self._is_turning = self._is_due = False
        if is_more:
            self.signal()

    def _handle_some(self) -> bool:
        cell = self.cell
        if not self._is_started:
            self._is_started = True
            drive(cell.start())
        handled = 0
        while handled < _TURN and cell.has_messages and cell.handle_at_once():
            handled += 1
        return handled == _TURN


class SimulatedDispatcher:
    """Stands for the asyncio dispatcher (turns take no time) and the thread dispatcher (they take some)."""

    def __init__(self, process: Process, chance: random.Random | None = None) -> None:
        self._loop = process.loop
        self._chance = chance

    def attach(self, cell: Driven, argument: str) -> SimulatedSeat:
        return SimulatedSeat(cell, self)

    def launch(self, seat: SimulatedSeat) -> None:
        seat.launch()

    def soon(self, seat: SimulatedSeat) -> None:
        if self._chance is None:
            self._loop.call_soon(seat.turn)
        else:
            self._loop.call_later(self._chance.uniform(_MIN_TURN_MS, _MAX_TURN_MS) / 1000, seat.turn)

    async def close(self, timeout_ms: float) -> list[str]:
        return []


class SimulatedGroup:
    """The stepping actors that share a thread in reality: they take turns, and idle together."""

    def __init__(self, process: Process, chance: random.Random) -> None:
        self._process = process
        self._chance = chance
        self._seats: list[SteppingSeat] = []
        self._next: asyncio.TimerHandle | None = None
        self._next_ms = 0.0
        self._is_turning = False
        self._is_woken = False
        self._busy_until_ms = 0.0
        """Until when the last step takes, on a process that is slow."""

    def add(self, seat: SteppingSeat) -> None:
        self._seats.append(seat)
        self.wake()

    def wake(self) -> None:
        if self._is_turning:
            self._is_woken = True
        else:
            self._turn_after(self._chance.uniform(_MIN_TURN_MS, _MAX_TURN_MS))

    def _turn_after(self, delay_ms: float) -> None:
        now_ms = self._process.world.now_ms
        due_ms = max(now_ms + delay_ms, self._busy_until_ms)
        if self._next is not None:
            if self._next_ms <= due_ms:
                return
            self._next.cancel()
        self._next_ms = due_ms
        self._next = self._process.loop.call_later((due_ms - now_ms) / 1000, self._turn)

    def _turn(self) -> None:
        """Each seat's turn, as on the group's thread."""
        self._next, self._is_woken = None, False
        self._seats = [seat for seat in self._seats if not seat.cell.is_terminated]
        clock, seats, world = self._process.clock, list(self._seats), self._process.world
        self._is_turning = world.is_on_thread = True
        try:
            with off_loop():
                worked = [seat.turn(clock) for seat in seats]
        except (ProcessKilled, KeyboardInterrupt, Stuck):
            raise
        except BaseException as error:
            self._abandon_all()
            if isinstance(error, Exception):
                raise
            return
        finally:
            self._is_turning = world.is_on_thread = False
        if any(worked):
            self._busy_until_ms = world.now_ms + sum(self._process.slow_steps_ms)
        if any(worked) or self._is_woken:
            self._turn_after(self._chance.uniform(_MIN_TURN_MS, _MAX_TURN_MS))
            return
        dues = [seat.idle_until_ms for seat in seats if seat.idle_until_ms is not None]
        if dues:
            self._turn_after(max(_MIN_TURN_MS, min(dues) - clock.now_ms()))

    def _abandon_all(self) -> None:
        left, self._seats = self._seats, []
        for seat in left:
            seat.cell.abandon("its thread ended")


GroupMaker = Callable[[Process, random.Random], SimulatedGroup]


class SimulatedStepping:
    """Stands for the stepping dispatcher: one group for each name."""

    def __init__(self, process: Process, make_group: GroupMaker = SimulatedGroup) -> None:
        self._make_group = make_group
        self._process = process
        self._chance = process.world.chance(f"turns of {process.name}")
        self._groups: dict[str, SimulatedGroup] = {}

    def attach(self, cell: Driven, argument: str) -> SteppingSeat:
        group = self._groups.get(argument)
        if group is None:
            group = self._groups[argument] = self._make_group(self._process, self._chance)
        return SteppingSeat(cell, group)

    def launch(self, seat: SteppingSeat) -> None:
        seat.group.add(seat)

    async def close(self, timeout_ms: float) -> list[str]:
        return []
