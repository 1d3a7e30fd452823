"""CellContext: an actor's view of its system, the real implementation of actors/context.py."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeVar

import pykka

from ...actors.actor import Actor, Terminated
from ...actors.context import Clock, Ref, Timer
from .event_loop import ScheduledCall
from .future import ActorFuture
from .host import Spawned
from .inbox import Envelope, Piped, TimerFired
from .ref import LocalRef

T = TypeVar("T")


class ActorTimer:
    """A message due later. After `cancel` it is not delivered, even if it was due already and waits in the inbox."""

    call: ScheduledCall

    def __init__(self, context: CellContext) -> None:
        self._context = context

    def cancel(self) -> None:
        self._context.cancel_timer(self)


class CellContext:
    """Only the actor's own handlers may use it, except `self_ref` and `wake`."""

    def __init__(self, cell: Spawned) -> None:
        self._cell = cell
        self._system = cell.system
        self._timers: set[ActorTimer] = set()
        self._watched: set[str] = set()

    @property
    def self_ref(self) -> LocalRef:
        return self._cell.ref

    @property
    def clock(self) -> Clock:
        return self._system.clock

    @property
    def random(self) -> random.Random:
        return self._system.random

    def new_id(self, prefix: str) -> str:
        return self._system.new_id(prefix)

    def schedule(self, delay_ms: float, message: object) -> ActorTimer:
        cell = self._cell
        timer = ActorTimer(self)
        self._timers.add(timer)
        timer.call = self._system.loop.call_later(delay_ms, lambda: cell.post(Envelope(TimerFired(timer, message))))
        return timer

    def actor_of(self, address: str) -> Ref:
        return self._system.actor_of(address)

    def spawn(self, actor: Actor, *, name: str | None = None, dispatcher: str | None = None) -> LocalRef:
        return self._system.spawn_child(self._cell, actor, name, dispatcher)

    def stop(self, ref: Ref) -> None:
        self._system.stop(ref)

    def watch(self, ref: Ref) -> None:
        address = ref.address
        if address in self._watched:
            return
        self._watched.add(address)

        def heard(reason: str, *, may_be_there: bool = False) -> None:
            """From any thread."""
            self._watched.discard(address)
            self._cell.post(Envelope(Terminated(address, reason, may_be_there)))

        self._system.watch(self._cell.address, ref, heard)

    def run_blocking(self, function: Callable[..., T], *args: Any) -> ActorFuture[T]:
        return self._system.run_blocking(function, *args)

    def pipe_to_self(
        self, future: pykka.Future[T], success: Callable[[T], object], failure: Callable[[BaseException], object]
    ) -> None:
        cell = self._cell
        self._system.when_done(future, lambda: cell.post(Envelope(Piped(future, success, failure))))

    def promise(self) -> ActorFuture[Any]:
        return ActorFuture()

    def wake(self) -> None:
        self._cell.seat.signal()

    # ---- for the cell

    def take_timer(self, timer: Timer) -> bool:
        """Whether the timer that fired still counts."""
        if timer in self._timers:
            self._timers.remove(timer)
            return True
        return False

    def cancel_timer(self, timer: ActorTimer) -> None:
        if timer in self._timers:
            self._timers.remove(timer)
            self._system.loop.cancel(timer.call)

    def cancel_timers(self) -> None:
        for timer in list(self._timers):
            self.cancel_timer(timer)

    def release(self) -> None:
        """The actor has stopped."""
        self.cancel_timers()
        for address in list(self._watched):
            self._system.unwatch(self._cell.address, address)
