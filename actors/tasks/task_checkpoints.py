"""TaskCheckpoints: the checkpoints of one attempt. Takes each snapshot, has it written, and reports what became of it.

A checkpoint is taken (its barrier goes on to the outputs), then written on another thread, then acknowledged; or it is
declined, which a cancel marker tells the tasks behind this one. An unaligned snapshot waits in between until all that
is in flight is known. Ids only grow: one that is not newer than the last is over. The task owns this part, and calls it
on its own thread, from the time that its operators and channels are built. When a checkpoint is due is not decided
here, nor what a source does behind its barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...messages import AbortReason, CheckpointId, DeclineCheckpoint, InputWatermark, TaskDeployment
from ...state.errors import StateNotStorable
from ..barriers.barrier_handler import Aborted, Aligned
from ..context import ActorContext, Ref
from ..failure import chain_of
from ..flow.elements import CancelCheckpointMarker, CheckpointBarrier
from ..operators.loops import LoopHead
from ..operators.source import Source, offset_of
from ..passing_errors import is_repeatable
from .operator_hooks import blame
from .snapshot_under_way import SnapshotFailed, SnapshotUnderWay, SnapshotWritten
from .task_setup import TaskParts


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the task is in its data when it takes a snapshot."""

    records_in: int
    data_ended: bool
    watermarks: tuple[InputWatermark, ...] = ()
    """Of its input channels."""


class TaskCheckpoints:
    """One attempt's. `source`: the task's, when it is one of a source."""

    def __init__(
        self, deployment: TaskDeployment, parts: TaskParts, source: Source | None, context: ActorContext, owner: Ref
    ) -> None:
        self._deployment = deployment
        self._parts = parts
        self._source = source
        self._context = context
        self._owner = owner
        self._last = CheckpointId(0)
        self.unaligned: SnapshotUnderWay | None = None
        """Taken, and to be written when all that is in flight is known: as long as there is one, `read_ahead`."""

    @property
    def newest(self) -> CheckpointId:
        """The last that was taken here; 0: none. From any thread."""
        return self._last

    def is_over(self, checkpoint_id: CheckpointId) -> bool:
        """Whether it, or a newer one, has been taken."""
        return checkpoint_id <= self._last

    def take(
        self, barrier: CheckpointBarrier, progress: Progress, *, overtaking: bool = False, is_unaligned: bool = False
    ) -> None:
        """Take the snapshot now, send the barrier on, and have the snapshot written. Nothing, if it is over.

        `overtaking`: barriers are missing, so it waits for what is in flight on their channels. `is_unaligned`: and not
        only those that come back round a loop.
        """
        if self.is_over(barrier.checkpoint_id):
            return
        self._give_up_unaligned(AbortReason.SUBSUMED)
        self._last = barrier.checkpoint_id
        parts, started_ms = self._parts, self._context.clock.now_ms()
        alignment_ms = parts.gate.alignment.stop(barrier.checkpoint_id)
        parts.chain.checkpoint(barrier.checkpoint_id)
        offset = None if self._source is None else (self._offset_of(self._source, progress),)
        data_ended = progress.data_ended or parts.state.data_ended
        finish = parts.state.snapshot(
            barrier.checkpoint_id,
            offset,
            data_ended=data_ended,
            watermarks=progress.watermarks,
            whole=barrier.whole or barrier.stop,
        )
        parts.outputs.broadcast(barrier)
        snapshot = SnapshotUnderWay(
            barrier.checkpoint_id,
            finish,
            self._context.clock,
            started_ms=started_ms,
            alignment_ms=alignment_ms,
            is_unaligned=is_unaligned,
        )
        if overtaking:
            self.unaligned = snapshot
        else:
            self._write(snapshot, snapshot.write)

    def overtake(self, barrier: CheckpointBarrier, progress: Progress) -> None:
        """The JobManager waits for the barriers of this checkpoint no longer. Nothing, if it is over."""
        if self.is_over(barrier.checkpoint_id):
            return
        for event in self._parts.gate.overtake(barrier):
            if isinstance(event, Aligned):
                self.take(event.barrier, progress, overtaking=True, is_unaligned=True)
            else:
                self.give_up(event)

    def read_ahead(self) -> None:
        """See whether the log of an unaligned snapshot is over, which then can be written, or is given up."""
        log, snapshot = self._parts.gate.read_ahead(), self.unaligned
        if log is None or snapshot is None or log.checkpoint_id != snapshot.checkpoint_id:
            return
        if isinstance(head := self._parts.chain.operators[0], LoopHead):
            head.look_at_checkpoint(log.size_bytes)
        if log.given_up is not None:
            self._give_up_unaligned(log.given_up)
            return
        self.unaligned = None
        self._write(snapshot, lambda: snapshot.write_with(log, self._parts.gate.channels))

    def give_up(self, aborted: Aborted) -> None:
        """There is no snapshot of this checkpoint here: the tasks behind this one and the JobManager learn it."""
        self._parts.outputs.broadcast(CancelCheckpointMarker(aborted.checkpoint_id))
        self.decline(aborted.checkpoint_id, aborted.reason)

    def abort(self, checkpoint_id: CheckpointId) -> None:
        """The JobManager gave it up: align, and wait for what is in flight, no longer for it."""
        self._parts.gate.abort(checkpoint_id)
        if self.unaligned is not None and self.unaligned.checkpoint_id == checkpoint_id:
            self.unaligned = None
        self._parts.chain.checkpoint_aborted(checkpoint_id)

    def acknowledge(self, written: SnapshotWritten) -> None:
        self._owner.tell(written.acknowledgement(self._deployment.job_id, self._deployment.attempt_id))

    def not_written(self, failed: SnapshotFailed) -> None:
        error = failed.error
        repeatable = is_repeatable(chain_of(error))
        detail = f"{type(error).__name__}: {error}"
        is_storable = not isinstance(error, StateNotStorable)
        reason = AbortReason.SNAPSHOT_FAILED if is_storable else AbortReason.NOT_STORABLE
        self.decline(failed.checkpoint_id, reason, detail, repeatable=repeatable)

    def decline(
        self, checkpoint_id: CheckpointId, reason: AbortReason, detail: str = "", *, repeatable: bool = False
    ) -> None:
        job_id, attempt_id = self._deployment.job_id, self._deployment.attempt_id
        self._owner.tell(DeclineCheckpoint(job_id, attempt_id, checkpoint_id, reason, detail, repeatable))

    def _give_up_unaligned(self, reason: AbortReason) -> None:
        if self.unaligned is not None:
            checkpoint_id, self.unaligned = self.unaligned.checkpoint_id, None
            self.give_up(Aborted(checkpoint_id, reason))

    def _write(self, snapshot: SnapshotUnderWay, write: Callable[[], SnapshotWritten]) -> None:
        written = self._context.run_blocking(write)
        self._context.pipe_to_self(written, lambda it: it, lambda error: SnapshotFailed(snapshot.checkpoint_id, error))

    def _offset_of(self, source: Source, progress: Progress) -> Any:
        with blame(source, progress.records_in):
            return offset_of(source)
