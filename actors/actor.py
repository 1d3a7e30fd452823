"""Actor: Pykka's actor, with a context instead of a fixed runtime.

An Actor object is inert until a system starts it: it holds no inbox, no thread and no context, its `__init__` needs no
`super()` call, and it can be pickled. `ActorSystem.spawn` (or a parent's `context.spawn`) attaches a context and a
dispatcher and starts it. Handlers may be `async def` under the asyncio and the simulated dispatcher.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from types import TracebackType
from typing import Any, ClassVar, NoReturn

import pykka

from ..messages.fields import found
from .context import ActorContext
from .errors import MessageNotHandled


class SupervisorStrategy(Enum):
    """What an actor's parent does with it when a handler raises. Akka: SupervisorStrategy."""

    RESTART = auto()
    """Children are stopped, `on_restart` and `on_start` run, and the inbox goes on with the next message."""
    STOP = auto()
    ESCALATE = auto()
    """The actor stops, and its parent fails with the same error: the parent's own supervisor decides about that."""


@dataclass(frozen=True, slots=True)
class RestartLimit:
    """An actor that fails more than `max_restarts` times within `within_ms` is stopped. Erlang: restart intensity."""

    max_restarts: int
    within_ms: float


@dataclass(frozen=True, slots=True)
class Terminated:
    """To a watcher: the watched actor has stopped, or its process cannot be reached any more."""

    address: str
    reason: str
    may_be_there: bool = False
    """Nobody has said that it has stopped: its process was lost, or the connection to it."""


class Step(Enum):
    """What a stepping actor's `step` did."""

    BUSY = auto()
    """Made progress: call again at once."""
    IDLE = auto()
    """Nothing to do: call again after a wake-up, a message, or the actor's `idle_ms`."""
    DONE = auto()
    """Finished: the actor stops."""


class Actor(pykka.Actor):
    """Base class of all actors.

    Override `on_receive`, and what you need of the hooks: `on_start` before the first message (and after each
    restart), `on_restart` before a restart, `on_failure` when a failure ends the actor, `on_stop` last and always.
    Under the asyncio dispatcher each may be `async def`. A handler may return a `pykka.Future`: the asker gets its
    outcome, when it is there.
    """

    context: ActorContext
    supervisor_strategy: ClassVar[SupervisorStrategy] = SupervisorStrategy.STOP
    """What this actor does with a child that fails."""
    restart_limit: ClassVar[RestartLimit] = RestartLimit(max_restarts=5, within_ms=60_000)
    """How often this actor may be restarted before its failure is final."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        """Nothing: Pykka's fields are made when the actor is started."""

    def __str__(self) -> str:
        """Pykka's has the actor's URN, which there is only once it is started."""
        return repr(self)

    @classmethod
    def start(cls, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Pykka's way to start an actor; ours is `spawn`, because an actor belongs to a system."""
        raise TypeError(f"spawn it: system.spawn({cls.__name__}(...)), or context.spawn(...) inside an actor")

    def on_receive(self, message: Any) -> Any:
        """Handle a message; the value that it returns is the answer to an ask.

        An actor that defines its own ends it with `return super().on_receive(message)` for what it does not know.
        Raises MessageNotHandled: an ask fails with it, a `tell` is logged, and the actor goes on.
        """
        name = type(self).__name__
        if type(self).on_receive is Actor.on_receive:
            wanted = "define `def on_receive(self, message)` in that class"
            error = MessageNotHandled(f"no {name}.on_receive for {found(message)}: {wanted}")
        else:
            error = MessageNotHandled(f"{name}.on_receive does not know {found(message)}")
        error.actor = self
        raise error

    def on_start(self) -> Any:
        """Set up; runs on the actor's dispatcher. Raising is a failure like any other."""

    def on_stop(self) -> Any:
        """Clean up; the last call an actor gets, after a failure too."""

    def on_restart(self, error: BaseException) -> Any:
        """Let go of what `on_start` took; `on_start` runs next. As it stands, this calls `on_stop`."""
        return self.on_stop()

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Any:
        """A failure ends this actor: its supervisor decided so, or it failed too often. `on_stop` runs next."""

    @staticmethod
    def _create_actor_inbox() -> NoReturn:
        raise TypeError("an actor's inbox belongs to the system that spawns it")

    @staticmethod
    def _create_future() -> NoReturn:
        raise TypeError("futures are made by the system that spawns the actor")

    def _start_actor_loop(self) -> NoReturn:
        raise TypeError("an actor is started by system.spawn")
