"""PendingCheckpoint: one checkpoint between its trigger and its completion or abort. Flink: PendingCheckpoint.

    COLLECTING --last acknowledgement, finalize()--> STORING

While COLLECTING it owns the state that subtasks acknowledged. From STORING on that state stands in the draft that is
being written, and may not be discarded before the write has been answered. It is owned by the CheckpointCoordinator,
which decides what follows and removes it; it sends nothing and knows no timer.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from ...messages import (
    AcknowledgeCheckpoint,
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    Predecessor,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint, VertexSnapshot
from ..errors import IllegalTransition
from ..job_graph import SubtaskKey
from .checkpoint_plan import VertexShape
from .savepoint_request import CheckpointRequest, SavepointRequest


class CheckpointKind(Enum):
    """Flink: CheckpointProperties."""

    CHECKPOINT = "checkpoint"
    SAVEPOINT = "savepoint"
    FINAL = "final"
    """Taken when all data has ended, so that the last transactions commit; repeated until one completes. It is a
    savepoint too when somebody wants that. Flink: FLIP-147, and stop-with-savepoint --drain.
    """
    STOP = "stop with savepoint"
    """Final, and a savepoint, though no data has ended: sources stop at its barrier. Flink: stop-with-savepoint."""

    @property
    def is_forced(self) -> bool:
        """Whether it ignores the minimum pause and the limit of concurrent checkpoints."""
        return self is not CheckpointKind.CHECKPOINT

    @property
    def is_savepoint(self) -> bool:
        """Whether it is always one, promised to the one who asked for it."""
        return self in (CheckpointKind.SAVEPOINT, CheckpointKind.STOP)

    @property
    def is_final(self) -> bool:
        """Whether nothing comes after it."""
        return self in (CheckpointKind.FINAL, CheckpointKind.STOP)

    @property
    def can_be_subsumed(self) -> bool:
        """Whether the completion of a newer one makes it pointless; a savepoint is promised to somebody."""
        return not self.is_savepoint


class AckResult(Enum):
    """What became of an acknowledgement."""

    SUCCESS = auto()
    DUPLICATE = auto()
    """This attempt has acknowledged already, with the same state: that state is kept."""
    UNKNOWN_TASK = auto()
    """The attempt was not asked: a zombie, or one that was deployed after the trigger."""
    LATE = auto()
    """The checkpoint has completed or was aborted a short while ago."""
    UNKNOWN_CHECKPOINT = auto()
    WRONG_JOB = auto()
    SHUT_DOWN = auto()


class PendingCheckpoint:
    """Collects one acknowledgement from every attempt that was current at the trigger."""

    def __init__(
        self,
        job_id: JobId,
        checkpoint_id: CheckpointId,
        kind: CheckpointKind,
        attempts: Mapping[ExecutionAttemptId, SubtaskKey],
        *,
        timestamp_ms: int,
        started_ms: float,
        savepoint: SavepointRequest | None = None,
        requests: tuple[CheckpointRequest, ...] = (),
    ) -> None:
        self.job_id = job_id
        self.checkpoint_id = checkpoint_id
        self.kind = kind
        self.attempts = attempts
        self.timestamp_ms = timestamp_ms
        self.started_ms = started_ms
        self.savepoint = savepoint
        """The request that it was triggered for."""
        self.requests = requests
        """Of those who wait for a checkpoint that begins after they have asked for one."""
        self.draft: CompletedCheckpoint | None = None
        self._acknowledged: dict[ExecutionAttemptId, SubtaskState | None] = {}
        self._state_size_bytes = 0

    @property
    def acknowledged(self) -> frozenset[ExecutionAttemptId]:
        return frozenset(self._acknowledged)

    @property
    def is_fully_acknowledged(self) -> bool:
        return len(self._acknowledged) == len(self.attempts)

    @property
    def is_storing(self) -> bool:
        return self.draft is not None

    def is_waiting_for(self, attempt_id: ExecutionAttemptId) -> bool:
        return attempt_id in self.attempts and attempt_id not in self._acknowledged

    def acknowledge(self, ack: AcknowledgeCheckpoint) -> AckResult:
        """Take the state in if it is wanted; otherwise it stays the caller's to discard."""
        if ack.attempt_id in self._acknowledged:
            return AckResult.DUPLICATE
        if ack.attempt_id not in self.attempts:
            return AckResult.UNKNOWN_TASK
        self._acknowledged[ack.attempt_id] = ack.state
        self._state_size_bytes += ack.state_size_bytes
        return AckResult.SUCCESS

    def states(self) -> tuple[SubtaskState, ...]:
        """What has been acknowledged so far, in the order of arrival; stateless subtasks add nothing."""
        return tuple(state for state in self._acknowledged.values() if state is not None)

    def finalize(
        self,
        vertices: Mapping[VertexId, VertexShape],
        completed_ms: int,
        *,
        is_savepoint: bool = False,
        predecessors: tuple[Predecessor, ...] = (),
    ) -> CompletedCheckpoint:
        """The draft to be written, without a metadata path. Once; raises IllegalTransition while one is missing.

        `is_savepoint`: it is to be one though its kind need not be. `predecessors`: of the job.
        """
        if self.is_storing or not self.is_fully_acknowledged:
            raise IllegalTransition(
                f"checkpoint {self.checkpoint_id} cannot be finalized: {len(self._acknowledged)} of "
                f"{len(self.attempts)} acknowledged, storing={self.is_storing}"
            )
        self.draft = CompletedCheckpoint(
            job_id=self.job_id,
            checkpoint_id=self.checkpoint_id,
            timestamp_ms=self.timestamp_ms,
            completed_ms=completed_ms,
            state_size_bytes=self._state_size_bytes,
            vertices={vertex_id: self._snapshot(vertex_id, shape) for vertex_id, shape in vertices.items()},
            is_savepoint=self.kind.is_savepoint or is_savepoint,
            is_final=self.kind.is_final,
            predecessors=predecessors,
        )
        return self.draft

    def _snapshot(self, vertex_id: VertexId, shape: VertexShape) -> VertexSnapshot:
        subtasks: dict[SubtaskIndex, SubtaskState] = {}
        for attempt_id, state in self._acknowledged.items():
            subtask = self.attempts[attempt_id]
            if subtask.vertex_id == vertex_id and state is not None:
                subtasks[subtask.subtask_index] = state
        return VertexSnapshot(shape.parallelism, shape.max_parallelism, subtasks, shape.operators, shape.inputs)
