"""SnapshotUnderWay: one snapshot of a task, from the end of its synchronous part until it can be acknowledged.

An aligned one is written at once. An unaligned one waits, in memory, until all that is in flight is known, and is then
written as a whole: one that is given up before leaves no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...messages import (
    AcknowledgeCheckpoint,
    ChannelStateHandle,
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    SnapshotMetrics,
    SubtaskState,
)
from ...state import channel_handle
from ..barriers.in_flight_elements import is_batch
from ..barriers.in_flight_log import InFlightLog
from ..barriers.input_gate import GateChannel
from ..context import Clock

FinishSnapshot = Callable[..., tuple[SubtaskState, int]]
"""What TaskState.snapshot returns: takes the state of channels, if there is any, and writes all."""


@dataclass(frozen=True, slots=True)
class SnapshotWritten:
    checkpoint_id: CheckpointId
    state: SubtaskState
    size_bytes: int
    metrics: SnapshotMetrics

    def acknowledgement(self, job_id: JobId, attempt_id: ExecutionAttemptId) -> AcknowledgeCheckpoint:
        return AcknowledgeCheckpoint(job_id, attempt_id, self.checkpoint_id, self.state, self.size_bytes, self.metrics)


@dataclass(frozen=True, slots=True)
class SnapshotFailed:
    checkpoint_id: CheckpointId
    error: BaseException


class SnapshotUnderWay:
    """`started_ms`: when its synchronous part began, which ends now. Made by the task; `write` may run anywhere."""

    def __init__(
        self,
        checkpoint_id: CheckpointId,
        finish: FinishSnapshot,
        clock: Clock,
        *,
        started_ms: float,
        alignment_ms: float,
        is_unaligned: bool = False,
    ) -> None:
        """`is_unaligned`: it has overtaken barriers, and not only those that come back round a loop."""
        self.checkpoint_id = checkpoint_id
        self._finish = finish
        self._clock = clock
        self._taken_ms = clock.now_ms()
        self._sync_ms = self._taken_ms - started_ms
        self._alignment_ms = alignment_ms
        self._is_unaligned = is_unaligned

    def write(self) -> SnapshotWritten:
        """Write an aligned snapshot. Blocks; raises what writing raises."""
        return self._written(*self._finish())

    def write_with(self, log: InFlightLog, channels: Sequence[GateChannel]) -> SnapshotWritten:
        """The same for one that has overtaken barriers, when its log is complete; raises the log's failure, too."""
        if log.failure is not None:
            raise log.failure
        in_flight = tuple(_handles(log, channels))
        in_loop = [
            packed
            for index, several in sorted(log.batches.items())
            if channels[index].feedback
            for packed in several
            if is_batch(packed)
        ]
        written = self._finish(in_flight, in_loop)
        return self._written(*written, in_flight_bytes=log.size_bytes, unaligned=self._is_unaligned)

    def _written(
        self, state: SubtaskState, size_bytes: int, *, in_flight_bytes: int = 0, unaligned: bool = False
    ) -> SnapshotWritten:
        metrics = SnapshotMetrics(
            sync_ms=self._sync_ms,
            async_ms=self._clock.now_ms() - self._taken_ms,
            alignment_ms=self._alignment_ms,
            in_flight_bytes=in_flight_bytes,
            unaligned=unaligned,
        )
        return SnapshotWritten(self.checkpoint_id, state, size_bytes, metrics)


def _handles(log: InFlightLog, channels: Sequence[GateChannel]) -> Iterator[ChannelStateHandle]:
    for index, packed in sorted(log.batches.items()):
        if channels[index].feedback:
            continue
        yield channel_handle(channels[index].edge, channels[index].producer_subtask, packed)
