"""Budget: how many histories a test may take, or how long, as its command line says, and how many the tests have taken.

Known without pytest, and cheap to import: `assert_exactly_once` asks here, and the pytest plugin sets it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

DEFAULT_HISTORIES = 100


@dataclass(slots=True)
class Budget:
    """`minutes`: of real time, for each assertion, in place of a number of histories. `only_seed`: a single history is
    run, the one with this seed.
    """

    histories: int = DEFAULT_HISTORIES
    minutes: float | None = None
    only_seed: int | None = None
    ran: int = 0
    violations: int = 0

    def seeds(self, histories: int | None = None, first_seed: int | None = None) -> range:
        """The seeds to run. What the test itself says goes before the number on the command line, but a single seed
        on the command line goes before everything.
        """
        if self.only_seed is not None:
            return range(self.only_seed, self.only_seed + 1)
        first = first_seed or 0
        return range(first, first + (self.histories if histories is None else histories))

    def minutes_for(self, histories: int | None = None, minutes: float | None = None) -> float | None:
        """How long an assertion that says this may take; None if a number of histories says when it ends."""
        if self.only_seed is not None or histories is not None:
            return None
        return self.minutes if minutes is None else minutes

    def seeds_within(
        self, minutes: float, first_seed: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> Iterator[int]:
        """As many seeds as fit into these minutes from now, and at least one. `clock`: in seconds."""
        return _until(clock() + 60 * minutes, first_seed or 0, clock)


def _until(end_s: float, first_seed: int, clock: Callable[[], float]) -> Iterator[int]:
    for seed in count(first_seed):
        yield seed
        if clock() >= end_s:
            return


BUDGET = Budget()
"""This process's."""
