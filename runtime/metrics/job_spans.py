"""JobSpans: what happens to a job as spans of time with their causes: the job, its restarts, checkpoints, savepoints.

A value machine: events of the job in, finished spans out. It knows no tracing library, clock or thread. Flink: spans of
checkpoints and of recoveries (FLIP-384).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...messages import (
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointHistory,
    CheckpointStatistics,
    FailureCause,
    JobId,
    JobStatus,
    JobStatusChanged,
)
from ...messages.failures import tell_line

Attributes = dict[str, str | int | float]


@dataclass(frozen=True, slots=True)
class JobSpan:
    """Wall times in ms. `error`: why it did not end well; empty: it did."""

    name: str
    start_ms: int
    end_ms: int
    attributes: Attributes
    error: str = ""
    causes: tuple[tuple[int, FailureCause], ...] = ()
    """Failures that led to it, with their wall times."""


@dataclass(slots=True)
class _Restart:
    start_ms: int
    causes: list[tuple[int, FailureCause]] = field(default_factory=list)


class JobSpans:
    """One job's. `history` is asked for what an event does not say; it may raise."""

    def __init__(self, job_id: JobId, name: str, started_ms: int, history: Callable[[], CheckpointHistory]) -> None:
        self._own: Attributes = {"understudy.job.id": job_id, "understudy.job.name": name}
        self._started_ms = started_ms
        self._history = history
        self._restart: _Restart | None = None
        self._restarts = 0
        self._last: tuple[int, FailureCause] | None = None
        self.has_ended = False

    def on(self, event: Any) -> list[JobSpan]:
        """Take one event of the job, in their order; returns the spans that it ends."""
        match event:
            case CheckpointCompleted() | CheckpointAborted():
                return [self._checkpoint(event)]
            case JobStatusChanged():
                return self._status(event)
            case _:
                return []

    def cut_off(self, wall_ms: int) -> list[JobSpan]:
        """Nobody watches the job any longer."""
        return [] if self.has_ended else [*self._end_restart(wall_ms, "not over yet"), self._job(wall_ms, "running")]

    def _status(self, event: JobStatusChanged) -> list[JobSpan]:
        at_ms, status = event.timestamp_ms, event.status
        if event.failure is not None:
            self._last = at_ms, event.failure
        if status is JobStatus.RESTARTING:
            self._restart = self._restart or _Restart(at_ms)
            if event.failure is not None:
                self._restart.causes.append((at_ms, event.failure))
            return []
        spans = self._end_restart(at_ms, "" if status is JobStatus.RUNNING else f"the job is {status.value}")
        if status.is_terminal:
            self.has_ended = True
            spans.append(self._job(at_ms, status.value))
        return spans

    def _end_restart(self, at_ms: int, error: str) -> list[JobSpan]:
        restart, self._restart = self._restart, None
        if restart is None:
            return []
        self._restarts += 1
        attributes = self._own | {"understudy.restart.number": self._restarts}
        return [JobSpan("Restart", restart.start_ms, at_ms, attributes, error, tuple(restart.causes))]

    def _job(self, at_ms: int, status: str) -> JobSpan:
        failed = status == JobStatus.FAILED.value
        causes = () if self._last is None or not failed else (self._last,)
        attributes = self._own | {"understudy.job.status": status, "understudy.job.restarts": self._restarts}
        error = "" if not failed else tell_line(causes[0][1]) if causes else status
        return JobSpan("Job", self._started_ms, at_ms, attributes, error, causes)

    def _checkpoint(self, event: CheckpointCompleted | CheckpointAborted) -> JobSpan:
        known = self._known(event)
        attributes = self._own | {"understudy.checkpoint.id": int(event.checkpoint_id)}
        error = event.reason if isinstance(event, CheckpointAborted) else ""
        if known is None:
            took_ms = event.duration_ms if isinstance(event, CheckpointCompleted) else 0
            return JobSpan("Checkpoint", event.timestamp_ms - took_ms, event.timestamp_ms, attributes, error)
        snapshots = [each.metrics for each in known.subtasks]
        attributes |= {
            "understudy.checkpoint.kind": known.kind,
            "understudy.checkpoint.size_bytes": known.state_size_bytes,
            "understudy.checkpoint.subtasks": known.subtasks_total,
            "understudy.checkpoint.acknowledged": len(snapshots),
            "understudy.checkpoint.max_sync_ms": max((each.sync_ms for each in snapshots), default=0.0),
            "understudy.checkpoint.max_async_ms": max((each.async_ms for each in snapshots), default=0.0),
            "understudy.checkpoint.max_alignment_ms": max((each.alignment_ms for each in snapshots), default=0.0),
        }
        name = "Savepoint" if known.kind == "savepoint" else "Checkpoint"
        return JobSpan(name, known.timestamp_ms, known.timestamp_ms + known.duration_ms, attributes, error)

    def _known(self, event: CheckpointCompleted | CheckpointAborted) -> CheckpointStatistics | None:
        try:
            checkpoints = self._history().checkpoints
        except Exception:  # noqa: BLE001  (the JobManager is gone, or busy: the event itself says enough)
            return None
        return next((each for each in checkpoints if each.checkpoint_id == event.checkpoint_id), None)
