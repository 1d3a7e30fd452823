"""Runs: when a run is worth it, the one that goes on, and what past ones have emitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

from ...state.backends.shared_backend import SharedBackend
from ..operators.keyed_operator import KeyedOperator
from ..operators.operator import Operator
from .backlog import Backlog
from .call import Call
from .event_loop import CallLoop
from .frozen_calls import CallInFlight
from .run import PlainStates, Run, RunResults
from .settings import AsyncSettings
from .timer_calls import TimerCalls

_SHORT_RUN: Final = 64
"""A run that ends after fewer records than these was not worth it."""
_MOST_PATIENCE: Final = 1024


class Runs:
    """Of one operator; on the task's thread. Who has them sees to it that no call is in flight when one begins."""

    def __init__(self, operator: Operator, settings: AsyncSettings, backend: SharedBackend, host: CallLoop) -> None:
        self._operator = operator
        self._settings = settings
        self._backend = backend
        self._host = host
        self._is_keyed = isinstance(operator, KeyedOperator)
        self._has_timers = TimerCalls.are_of(operator)
        self._plain: PlainStates | None = None
        self._began_wall_ms = 0
        self._next = 0
        """The next run may begin with the record of this number: coroutines that wait make it come later and later."""
        self._patience = 1
        self.current: Run | None = None
        self.results = RunResults()
        """Of runs that are over: they leave before all else."""

    def open(self) -> None:
        """The operator's state has been restored."""
        self._plain = PlainStates.of(self._operator)

    def begin(self, backlog: Backlog, number: int, prefix: str) -> Run | None:
        """A run of the next batch, whose first record has this number; None: none is worth it, or there is no batch."""
        if (
            number < self._next
            or self._settings.idempotency_key is not None
            or self._settings.rate_per_second is not None
        ):
            return None
        piece = backlog.take_piece()
        if piece is None:
            return None
        operator: Any = self._operator
        process = operator.process_2 if piece.input_index else operator.process
        self._began_wall_ms = self._operator.context.clock.wall_ms()
        limit_ms = self._settings.limit_ms(0)
        self.current = Run(
            piece, number, self._backend, process, prefix, self._plain, self._host, limit_ms, self._has_timers
        )
        return self.current

    def end(self, run: Run, backlog: Backlog, first_number: int) -> Call | None:
        """It is over; returns the call that has ended it."""
        taken, self.current = run.number - first_number, None
        self.results.take_over(run.results)
        backlog.put_back(run.piece)
        call = run.stopped
        if call is None or taken > _SHORT_RUN:
            self._patience = 1
        else:
            self._patience = min(self._patience * 2, _MOST_PATIENCE)
        if call is not None:
            self._next = run.number + self._patience * _SHORT_RUN
            call.began_wall_ms = self._began_wall_ms
        return call

    def frozen(self) -> Callable[[], Iterator[CallInFlight]]:
        """What the records of runs have emitted, and the call that has ended the current one: with the lock in hand.
        The callable makes the calls, on any thread.
        """
        kept, stopped = [self.results.copy()], list[CallInFlight]()
        if self.current is not None:
            kept.append(self.current.results.copy())
            stopped += self.current.frozen(keyed=self._is_keyed, began_wall_ms=self._began_wall_ms)
        return lambda: chain(*(each.frozen(keyed=self._is_keyed) for each in kept), stopped)
