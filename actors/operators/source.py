"""Source: a replayable origin of batches. Its offset is operator state; implementations live in runtime/connectors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Any, ClassVar, Literal, NamedTuple, cast

import pyarrow as pa

from ...messages import CheckpointId, StateDescription
from ..errors import CannotRescale, UnwantedResult
from ..flow.elements import Batch
from ..unrun import ONE_RECORD, RETURN, refuse_batch, result_of
from .of_records import Columns, Out
from .operator import Operator


class SourceState(Enum):
    """What `poll` may return besides a batch and None: END."""

    END = "end"


END: Literal[SourceState.END] = SourceState.END
"""What `poll` returns, from then on, when a bounded source has run dry."""


@dataclass(frozen=True, slots=True)
class FromSplit:
    """What `poll` returns in place of a batch: the records, and the id of the one split that they all come from, as
    `current_splits` names it.
    """

    split: str
    records: Batch


class RecordedOffset(NamedTuple):
    """What a snapshot holds of one source subtask: which one of how many it was, and its offset."""

    subtask_index: int
    parallelism: int
    offset: Any


class Source(Operator[Any, Out]):
    """A source subtask. Before `open` the task gives it its share by `context.subtask_index` and `context.parallelism`.

    Contract: after `seek(offset())` the same records come again, in the same order; batch boundaries may differ. After
    `rescale` of all offsets of one checkpoint, all subtasks together emit what was left to emit, each record once.
    """

    bounded: bool = True

    _how_to_bound: ClassVar[str] = "let it have an end, with bounded = True and END from poll"
    """What to write so that it ends, in a test for example; empty: it cannot."""

    gives_changes: bool = False
    """Whether its records are changes of rows, of which a later one replaces or removes what an earlier one has set. A
    job that lets changes of one row overtake each other on their way to a sink of rows is warned of when it is
    submitted.
    """

    paused_splits: frozenset[str] = frozenset()
    """Splits that run ahead of others that wait for them (`assign_timestamps(max_drift_ms=...)`): `poll` should leave
    them out. When all are, it is not called.
    """

    splits_only_after_rescale: bool = False
    """`current_splits` returns None until the parallelism has changed, as that of a source on an IndexShare may: where
    `assign_timestamps` does not stand in the task of the source, there is no warning that it does not see its splits.
    """

    def poll(self) -> Columns | list[Out] | FromSplit | Literal[SourceState.END] | None:
        """The next batch; None when there is none yet (the source then calls `self.context.wake` when there is); or
        END.

        A batch is a list of records, which the next operator gets as they are, or a `pa.RecordBatch`, whose rows it
        gets as Rows: `row["delay"]` or `row.delay`. A dict in a list is read by brackets alone; a `DictRow(record)` by
        attribute too.

        Never block: the task's thread takes no checkpoint, cancellation or record of another operator meanwhile. Let a
        thread of the source's own wait, put what came where `poll` finds it, and call `self.context.wake()`, which any
        thread may; or let `poll_delay_ms` say when to look again. A `poll` that holds the thread for more than
        `slow_step_ms` (StreamEnvironment) is logged.

        A source that defines `current_splits` returns `FromSplit(split, batch)` in place of a batch.
        """
        raise NotImplementedError(f"{type(self).__name__}.poll is not defined")  # abstract

    def current_splits(self) -> Collection[str] | None:
        """The ids of the splits (partitions, files, key ranges) that this subtask reads now; None, as here: its records
        are one stream. Called before each `poll`, so keep it cheap.

        Define it where one subtask reads several splits in turn, of which one may lag behind or be empty:
        `assign_timestamps` right behind the source then keeps a watermark for each. An id that is missing has ended,
        and holds nothing back; a new one is waited for. The same split has the same id in each attempt, in whichever
        subtask. Flink: SourceSplit.splitId.
        """
        return None

    def offset(self) -> Any:
        """Plain data: where the next `poll` reads. Recorded in the checkpoint, with the barrier."""
        raise NotImplementedError(f"{type(self).__name__}.offset is not defined")  # abstract

    def seek(self, offset: Any) -> None:
        """Continue at a recorded offset. Called after `open`, before the first `poll`; not called on a fresh start."""
        raise NotImplementedError(f"{type(self).__name__}.seek is not defined")  # abstract

    def rescale(self, offsets: Sequence[Any]) -> None:
        """Continue in place of `seek` when the parallelism has changed: `offsets` are those of all old subtasks, in
        their order, and each new subtask takes its share of what they leave. A source that cannot raises
        CannotRescale, as this one does.
        """
        raise CannotRescale(
            f"source {self.context.name!r} was stored with parallelism {len(offsets)} and cannot continue with "
            f"{self.context.parallelism}: {type(self).__name__} does not define rescale; keep parallelism="
            f"{len(offsets)} for it (operators after it may be rescaled)"
        )

    def poll_delay_ms(self) -> float | None:
        """After `poll` returned None: when to poll again at the latest; None to wait for `wake` alone. A source of the
        user's that has never called it is looked at once a second.
        """
        return None

    def _ends_by_itself(self) -> bool:
        """The job is being stopped. Whether `poll` returns END by itself, once all is emitted that must not be lost;
        False, as here: nothing is polled any more. May be called again.
        """
        return False

    def _hold(self, is_held: bool) -> None:
        """A barrier has passed behind which nothing may come; or that is over, and the job goes on."""

    def _is_whole(self) -> bool:
        """Whether `offset` holds all that would be lost with the job. The barrier of a savepoint, or of a stop, waits
        until it does; asked again when something was done aside.
        """
        return True

    def _belongs_to_others(self, offset: Any) -> bool:
        """Whether parts of what this subtask has recorded belong to other subtasks now, though the parallelism is the
        same: then `rescale` is called.
        """
        return False

    def _forget_before(self, checkpoint_id: CheckpointId) -> None:
        """No attempt will be restored from a checkpoint of this job that is older than this one."""

    def _origin_of(self, index: int | None) -> str:
        """What a sender calls a record of the batch that `poll` returned last; `index` None: one of these. Empty, as
        here: not known.
        """
        return ""

    def _own_states(self) -> tuple[StateDescription, ...]:
        offset = {"source": type(self).__name__, "rescales": can_rescale(self)}
        return (StateDescription("source-offset", "SourceOffset", offset),)

    def source_schema(self) -> pa.Schema | None:
        """The schema of its batches if they are columnar; None for Python records."""
        return None


def continue_source(source: Source, recorded: Sequence[RecordedOffset]) -> None:
    """Put an open source where a checkpoint left off; nothing recorded is a fresh start. Raises what the source does.

    `recorded`: of all subtasks that the checkpoint knows, in any order.
    """
    if not recorded:
        return
    ordered = sorted(recorded, key=lambda each: each.subtask_index)
    was, now = ordered[0].parallelism, source.context.parallelism
    assert [each[:2] for each in ordered] == list(product(range(was), [was])), f"not one checkpoint: {ordered}"
    own = ordered[source.context.subtask_index].offset if was == now else None
    if was == now and not source._belongs_to_others(own):
        _call(source, "seek", own)
    else:
        _call(source, "rescale", [each.offset for each in ordered])


def poll(source: Source) -> Batch | FromSplit | Literal[SourceState.END] | None:
    """What its `poll` returns; raises UnwantedResult for a coroutine or a generator, and for one record in place of a
    batch, whose fields would be the records.
    """
    try:
        polled = _call(source, "poll")
    except StopIteration as error:
        raise UnwantedResult(
            f"{type(source).__name__}.poll raised StopIteration: it returns END when the data has ended; as in "
            "next(iterator, None), which gives None in place of raising"
        ) from error
    if polled is None or polled is END:
        return polled
    kind = type(polled.records if isinstance(polled, FromSplit) else polled)
    if kind in ONE_RECORD or (issubclass(kind, tuple) and kind is not tuple) or not hasattr(kind, "__len__"):
        refuse_batch(f"{type(source).__name__}.poll", polled)
    return cast("Batch | FromSplit", polled)


def offset_of(source: Source) -> Any:
    """The same of its `offset`."""
    return _call(source, "offset")


def _call(source: Source, method: str, *args: Any) -> Any:
    return result_of(source, method, *args, in_place_of_yield=RETURN)


def can_rescale(source: Source) -> bool:
    """Whether it says how."""
    return type(source).rescale is not Source.rescale
