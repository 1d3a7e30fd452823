"""What a cell, its context and remoting ask of the actor system, and what the system asks of a cell.

The system makes cells, a cell makes its context, and each calls its maker back. These Protocols are what they call, so
that imports run one way: ActorSystem is the Host, Cell is the Spawned.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import pykka

from ...actors.actor import Actor
from ...actors.context import Clock, Ref
from .asks import OpenAsks
from .dead_letters import DeadLetters
from .dispatcher import Seat
from .event_loop import SystemLoop
from .future import ActorFuture
from .inbox import Envelope
from .ref import LocalRef, Watcher

T = TypeVar("T")


class Spawned(Protocol):
    """A cell, as its context, its children and the system see it."""

    actor: Actor
    name: str
    address: str
    system: Host
    ref: LocalRef
    seat: Seat

    @property
    def is_ending(self) -> bool: ...

    def tell(self, message: Any) -> None: ...

    def post(self, envelope: Envelope[Any], *, urgent: bool = False) -> None: ...

    def add_child(self, child: Spawned) -> None: ...


class Host(Protocol):
    """The actor system, as its cells, their contexts and remoting see it. Any thread may call."""

    clock: Clock
    random: random.Random
    new_id: Callable[[str], str]
    loop: SystemLoop
    asks: OpenAsks
    dead_letters: DeadLetters

    @property
    def address(self) -> str: ...

    @property
    def is_running(self) -> bool: ...

    def actor_of(self, address: str) -> Ref: ...

    def spawn_child(self, parent: Spawned, actor: Actor, name: str | None, dispatcher: str | None) -> LocalRef: ...

    def stop(self, ref: Ref) -> None: ...

    def run_blocking(self, function: Callable[..., T], *args: Any) -> ActorFuture[T]: ...

    def deliver(self, name: str, letter: Envelope[Any]) -> None:
        """Put a letter into the inbox of the actor that has this name."""
        ...

    def answer(self, reply_to: ActorFuture[Any], result: Any) -> None:
        """Fulfil an ask; a handler that returned a future has promised its outcome."""
        ...

    def when_done(self, future: pykka.Future[Any], callback: Callable[[], object]) -> None: ...

    def watch(self, key: str, ref: Ref, heard: Watcher) -> None:
        """Call `heard` once when the actor of `ref` has stopped, or at once if it has already."""
        ...

    def unwatch(self, key: str, address: str) -> None: ...

    def watch_by_name(self, key: str, name: str, heard: Watcher) -> None: ...

    def unwatch_by_name(self, key: str, name: str) -> None: ...

    def forget(self, name: str) -> None:
        """The actor of this name stops: the name is free."""
        ...

    def has_ended(self, cell: object) -> None:
        """The cell has stopped, and every watcher knows."""
        ...
