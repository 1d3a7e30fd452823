"""IdempotentSink: upserts by key. At least once, and right in the end, as the same upsert twice is the same as once.

    records:    wait until there are `most_rows`, or none come for now, and are upserted
    barrier:    what waits is upserted before the snapshot, or the attempt fails: a checkpoint covers what is outside
    restore:    records behind the checkpoint come again, and are upserted again

**What it promises.** When a job has ended, each key has the value of its last record, whatever died in between: if all
records of a key come to one subtask in their order, and if what is written depends on the record alone. With a `key`
they do where the sink has another parallelism than what it reads; `key_by` it before an operator that is in between.

**What it does not.** A reader meanwhile may see a key go back to an older value, and forward again, after each restart.
A record that a restarted job makes otherwise (from the clock, from chance) is there in its last version, beside keys
that only its first version had. A zombie, a process that was taken for dead and wakes up, may set keys back that its
successor has set. A delete is repeatable, but a row that was deleted may come back until the delete is repeated. An
increment (`count = count + 1`) counts twice: send totals, or use a LedgerSink. Who writes the same keys from elsewhere
is overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from ...messages import CheckpointId
from ..flow.elements import Batch
from ..flow.key_selector import KeySelector
from ..flow.records import merged
from ..unrun import result_of
from .collector import Collector
from .operator import Operator, Takes
from .patience import RETRY_MS, Patience

KeyOfRecord: TypeAlias = "str | int | Callable[[Any], Any]"

TRIES_AT_A_BARRIER = 3


class IdempotentSink(Operator):
    """A sink whose `upsert` sets the rows of keys. All methods run on the task's thread."""

    takes: ClassVar[Takes] = "any"

    key: KeyOfRecord | Sequence[KeyOfRecord] | None = None
    """The column, attribute, position or function that makes the key of a record, or several of these. Of the records
    of one key that wait, only the last is upserted then. None: all are, in their order.
    """
    most_rows: int = 10_000
    """When this number of rows wait, they are upserted."""
    retry_ms: float = RETRY_MS
    """How long `upsert` is tried again before the attempt fails with OutsideUnavailable. Until then the sink takes no
    more records. A barrier does not wait: when it comes, three tries at once decide.
    """

    # -- what a subclass supplies

    def upsert(self, batch: Batch) -> None:
        """Set the rows of all these records, a list or a `pa.RecordBatch`; return when they are durable. Called again
        with the same records when it raised, and after a restart. It must not take for ever: give the client a time
        limit.
        """
        raise NotImplementedError(f"{type(self).__name__}.upsert is not defined")  # abstract

    # -- when it happens

    @property
    def _row_key(self) -> tuple[KeyOfRecord, ...]:
        return () if self.key is None else _parts(self.key)

    def _opened(self) -> None:
        self._patience = Patience(f"sink {self.context.name!r}", self.context.clock, self.retry_ms)
        self._waiting: list[Batch] = []
        self._rows = 0
        self._selector = None if self.key is None else KeySelector(*_parts(self.key)).of_operator(self.context.name)

    def process_batch(self, batch: Batch, out: Collector) -> None:
        self._waiting.append(batch)
        self._rows += len(batch)
        if self._rows >= self.most_rows or self._patience.is_tried:
            self._flush()

    def on_idle(self, out: Collector) -> float | None:
        if not self._waiting:
            return None
        self._flush()
        return self._patience.due_in_ms() if self._waiting else 0.0

    def _lost_without_super(self, method: str, checkpoint_id: CheckpointId) -> str:
        is_lost = method == "on_checkpoint" and self._waiting
        return "what waits is not in the checkpoint, nor outside" if is_lost else ""

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        for left in reversed(range(TRIES_AT_A_BARRIER)):
            if self._try(is_last=not left):
                return

    @property
    def _wants_no_input(self) -> bool:
        return self._patience.is_tried

    # -- details

    def _flush(self) -> None:
        if self._patience.due_in_ms() == 0:
            self._try()

    def _try(self, *, is_last: bool = False) -> bool:
        """Upsert all that waits; whether none does any more. Raises when there is no use in another try."""
        if not self._waiting:
            return True
        self._waiting = self._merged()
        try:
            while self._waiting:
                result_of(self, "upsert", self._waiting[0])
                del self._waiting[0]
        except Exception as error:  # noqa: BLE001 - of the outside system: whatever its client raises
            self._patience.failed("upsert", error, is_last=is_last)
            return False
        self._rows = 0
        self._patience.succeeded()
        return True

    def _merged(self) -> list[Batch]:
        """As few batches as can be, in order; of each key the last record only, within each."""
        batches = merged(self._waiting)
        return batches if self._selector is None else [_last_of_each_key(each, self._selector) for each in batches]


def _parts(key: Any) -> tuple[KeyOfRecord, ...]:
    return tuple(key) if isinstance(key, list | tuple) else (key,)


def _last_of_each_key(batch: Batch, selector: KeySelector) -> Batch:
    """In the order of those last records."""
    last = {key: position for position, key in enumerate(selector.keys(batch))}
    if len(last) == len(batch):
        return batch
    positions = sorted(last.values())
    if isinstance(batch, pa.RecordBatch):
        return batch.take(pa.array(positions, pa.int64()))
    return [batch[position] for position in positions]
