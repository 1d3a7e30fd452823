"""DeletedTimers: which operators of a run have deleted timers that were due.

Whether such a timer fires depends on where batches end, so histories differ in it, with faults and without.
"""

from __future__ import annotations

from ....actors.operators.keyed_operator import KeyedOperator
from ....actors.operators.operator import Operator


class DeletedTimers:
    """Of all operators that it looks at."""

    def __init__(self) -> None:
        self._operators: list[KeyedOperator] = []

    def look_at(self, operator: Operator) -> None:
        """One has been made. It gets its timers later."""
        if isinstance(operator, KeyedOperator):
            self._operators.append(operator)

    @property
    def found(self) -> dict[str, str]:
        """By operator, what is to be said of it."""
        timers = (getattr(each, "timers", None) for each in self._operators)
        looks = [each.overdue for each in timers if each is not None and each.overdue is not None]
        return {each.operator_name: each.told for each in reversed(looks) if each.is_seen}

    @property
    def told(self) -> list[str]:
        return list(self.found.values())
