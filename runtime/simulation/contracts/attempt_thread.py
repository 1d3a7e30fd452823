"""AttemptThread: the thread of one attempt, which does what it is given, one thing after the other.

An attempt can be frozen in the middle of a thing only if it has a thread of its own. Its owner waits for each outcome,
so never do two attempts run at a time: a run is the same whenever it is repeated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, TypeAlias

from .outside_calls import OutsideCalls


@dataclass(frozen=True, slots=True)
class Done:
    value: Any


@dataclass(frozen=True, slots=True)
class Died:
    """It was killed."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The thing raised this."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Frozen:
    """It stands still in the middle of the thing."""


_WAITING_S, _LONG_S = 0.001, 0.05

Outcome: TypeAlias = "Done | Died | Failed | Frozen"
Thing: TypeAlias = Callable[[], Any]


class AttemptThread:
    """`watch` makes the OutsideCalls of this attempt, given what to call to freeze."""

    def __init__(self, watch: Callable[[Callable[[], None]], OutsideCalls]) -> None:
        self.calls = watch(self._freeze)
        self._things: SimpleQueue[Thing | None] = SimpleQueue()
        self._outcomes: SimpleQueue[Outcome] = SimpleQueue()
        self._may_go_on = threading.Event()
        self._thread = threading.Thread(target=self._run, name="attempt", daemon=True)
        self._thread.start()

    def do(self, thing: Thing, meanwhile: Callable[[float], None]) -> Outcome:
        """Have it done; returns when it is, or when the attempt stands still or is dead. `meanwhile` is called again
        and again as long as it waits for another thread, or takes long: with how many seconds it has taken.
        """
        self._things.put(thing)
        begun = monotonic()
        while True:
            try:
                return self._outcomes.get(timeout=_WAITING_S if self.calls.is_waiting else _LONG_S)
            except Empty:
                meanwhile(monotonic() - begun)

    def wake(self) -> Outcome:
        """Go on where it was frozen; the outcome of that thing."""
        self._may_go_on.set()
        return self._outcomes.get()

    def end(self) -> None:
        """It is given nothing more. Not for one that is frozen."""
        self._things.put(None)
        self._thread.join()

    def _freeze(self) -> None:
        self._outcomes.put(Frozen())
        self._may_go_on.wait()

    def _run(self) -> None:
        while (thing := self._things.get()) is not None:
            self._outcomes.put(self._outcome(thing))

    def _outcome(self, thing: Thing) -> Outcome:
        self.calls.install()
        try:
            value = thing()
        except BaseException as error:  # noqa: BLE001 - whatever a connector raises
            return Died() if self.calls.is_dead else Failed(error)
        finally:
            self.calls.remove()
        return Died() if self.calls.is_dead else Done(value)
