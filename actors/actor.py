"""Actor: Pykka's actor, with a context instead of a fixed runtime.

An Actor object is inert until a system starts it: it holds no inbox, no thread and no context, its `__init__` needs no `super()` call, and it
can be pickled. `ActorSystem.spawn` (or a parent's `context.spawn`) attaches a context and a dispatcher and starts it.
Handlers may be `async def` under the asyncio and the simulated dispatcher.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar

import pykka

from .context import ActorContext


class SupervisorStrategy(Enum):
    """What an actor's parent does with it when a handler raises. Akka: SupervisorStrategy."""

    RESTART = auto()
    STOP = auto()
    ESCALATE = auto()


@dataclass(frozen=True, slots=True)
class Terminated:
    """To a watcher: the watched actor has stopped, or its process cannot be reached any more."""

    address: str
    reason: str


class Step(Enum):
    """What a stepping actor's `step` did."""

    BUSY = auto()
    """Made progress: call again at once."""
    IDLE = auto()
    """Nothing to do: call again after a wake-up, a message, or the actor's `idle_ms`."""
    DONE = auto()
    """Finished: the actor stops."""


class Actor(pykka.Actor):
    """Base class of all actors."""

    context: ActorContext
    supervisor_strategy: ClassVar[SupervisorStrategy] = SupervisorStrategy.STOP

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        """Nothing: Pykka's fields are made when the actor is started."""
