"""SparkSource: one partition of a Spark DataFrame, through the PartitionFeed of the TaskManager process it runs in.

Spark can compute a partition again but not from the middle, so a new process skips the rows that were consumed
before the checkpoint. That is right only if Spark computes the same rows: the offset carries their fingerprint, and
rows that do not match it raise NonDeterministicSource. A new attempt in the surviving process reads the kept rows
again instead.
"""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa

from ....actors.operators.source import END, SourceState
from ....messages import CheckpointId
from ..errors import NonDeterministicSource
from ..paced_source import PacedSource
from .fingerprint import Fingerprint
from .partition_feed import PartitionFeed, PartitionPosition

RESOURCE = "spark-partition"
"""Under this name the TaskManager lends its feed: `context.resources`."""

_WHOLE_BATCH = 1 << 31

_ANOTHER = (
    "the DataFrame, or the data behind it, is another one than that of the job which took the checkpoint (give it that "
    "of then; or, to read this one from its beginning, another `uid` and allow_non_restored_state=True), or "
)


class SparkSource(PacedSource):
    """Subtask i reads the partition that its TaskManager drives. `schema` is the Arrow schema of the DataFrame.

    States: skipping to a recorded offset, then reading. Batches are as Spark made them, unless pacing cuts them.
    """

    def __init__(self, schema: pa.Schema, *, bounded: bool = True, records_per_second: float | None = None) -> None:
        super().__init__(_WHOLE_BATCH, records_per_second)
        self.schema = schema
        self.bounded = bounded
        self._rows = 0
        self._fingerprint = Fingerprint()
        self._target: PartitionPosition | None = None
        """Where to skip to; None when reading."""
        self._recorded: dict[CheckpointId, PartitionPosition] = {}

    def open(self) -> None:
        super().open()
        feed = self.context.resources.get(RESOURCE)
        if feed is None:
            raise RuntimeError(
                f"source {self.context.name!r} reads a Spark partition, and this TaskManager drives none: "
                "use a SparkCluster"
            )
        self._feed: PartitionFeed = feed
        feed.attach(self.context.wake)

    def seek(self, offset: dict[str, Any]) -> None:
        """Start at the oldest kept row and skip. An offset before that one is found impossible at the first `poll`."""
        self._target = PartitionPosition(offset["rows"], tuple(offset["fingerprint"]))
        begin = min(self._feed.start, self._target, key=lambda position: position.rows)
        self._rows, self._fingerprint = begin.rows, Fingerprint(begin.fingerprint)

    def poll(self) -> pa.RecordBatch | Literal[SourceState.END] | None:
        if self._target is not None and not self._skip(self._target):
            return None
        return super().poll()

    def read(self, max_records: int) -> pa.RecordBatch | Literal[SourceState.END] | None:
        batch = self._feed.read(self._rows, max_records)
        if batch is not None and batch is not END:
            self._rows += batch.num_rows
            self._fingerprint.update(batch)
        return batch

    def offset(self) -> dict[str, Any]:
        position = self._position()
        return {"rows": position.rows, "fingerprint": list(position.fingerprint)}

    def source_schema(self) -> pa.Schema:
        return self.schema

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self._recorded[checkpoint_id] = self._position()

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        """No attempt will be restored from before this checkpoint: the rows it covers are forgotten."""
        covered = [each for each in self._recorded if each <= checkpoint_id]
        if covered and self._target is None:
            self._feed.forget_before(self._recorded[max(covered)])
        for each in covered:
            del self._recorded[each]

    def on_checkpoint_aborted(self, checkpoint_id: CheckpointId) -> None:
        self._recorded.pop(checkpoint_id, None)

    def _position(self) -> PartitionPosition:
        """Where the next record comes from; while skipping, where that will be."""
        return self._target or PartitionPosition(self._rows, tuple(self._fingerprint.state))

    def _skip(self, target: PartitionPosition) -> bool:
        """Skip one batch towards `target`, so that messages are answered in between; True when it is reached."""
        if self._rows < target.rows:
            skipped = self.read(target.rows - self._rows)
            if skipped is None:
                return False
            if skipped is END:
                raise self._not_the_same(target, f"it has only {self._rows} rows now")
            self._feed.forget_before(PartitionPosition(self._rows, tuple(self._fingerprint.state)))
        if self._rows < target.rows:
            self.context.wake()
            return False
        if tuple(self._fingerprint.state) != target.fingerprint:
            raise self._not_the_same(target, "these rows are different now")
        self._target = None
        return True

    def _not_the_same(self, target: PartitionPosition, what: str) -> NonDeterministicSource:
        another = "" if self.context.is_failover else _ANOTHER
        return NonDeterministicSource(
            f"source {self.context.name!r} had consumed {target.rows} rows of its Spark partition before the "
            f"checkpoint, but {what}: {another}Spark computed the partition differently. Order the DataFrame by a "
            "unique key within its partitions, leave out random or time-dependent expressions, or checkpoint() it"
        )
