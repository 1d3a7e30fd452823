"""CommittableWriter and Committer: many subtasks write, and one commits for all of them, in one act per checkpoint.

For tables of a lake, where each commit is a new version that readers see: writers write files, as many as there are
subtasks, and send their names to one subtask before the barrier, in band. So when the barrier has come there from all
writers, all names of the checkpoint have, too.

    stream.process(Writer(path)).sink_to(TableCommitter(path), parallelism=1)

    writers:    write(batch)     barrier: finish() -> committables, sent on before it
    committer:  takes committables, stages them with the snapshot, and commits them when the checkpoint is complete

Files of an attempt that died before its checkpoint was complete are in no table; removing them is up to the table's own
maintenance, which goes by their age. Flink: TwoPhaseCommittingSink with a global committer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ...messages import CheckpointId
from ..flow.elements import Batch
from ..unrun import RETURN, result_of
from .collector import Collector
from .ledger_sink import LedgerSink
from .marker import Marker
from .operator import Operator, Takes


class CommittableWriter(Operator):
    """Writes what comes, and says at each barrier what it has written: committables, plain data such as file names."""

    takes: ClassVar[Takes] = "any"

    # -- what a subclass supplies

    def write(self, batch: Batch) -> None:
        """Add a batch to what is being written."""
        raise NotImplementedError(f"{type(self).__name__}.write is not defined")  # abstract

    def finish(self) -> Sequence[Any]:
        """Make all that was written since the last call durable, and return what is to be committed of it; an empty
        list if there is nothing. Names must be unique over all attempts: `self.context.attempt_id` is.
        """
        raise NotImplementedError(f"{type(self).__name__}.finish is not defined")  # abstract

    # -- when it happens

    def process_batch(self, batch: Any, out: Collector) -> None:
        result_of(self, "write", batch)

    def before_barrier(self, checkpoint_id: CheckpointId, out: Collector) -> None:
        self._send(out)

    def on_end(self, out: Collector) -> None:
        self._send(out)

    def _send(self, out: Collector) -> None:
        for committable in result_of(self, "finish", in_place_of_yield=RETURN):
            out.collect(committable)


class Committer(LedgerSink):
    """Takes committables of all writers. Give it `parallelism=1`: two would make two acts of one checkpoint."""

    takes: ClassVar[Takes] = "records"

    # -- what a subclass supplies, beside `last_marker`

    def commit(self, committables: list[Any], marker: Marker) -> None:
        """As `apply` of a LedgerSink: all of these and the marker in one atomic act."""
        raise NotImplementedError(f"{type(self).__name__}.commit is not defined")  # abstract

    def merge(self, committables: list[Any]) -> list[Any]:
        """The barrier has come: committables that stand for the same data, such as one file in place of many small
        ones. It is done before the commit, so readers never see the small ones; the task stands still meanwhile. Called
        again after a failure. By default they stay as they are.
        """
        return committables

    # -- when it happens

    def _opened(self) -> None:
        if self.context.parallelism != 1:
            raise ValueError(
                f"sink {self.context.name!r}: wanted parallelism 1, as it commits for all writers, found "
                f"{self.context.parallelism}: sink_to({type(self).__name__}(...), parallelism=1)"
            )
        super()._opened()

    def stage(self, batches: list[Batch]) -> Any:
        committables = [committable for batch in batches for committable in batch]
        if not committables:
            return None
        return super().stage([list(result_of(self, "merge", committables, in_place_of_yield=RETURN))])

    def apply(self, batches: list[Any], marker: Marker) -> None:
        committables = [committable for batch in batches for committable in batch]
        result_of(self, "commit", committables, marker)
