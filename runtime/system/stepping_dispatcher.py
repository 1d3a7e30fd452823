"""SteppingDispatcher: a named group is one thread that hosts several stepping actors.

The thread goes round its actors: each gets the messages in its inbox and then, unless it idles, one step. It sleeps
when all of them idle, until a message, a wake-up, or the first `idle_ms` is over. It ends when its last actor has
stopped.
"""

from __future__ import annotations

import threading
from typing import Protocol
from weakref import WeakValueDictionary

from ...actors.actor import Step
from ...actors.context import Clock
from .dispatcher import Driven, drive
from .thread_dispatcher import join_threads

_TURN = 64
"""Messages an actor handles at most before its next step, so that a flood of them does not starve its neighbours."""


class TurnWatch(Protocol):
    """Wants to know of turns that hold a group's thread for long. It looks at `SteppingGroup.turning` by itself, from a
    thread of its own.
    """

    slow_ms: float

    def begin(self, group: SteppingGroup) -> None:
        """Its thread starts."""
        ...

    def slow_turn_ended(self, group: SteppingGroup, cell: Driven, began_ms: float, took_ms: float) -> None:
        """On the group's thread, after a turn of `slow_ms` or more."""
        ...

    def end(self, group: SteppingGroup) -> None:
        """Its thread ends."""
        ...


class Group(Protocol):
    """Where a seat belongs: the real one is a thread, the simulator's is not."""

    def add(self, seat: SteppingSeat) -> None: ...

    def wake(self) -> None:
        """One of the seats has something to do. From any thread."""
        ...


class SteppingSeat:
    """One actor of a group: is it awake, and if not, until when does it idle?"""

    runs_coroutines = False

    def __init__(self, cell: Driven, group: Group) -> None:
        self.cell = cell
        self.group = group
        self.idle_until_ms: float | None = None
        self._awake = True
        self._started = False

    def signal(self) -> None:
        self._awake = True
        self.group.wake()

    def turn(self, clock: Clock) -> bool:
        """Messages, then a step; False when there was nothing to do."""
        if not self._started:
            self._started = True
            drive(self.cell.start())
        due = self.idle_until_ms is not None and clock.now_ms() >= self.idle_until_ms
        if not (self._awake or due):
            return False
        self._awake = False  # before looking: a signal that comes meanwhile counts for the next turn
        handled = 0
        while handled < _TURN and self.cell.has_messages and self.cell.handle_at_once():
            handled += 1
        if handled == _TURN or (not self.cell.is_terminated and self.cell.step_at_once() is Step.BUSY):
            self._awake = True
        idle_ms = self.cell.idle_ms
        self.idle_until_ms = None if idle_ms is None else clock.now_ms() + idle_ms
        return True


class SteppingGroup:
    """A thread and the seats on it. Seats may be added while it runs."""

    def __init__(self, name: str, clock: Clock, watch: TurnWatch | None = None) -> None:
        self.name = name
        self.event = threading.Event()
        self.thread: threading.Thread | None = None
        self.turning: Driven | None = None
        """Whose turn it is, for the watch; None between turns, and always without a watch."""
        self.began_ms = 0.0
        """When that turn began; written before `turning`."""
        self._clock = clock
        self._watch = watch
        self._lock = threading.Lock()
        self._seats: list[SteppingSeat] = []

    def add(self, seat: SteppingSeat) -> None:
        with self._lock:
            self._seats.append(seat)
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name=f"stepping {self.name}", daemon=True)
                self.thread.start()
        self.event.set()

    def wake(self) -> None:
        self.event.set()

    def _run(self) -> None:
        watch = self._watch
        try:
            if watch is not None:
                watch.begin(self)
            while seats := self._living_seats():
                self.event.clear()
                if watch is None:
                    worked = [seat.turn(self._clock) for seat in seats]
                else:
                    worked = self._watched_turns(seats, watch)
                if not any(worked):
                    self.event.wait(self._sleep_s(seats))
        except BaseException:
            self._abandon_all()
            raise
        finally:
            self.turning = None
            if watch is not None:
                watch.end(self)

    def _watched_turns(self, seats: list[SteppingSeat], watch: TurnWatch) -> list[bool]:
        """One turn each; the watch, which looks on from its own thread, costs them a reading of the clock."""
        worked = []
        began_ms = self.began_ms = self._clock.now_ms()
        for seat in seats:
            self.turning = seat.cell
            worked.append(seat.turn(self._clock))
            self.turning = None
            ended_ms = self._clock.now_ms()
            if ended_ms - began_ms >= watch.slow_ms:
                watch.slow_turn_ended(self, seat.cell, began_ms, ended_ms - began_ms)
            began_ms = self.began_ms = ended_ms
        return worked

    def _living_seats(self) -> list[SteppingSeat]:
        """The seats to serve next; when none is left the thread is over, and the next `add` starts another."""
        with self._lock:
            self._seats = [seat for seat in self._seats if not seat.cell.is_terminated]
            if not self._seats:
                self.thread = None
            return list(self._seats)

    def _abandon_all(self) -> None:
        with self._lock:
            left, self._seats, self.thread = self._seats, [], None
        for seat in left:
            seat.cell.abandon("its thread ended")

    def _sleep_s(self, seats: list[SteppingSeat]) -> float | None:
        dues = [seat.idle_until_ms for seat in seats if seat.idle_until_ms is not None]
        return max(0.0, min(dues) - self._clock.now_ms()) / 1000 if dues else None


class SteppingDispatcher:
    """Owns the groups' threads."""

    def __init__(self, clock: Clock, watch: TurnWatch | None = None) -> None:
        self._clock = clock
        self._watch = watch
        self._lock = threading.Lock()
        self._groups: WeakValueDictionary[str, SteppingGroup] = WeakValueDictionary()  # seats and threads hold them

    def attach(self, cell: Driven, argument: str) -> SteppingSeat:
        if not cell.is_stepping:
            raise TypeError(f"{cell.name} has no step(): the stepping dispatcher takes stepping actors")
        with self._lock:
            group = self._groups.setdefault(argument, SteppingGroup(argument or "default", self._clock, self._watch))
        return SteppingSeat(cell, group)

    def launch(self, seat: SteppingSeat) -> None:
        seat.group.add(seat)

    async def close(self, timeout_ms: float) -> list[str]:
        with self._lock:
            threads = {group.thread: f"stepping:{name}" for name, group in self._groups.items() if group.thread}
        return await join_threads(threads, timeout_ms)
