"""SinkLife: records come, a barrier comes and its checkpoint is complete, three times; then the data has ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ....actors.operators.operator import Operator
from ..harness.harness import OperatorHarness
from .life import Life, Step, Watch
from .outside_calls import Fault, pools_in_line

CHECKPOINTS = 3
RECORDS_BETWEEN = 4
MOST_WAITS = 100


def settle(harness: OperatorHarness) -> bool:
    """Let time pass until the sink has nothing more to do; whether it came to that."""
    last = harness._attempt.last_checkpoint
    for _ in range(MOST_WAITS):
        if all(operator._has_applied_all for operator in harness.operators):
            return True
        harness.advance(1_000)
        harness.complete(last)
    return False


class SinkLife(Life):
    """`records`: those of the whole life."""

    def __init__(
        self, sink: Operator, records: Sequence[Any], watch: Watch, faults: Sequence[Fault | None] = ()
    ) -> None:
        super().__init__(sink, watch, faults)
        self._records = records

    def live(self) -> None:
        with pools_in_line():
            super().live()

    def _steps(self, harness: OperatorHarness) -> Iterator[Step]:
        complete = partial(self._complete, harness)
        covered = self.covered
        if covered:
            yield f"informed that checkpoint {covered} is complete", complete
        for checkpoint in range(covered + 1, CHECKPOINTS + 1):
            first = (checkpoint - 1) * RECORDS_BETWEEN
            batch = list(self._records[first : first + RECORDS_BETWEEN])
            yield f"given {batch}", partial(harness.process, batch)
            if checkpoint == CHECKPOINTS:
                yield "at the end of its data", harness.end
            yield f"at the barrier of checkpoint {checkpoint}", harness.snapshot
            yield f"informed that checkpoint {checkpoint} is complete", complete
        yield "waited for", partial(settle, harness)
        yield "closed", harness.close

    def _complete(self, harness: OperatorHarness) -> None:
        """The newest checkpoint is."""
        if self.newest is not None:
            harness.complete(self.newest)
