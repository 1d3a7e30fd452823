"""KeptOuts: the collectors of calls that are done, and that code of theirs still holds.

A closed collector refuses what is emitted to it. But `out.collect` is a method of lists: whoever has looked it up
before, as in `loop.call_later(5, out.collect, record)`, can still add to the list, and that is seen here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from sys import getrefcount
from typing import Final, TypeAlias

from ...state.backends.shared_backend import SharedBackend
from ...state.backends.unit_of_work import UnitOfWork
from ...state.errors import CallIsOver
from ..operators.collector import OWN_REFERENCES, Collector
from ..operators.outlasting_threads import OtherThreads, warn_of_threads
from .call import Call

KeptOut: TypeAlias = "tuple[Collector, Callable[[], object]]"
"""A closed one, and what to do when something is added."""
_MOST_KEPT: Final = 100


class KeptOuts:
    """Of one operator. `close` on the thread that has the call in hand, `look` on the task's."""

    def __init__(self, backend: SharedBackend) -> None:
        self._backend = backend
        self._kept: list[KeptOut] = []
        self._most = _MOST_KEPT

    def close(self, call: Call, unit: UnitOfWork) -> None:
        """The call is done: what its code emits from now on is a misuse. What it has emitted stays in `call.out`."""
        misuse = partial(self._backend.refuse, unit, "out", unit.begun or ())
        out = call.out
        out.close_kept(misuse)
        if getrefcount(out) > OWN_REFERENCES:
            call.out = Collector()
            for tag, batch in out.all_taken():
                call.out.put(tag, batch)
            self.add([(out, misuse)])

    def add(self, kept: Sequence[KeptOut]) -> None:
        """All of their records have been taken out."""
        self._kept += kept
        if len(self._kept) >= self._most:
            self.look()
            self._most = _MOST_KEPT + 2 * len(self._kept)

    def look(self) -> None:
        """Whether something was added to one: then the backend is notified of the misuse."""
        kept, self._kept = self._kept, []
        for out, misuse in kept:
            if out or any(out.sides()):
                with suppress(CallIsOver):
                    misuse()
            elif getrefcount(out) > OWN_REFERENCES:
                self._kept.append((out, misuse))

    def warn_of_threads(self, operator: str, threads: OtherThreads) -> None:
        """The data of this operator has ended."""
        warn_of_threads(operator, [out for out, _ in self._kept], threads)
