"""SolutionSet: what a delta iteration has found so far, a record per key. Flink: the solution set of DeltaIteration.

Candidates of a round are looked at when the round is over. Those that are better than what is known take its place and
are emitted, one for each key that has changed: the next round begins with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...state.backends.private_copy import is_changed, is_same, private_copy
from ...state.kinds.descriptors import ValueState
from ..errors import UnwantedResult
from ..unrun import UNRUN, refuse
from .collector import Collector, OutputTag
from .keyed_operator import KeyedOperator
from .timers import KeyedTimer

SOLUTION = OutputTag("solution")
"""What is known of each key when the iteration has ended."""


class SolutionSet(KeyedOperator):
    """Inputs: candidates, and the solution to begin with. `improve(known, candidate)` returns what is to be known from
    now on; None, or a record that equals the known one: nothing changes. Of a key of which nothing is known, any
    candidate is better.
    """

    inputs = 2

    _known = ValueState(object, name="known")
    _best = ValueState(object, name="best")
    """Of the candidates of this round."""

    def __init__(self, improve: Callable[[Any, Any], Any]) -> None:
        self._improve = improve

    def process(self, record: Any, out: Collector) -> None:
        best = self._best.value()
        better = record if best is None else self._better(best, record)
        if better is not None:
            self._best.update(better)
            self.timers.at_event_time(self.timestamp)

    def process_2(self, record: Any, out: Collector) -> None:
        self._known.update(record)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        best, known = self._best.value(), self._known.value()
        self._best.clear()
        before = private_copy(known)
        better = best if known is None else self._better(known, best)
        if better is not None and not _is_unchanged(before, known, better):
            self._known.update(better)
            out.collect(better)

    def on_end(self, out: Collector) -> None:
        for _ in self.keys():
            out.collect_to(SOLUTION, self._known.value())

    def _better(self, known: Any, candidate: Any) -> Any:
        found = self._improve(known, candidate)
        if UNRUN[type(found)]:
            refuse("the improve of a delta iteration", found, "return the better record, or None")
        if isinstance(found, bool | np.bool_) and type(found) is not type(candidate):
            raise UnwantedResult(
                f"the improve of a delta iteration returned {found}: wanted the record that is to be known from now "
                "on, or None if nothing changes; write `candidate if ... else None`"
            )
        if found is not None and found is not candidate and found is not known:
            self._check_key(found)
        return found

    def _check_key(self, found: Any) -> None:
        """One under another key would be found under the key that it does not have."""
        keys = self._selectors[0].keys([found])
        if keys != [self.key]:  # lists, in which a NaN equals itself
            raise UnwantedResult(
                f"the improve of a delta iteration returned a record of the key {keys[0]!r:.60} for the key "
                f"{self.key!r:.60}: wanted one of the same key; records of other keys are candidates: return them in "
                "step"
            )


def _is_unchanged(before: Any, known: Any, better: Any) -> bool:
    """`before`: a copy of what was known before `improve` got it, which may have changed it in place."""
    return is_same(before, better) or (better is known and not is_changed(before, known))
