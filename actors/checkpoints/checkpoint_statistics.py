"""CheckpointStatisticsTracker: what a job's checkpoints cost, and why some failed, to show to users.

Belongs to the CheckpointCoordinator, which says what happens; nothing is decided by what stands here. Kept are the
checkpoints in progress and the last 10 that ended. Flink: CheckpointStatsTracker, CheckpointStatsHistory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ...messages import (
    AcknowledgeCheckpoint,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointHistory,
    CheckpointId,
    CheckpointStatistics,
    JobId,
    SubtaskStatistics,
    VertexId,
)
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from .awaited_subtasks import awaited, names
from .checkpoint_plan import VertexShape
from .pending_checkpoint import PendingCheckpoint

ENDED_CHECKPOINTS_KEPT = 10


@dataclass(frozen=True, slots=True)
class _InProgress:
    pending: PendingCheckpoint
    subtasks: list[SubtaskStatistics] = field(default_factory=list)


class CheckpointStatisticsTracker:
    """The statistics of one job, through all its restarts. Times are the coordinator's clock, in ms."""

    def __init__(self, job_id: JobId, shapes: Mapping[VertexId, VertexShape]) -> None:
        self._job_id = job_id
        self._shapes = shapes
        self.completions = 0
        self.latest: CheckpointStatistics | None = None
        """The one that completed last."""
        self._triggered = self._failed = 0
        self._restored = CheckpointId(0)
        self._in_progress: dict[CheckpointId, _InProgress] = {}
        self._ended: deque[CheckpointStatistics] = deque(maxlen=ENDED_CHECKPOINTS_KEPT)

    def triggered(self, pending: PendingCheckpoint) -> None:
        self._triggered += 1
        self._in_progress[pending.checkpoint_id] = _InProgress(pending)

    def acknowledged(self, ack: AcknowledgeCheckpoint, now_ms: float) -> None:
        """This acknowledgement counted: it was the first of a subtask that was asked."""
        record = self._in_progress[ack.checkpoint_id]
        vertex_id, subtask_index = record.pending.attempts[ack.attempt_id]
        took_ms = round(now_ms - record.pending.started_ms)
        record.subtasks.append(SubtaskStatistics(vertex_id, subtask_index, took_ms, ack.state_size_bytes, ack.metrics))

    def completed(self, stored: CompletedCheckpoint, now_ms: float, wall_ms: int) -> CheckpointCompleted:
        """It has completed. Returns the event for the job's listeners."""
        self.completions += 1
        record = self._in_progress[stored.checkpoint_id]
        self.latest = found = self._end(_described(record, "completed", now_ms, path=stored.metadata_path))
        return CheckpointCompleted(
            self._job_id,
            found.checkpoint_id,
            found.duration_ms,
            found.state_size_bytes,
            timestamp_ms=wall_ms,
            path=found.path,
            final=stored.is_final,
            sync_ms=max((subtask.metrics.sync_ms for subtask in found.subtasks), default=0.0),
        )

    def failed(self, checkpoint_id: CheckpointId, reason: str, now_ms: float, wall_ms: int) -> CheckpointAborted:
        """It was given up. Returns the event for the job's listeners."""
        self._failed += 1
        self._end(_described(self._in_progress[checkpoint_id], "failed", now_ms, failure=reason))
        return CheckpointAborted(self._job_id, checkpoint_id, reason, wall_ms)

    def discarded(self, metadata_paths: Collection[str]) -> None:
        """These completed ones are deleted."""
        for index, each in enumerate(self._ended):
            if each.path in metadata_paths and each.status == "completed":
                self._ended[index] = replace(each, discarded=True)

    def restored(self, checkpoint_id: CheckpointId) -> None:
        """The job, or a region of it, is deployed with the state of this checkpoint."""
        self._restored = checkpoint_id

    def history(self, now_ms: float) -> CheckpointHistory:
        in_progress = [self._under_way(record, now_ms) for record in self._in_progress.values()]
        newest_first = sorted((*in_progress, *self._ended), key=lambda each: each.checkpoint_id, reverse=True)
        return CheckpointHistory(
            self._job_id, self._triggered, self.completions, self._failed, self._restored, tuple(newest_first)
        )

    def _under_way(self, record: _InProgress, now_ms: float) -> CheckpointStatistics:
        shown = names(awaited(record.pending), self._shapes)
        return replace(_described(record, "in_progress", now_ms), awaited=shown)

    def _end(self, statistics: CheckpointStatistics) -> CheckpointStatistics:
        del self._in_progress[statistics.checkpoint_id]
        self._ended.append(statistics)
        return statistics


def _described(
    record: _InProgress, status: str, now_ms: float, *, failure: str = "", path: str = ""
) -> CheckpointStatistics:
    pending = record.pending
    return CheckpointStatistics(
        checkpoint_id=pending.checkpoint_id,
        kind=_kind(pending),
        status=status,
        timestamp_ms=pending.timestamp_ms,
        duration_ms=round(now_ms - pending.started_ms),
        state_size_bytes=sum(subtask.state_size_bytes for subtask in record.subtasks),
        subtasks_total=len(pending.attempts),
        failure=failure,
        path=path,
        subtasks=tuple(record.subtasks),
    )


def _kind(pending: PendingCheckpoint) -> str:
    is_savepoint = pending.kind.is_savepoint or (pending.draft is not None and pending.draft.is_savepoint)
    if is_savepoint:
        return "savepoint"
    return "final" if pending.kind.is_final else "checkpoint"
