"""WatchedCollector: finds a record that its operator changes after it has collected it.

A task sends records on in batches, so what an operator changes in one that it has collected, as in a dict that it fills
again for the next record, is in the earlier ones too, or not: it depends on how many records came at once. In simulated
clusters, the debugger and the harness each record is compared with what it was. In a running task that would cost more
than all the rest.
"""

from __future__ import annotations

from typing import Any

from ....actors.errors import UnwantedResult
from ....actors.operators.collector import Collector
from ....actors.operators.operator import Operator
from ....actors.tasks.operator_hooks import blame
from ....state.backends.private_copy import CHANGEABLE, is_changed, private_copy


class WatchedCollector(Collector):
    """Of one operator."""

    __slots__ = ()

    def collect(self, record: Any, /) -> None:
        if type(record) in CHANGEABLE:
            self._watch[1].append((record, private_copy(record)))
        self.append(record)

    def _seal(self) -> None:
        operator, watched = self._watch
        self._watch = (operator, [])
        for record, as_it_was in watched:
            if is_changed(as_it_was, record):
                with blame(operator):
                    raise UnwantedResult(
                        f"{type(operator).__name__} has changed a record after out.collect(...): it was "
                        f"{as_it_was!r:.80}, and is {record!r:.80} now. Collect a new one for each, as in "
                        f"out.collect({'dict' if isinstance(record, dict) else type(record).__name__}(record))"
                    )
        super()._seal()


def watched_collector(operator: Operator) -> Collector:
    """A new one for this operator."""
    made = WatchedCollector()
    made._watch = (operator, [])
    return made
