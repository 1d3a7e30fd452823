"""What an actor may ask of the world. `runtime/` supplies it; the simulator supplies another one.

Everything that touches clock, timers, threads, randomness, ids or other actors goes through here, so that the very same
actor class runs on real sockets and under a seeded simulation.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import pykka

from .answer import Answer

T = TypeVar("T")


class Clock(Protocol):
    """Two readings: `now_ms` never goes back and means nothing outside the process; `wall_ms` is Unix time."""

    def now_ms(self) -> float:
        """Milliseconds that never go back: for durations, within this process."""
        ...

    def wall_ms(self) -> int:
        """Unix time in milliseconds: to show to users."""
        ...


class Timer(Protocol):
    """A message that is due later. Cancelling one that has fired does nothing."""

    def cancel(self) -> None:
        """Take it back; of one that has fired nothing happens."""
        ...


class Ref(Protocol):
    """A reference to an actor, here or in another process: the same `tell` and `ask`.

    `tell` never blocks and never raises for a dead or unreachable target: the message goes to dead letters, counted.
    `ask` returns a future that is fulfilled with what the handler returned, or fails with what it raised, with
    AskTimeout, ActorDead or Unreachable. It can be awaited, and has `.result(timeout)`.
    """

    @property
    def address(self) -> str: ...

    def tell(self, message: Any) -> None:
        """Send it; never blocks, and never raises for a target that is gone."""
        ...

    def ask(self, message: Any, *, timeout_ms: float | None = None) -> Answer[Any]:
        """Send it; what comes of it is what the handler returned, or raised, or AskTimeout, ActorDead, Unreachable."""
        ...


class ActorContext(Protocol):
    """One actor's view of its system. Only the actor's own handlers may use it, except `self_ref` and `wake`."""

    @property
    def self_ref(self) -> Ref: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def random(self) -> random.Random: ...

    def new_id(self, prefix: str) -> str:
        """A fresh id, unique in the cluster, as in `attempt-3f9c…`."""
        ...

    def schedule(self, delay_ms: float, message: object) -> Timer:
        """Tell `message` to this actor after `delay_ms`. Dropped when the actor has stopped by then."""
        ...

    def actor_of(self, address: str) -> Ref:
        """A reference to the actor at `address` (`tcp://host:port/name`, or `name` for one of this system)."""
        ...

    def spawn(self, actor: Any, *, name: str | None = None, dispatcher: str | None = None) -> Ref:
        """Start `actor` (an Actor instance that has not been started) as a child, supervised by this actor."""
        ...

    def stop(self, ref: Ref) -> None: ...

    def watch(self, ref: Ref) -> None:
        """Get `Terminated(address, reason)` once, when that actor has stopped or its process is gone."""
        ...

    def run_blocking(self, function: Callable[..., T], *args: Any) -> pykka.Future[T]:
        """Run blocking code off this actor's dispatcher. Awaitable; or hand it to `pipe_to_self`."""
        ...

    def pipe_to_self(
        self, future: pykka.Future[T], success: Callable[[T], object], failure: Callable[[BaseException], object]
    ) -> None:
        """Tell this actor a message made from the future's outcome, when it is there."""
        ...

    def promise(self) -> pykka.Future[Any]:
        """An open future. A handler that returns it has promised the answer: `set` or `set_exception` gives it."""
        ...

    def wake(self) -> None:
        """From any thread: a stepping actor that idles should step again."""
        ...
