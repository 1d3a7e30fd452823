"""References: the same `tell` and `ask`, wherever the actor is.

LocalRef is bound to one actor of this system, NamedRef to whoever has that name when it is used, RemoteRef to a name
in another process. Two references are equal when their addresses are.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Protocol, overload

import pykka
from pykka.messages import _ActorStop

from ...actors.actor import Actor
from ...actors.timeouts import timeout_seconds
from .future import ActorFuture


class Watcher(Protocol):
    """Called when the actor has ended, on whichever thread ends it; `may_be_there` as in Terminated."""

    def __call__(self, reason: str, *, may_be_there: bool = False) -> object: ...


class Receiver(Protocol):
    """The cell of one actor, as a reference to it sees it."""

    address: str

    def tell(self, message: Any) -> None: ...

    def ask(self, message: Any, timeout_ms: float | None) -> ActorFuture[Any]: ...

    def add_watcher(self, key: object, watcher: Watcher) -> bool: ...


class Names(Protocol):
    """The actors of this system, by name."""

    @property
    def address(self) -> str: ...

    def tell_by_name(self, name: str, message: Any) -> None: ...

    def ask_by_name(self, name: str, message: Any, timeout_ms: float | None) -> ActorFuture[Any]: ...


class Addresses(Protocol):
    """The actors of other processes, by address."""

    def tell(self, address: str, message: Any) -> None: ...

    def ask(self, address: str, message: Any, timeout_ms: float | None) -> ActorFuture[Any]: ...


class _ByAddress:
    """Equality and text, by address."""

    @property
    def address(self) -> str:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByAddress) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __str__(self) -> str:
        return self.address

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"


class LocalRef(_ByAddress, pykka.ActorRef[Actor]):
    """What `spawn` returns: this very actor. After it has stopped the reference is dead, even if the name is used
    again.

    Pykka's own methods work as well: `is_alive`, `stop`, `proxy`, and `ask(message, block=True, timeout=seconds)`.
    """

    def __init__(self, actor: Actor, cell: Receiver) -> None:
        super().__init__(actor)
        self.cell = cell

    @property
    def address(self) -> str:
        return self.cell.address

    def tell(self, message: Any) -> None:
        """Send a message, and go on. It never fails: of an actor that has stopped, `dead_letters` counts it."""
        self.cell.tell(message)

    @overload  # type: ignore[override]  # Pykka's waits unless it is asked not to; ours never has
    def ask(
        self, message: Any, *, timeout_ms: float | None = ..., block: Literal[False] = ..., timeout: float | None = ...
    ) -> ActorFuture[Any]: ...

    @overload
    def ask(self, message: Any, *, timeout_ms: float | None = ..., block: bool, timeout: float | None = ...) -> Any: ...

    def ask(
        self, message: Any, *, timeout_ms: float | None = None, block: bool = False, timeout: float | None = None
    ) -> Any:
        """Send a message, and get its answer: `await ref.ask(m)`, or from a thread `ref.ask(m).result(timeout=1)`.

        That raises AskTimeout after `timeout_ms`, ActorDead, or what the handler raised. Pykka's `block=True` waits
        here, `timeout` seconds at most.
        """
        seconds = timeout_seconds(timeout)
        future = self.cell.ask(message, timeout_ms)
        return future.get(timeout=seconds) if block else future

    def stop(self, *, block: bool = True, timeout: float | None = None) -> Any:
        """Stop after the messages sent so far. True, or False when it was dead already; or a future of that."""
        return self.ask(_ActorStop(), timeout_ms=math.inf, block=block, timeout=timeout)


class NamedRef(_ByAddress):
    """An actor of this system by name, looked up at each use: it may not have been spawned yet."""

    def __init__(self, system: Names, name: str) -> None:
        self._system = system
        self.name = name

    @property
    def address(self) -> str:
        return f"{self._system.address}/{self.name}"

    def tell(self, message: Any) -> None:
        self._system.tell_by_name(self.name, message)

    def ask(self, message: Any, *, timeout_ms: float | None = None) -> ActorFuture[Any]:
        return self._system.ask_by_name(self.name, message, timeout_ms)


class RemoteRef(_ByAddress):
    """An actor in another process. Messages are encoded by the caller: one that cannot be sent raises a MessageError
    here.
    """

    def __init__(self, remoting: Addresses, address: str) -> None:
        self._remoting = remoting
        self._address = address

    @property
    def address(self) -> str:
        return self._address

    def tell(self, message: Any) -> None:
        self._remoting.tell(self._address, message)

    def ask(self, message: Any, *, timeout_ms: float | None = None) -> ActorFuture[Any]:
        return self._remoting.ask(self._address, message, timeout_ms)
