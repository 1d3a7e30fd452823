"""KeptCollectors: collectors that operators of a chain have kept beyond their call, and uses of what a call was lent.

Records that come so are lost, unless the task goes back to its last checkpoint: so each use fails the task. Of
coroutines `KeptOuts` does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount

from ...state.errors import CallIsOver
from ..operators.collector import OWN_REFERENCES, Collector
from ..operators.operator import Operator
from ..operators.outlasting_threads import warn_of_threads
from .operator_hooks import blame


class KeptCollectors:
    """Of one chain."""

    def __init__(self) -> None:
        self.misused: list[tuple[Operator, CallIsOver]] = []
        """Uses that are to fail the task: threads add them."""
        self._kept: list[tuple[Operator, Collector, Callable[[], None]]] = []

    def close(self, operator: Operator, kept: Collector) -> None:
        """The operator, or a thread of its, may fill this one at any time."""

        def misuse() -> None:
            if self.misused:
                return  # the task fails already, and there may be thousands of threads
            error = CallIsOver("out", operator.context.name, was_kept=True)
            self.misused.append((operator, error))
            raise error

        kept.close_kept(misuse)
        self._kept.append((operator, kept, misuse))
        self.look()

    def look(self) -> None:
        """`collect` is a method of lists: whoever had it before the closing can still add to the list."""
        kept, self._kept = self._kept, []
        for operator, collector, misuse in kept:
            if collector or any(collector.sides()):
                with blame(operator):
                    misuse()
            if getrefcount(collector) > OWN_REFERENCES:
                self._kept.append((operator, collector, misuse))
        if self.misused:
            self.refuse()

    def note(self, operator: Operator, error: CallIsOver) -> None:
        """From any thread: its keyed state was used by another one than the task's."""
        if not self.misused:  # the task fails with it
            self.misused.append((operator, error))

    def refuse(self) -> None:
        """Raises the first misuse, as a UserCodeError of its operator."""
        operator, error = self.misused[0]
        with blame(operator):
            raise error

    def data_ended(self) -> None:
        """A last look; and a warning of threads that may still emit."""
        self.look()
        for operator in {id(each): each for each, _, _ in self._kept}.values():
            held = [each for owner, each, _ in self._kept if owner is operator]
            warn_of_threads(operator.context.name, held, operator.context.threads)
