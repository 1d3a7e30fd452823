"""Budget: how many histories a test may take, as its command line says, and how many the tests have taken.

Known without pytest, and cheap to import: `assert_exactly_once` asks here, and the pytest plugin sets it.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_HISTORIES = 100


@dataclass(slots=True)
class Budget:
    """`only_seed`: a single history is run, the one with this seed."""

    histories: int = DEFAULT_HISTORIES
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


BUDGET = Budget()
"""This process's."""
