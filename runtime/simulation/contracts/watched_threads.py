"""WatchedThreads: the threads that one attempt has started, which go on only when it is their turn.

    stands -> (a turn) -> passes some moments -> stands, or waits for something, or is over

A schedule says how many moments there are to a turn, so a run is the same whenever it is repeated; but what a real
system does, and how long it takes, is its own. At the moment of a fault the thread stands, and no other has a turn.
A thread that waits (for room, for news, in a sleep) holds nobody up: it stands at its next moment.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from time import monotonic
from typing import Protocol
from weakref import WeakSet

from .moments import Act, Moment, Place, ThreadFault

GRACE_S = 0.02
"""So long a turn waits for a thread that is in a call to the outside."""
_END_S = 1.0
_UNTIL_IT_RESTS = 1_000_000
_SHORT = (0, 1, 1, 2, 3, 5, 8)
_LONG = (_UNTIL_IT_RESTS,)
_MIXED = (*_SHORT, 13, 40, *_LONG)
_MANNERS = ((_SHORT, _LONG, 40), (_SHORT, _LONG, 15), (_MIXED, _MIXED, 5), (_LONG, _SHORT, 3))
"""Each attempt has one of them: how many moments there are to a turn between the steps of the task, and to one in the
middle of a step; and of how many lines of the task's thread one brings a turn. Few long turns at the right place find
what many short ones do not, and the other way round.
"""


class Calls(Protocol):
    """Sees what a thread does."""

    is_dead: bool

    def install(self) -> None: ...

    def remove(self) -> None: ...


class WatchedThread:
    def __init__(self, thread: threading.Thread, calls: Calls) -> None:
        self.thread, self.calls = thread, calls
        self.allowance = 0
        """Moments that it may pass."""
        self.stands, self.is_over = False, False
        self.waits = 0
        """The number of things, one in the other, in which it waits."""

    @property
    def rests(self) -> bool:
        return self.is_over or self.waits > 0 or (self.stands and self.allowance <= 0)


class WatchedThreads:
    """Those of one attempt. `turn` and what follows it are for the contract's own thread."""

    def __init__(self, fault: ThreadFault | None, schedule: Random) -> None:
        self.seen: dict[Place, int] = {}
        """The visits of each, in the order of the first."""
        self.calls_outside = 0
        self.happened = ""
        """Where the fault was, in words; empty as long as it was not."""
        self.act: Act | None = None
        """What is to happen now, as a thread has come to the moment of the fault."""
        self._fault, self._schedule = fault, schedule
        manner: tuple[Sequence[int], Sequence[int], int] = schedule.choice(_MANNERS)
        self._between, self._within, self._one_in = manner
        self._changed, self._turns = threading.Condition(), threading.Lock()
        self._threads: list[WatchedThread] = []
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._moved = 0
        self._is_free, self._is_dead = False, False

    # -- calls of the threads

    def adopt(self, thread: threading.Thread, calls: Calls) -> None:
        """It is about to be started."""
        watched, run = WatchedThread(thread, calls), thread.run

        def run_watched() -> None:
            calls.install()
            try:
                run()
            except BaseException:
                if not calls.is_dead:
                    raise
            finally:
                calls.remove()
                with self._changed:
                    watched.is_over = True
                    self._changed.notify_all()

        thread.run = run_watched  # type: ignore[method-assign]
        with self._changed:
            calls.is_dead = self._is_dead
            self._threads.append(watched)

    def opened(self, made: socket.socket) -> None:
        """A thread of the attempt has made it: it goes with the attempt's process."""
        self._sockets.add(made)

    def passes(self, calls: Calls, place: Place) -> Act | None:
        """The thread of these calls is at a place: wait for its turn; what happens to it then."""
        me = self._of(calls)
        with self._changed:
            if not self._is_free:
                if self._is_here(place):
                    assert self._fault is not None
                    act, self._fault = self._fault.act, None
                    if act == "fail":
                        return act
                    self.act = act
                    for each in self._threads:
                        each.allowance = 0
                me.stands = True
                self._moved += 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._is_dead or self._is_free or me.allowance > 0)
                me.allowance -= 1
                me.stands = False
            return "kill" if self._is_dead else None

    def waits(self, calls: Calls, more: int) -> None:
        """The thread of these calls begins to wait (1), or has waited (-1)."""
        me = self._of(calls)
        with self._changed:
            me.waits += more
            self._changed.notify_all()

    def _of(self, calls: Calls) -> WatchedThread:
        return next(each for each in self._threads if each.calls is calls)

    def _is_here(self, place: Place) -> bool:
        self.seen[place] = visit = self.seen.get(place, 0) + 1
        moment = Moment(place, visit)
        if self._fault is None or self._fault.moment != moment:
            return False
        self.happened = f"its thread {threading.current_thread().name!r} is {moment}"
        return True

    def has_stopped(self) -> bool:
        """Whether one has come to the moment of the fault, and stands there."""
        return self.act is not None

    # -- turns

    def __len__(self) -> int:
        return len(self._threads)

    def turn(self, choices: Sequence[int] = (), *, must: bool = False) -> None:
        """Let each go on for some moments, one after the other. None has a turn when one has come to the moment of the
        fault, until `go_on`; but if it `must`.
        """
        if not self._turns.acquire(blocking=False):
            return  # of the other thread
        try:
            order = [each for each in self._threads if not each.is_over]
            self._schedule.shuffle(order)
            for each in order:
                self._turn_of(each, self._schedule.choice(choices or self._between), must)
        finally:
            self._turns.release()

    def _turn_of(self, one: WatchedThread, moments: int, must: bool) -> None:
        with self._changed:
            if self.act is None or must:
                one.allowance = moments
                self._changed.notify_all()
                self._changed.wait_for(lambda: one.rests or (self.act is not None and not must), GRACE_S)
                one.allowance = 0

    def until_all_rest(self) -> None:
        self.turn(_LONG)

    def turn_within(self) -> None:
        """The task's thread is at a line of the connector's: one of some brings a turn. For that thread."""
        if self._threads and not self._schedule.randrange(self._one_in):
            self.turn(self._within)

    def wait_for_news(self) -> None:
        """Until a thread has come to a moment, but not for long."""
        with self._changed:
            moved = self._moved
            self._changed.wait_for(lambda: self._moved != moved, GRACE_S / 10)

    def chance(self, *choices: int) -> int:
        """What the schedule says next."""
        return self._schedule.choice(choices)

    def go_on(self) -> None:
        """The fault is over, or will not come any more."""
        with self._changed:
            self.act, self._fault = None, None

    # -- the end

    def let_go(self) -> None:
        """From now on they run as they like."""
        with self._changed:
            self._is_free, self.act, self._fault = True, None, None
            self._changed.notify_all()

    def kill(self) -> None:
        """Their process is gone: they do nothing outside any more, and its sockets are closed."""
        with self._changed:
            self._is_dead, self._fault = True, None
            for each in self._threads:
                each.calls.is_dead = True
            self._changed.notify_all()
        for opened in list(self._sockets):
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
        self.ended(_END_S)

    def ended(self, timeout_s: float) -> list[str]:
        """The names of those that still run then."""
        deadline = monotonic() + timeout_s
        for each in self._threads:
            if each.thread.ident is not None:
                each.thread.join(max(0.0, deadline - monotonic()))
        return [each.thread.name for each in self._threads if each.thread.is_alive()]
