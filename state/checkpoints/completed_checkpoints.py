"""CompletedCheckpoint: a consistent cut that is stored, and the store of those a job can restore from.

A completed checkpoint is a value; its bytes lie where its handles point. Nothing here reads, writes or deletes a
file: the store says what is to be discarded, and its owner (the CheckpointCoordinator) has that done.
`checkpoint_metadata.py` turns a completed checkpoint into the bytes of its metadata file and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ...messages import (
    CheckpointId,
    CheckpointRetention,
    JobEdge,
    JobId,
    JobStatus,
    OperatorDescription,
    Predecessor,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)


@dataclass(frozen=True, slots=True)
class VertexSnapshot:
    """One vertex in a checkpoint. A subtask that acknowledged without state has no entry. Flink: TaskState."""

    parallelism: int
    max_parallelism: int
    subtasks: Mapping[SubtaskIndex, SubtaskState]
    operators: tuple[OperatorDescription, ...] = ()
    """The chain, in order, with what its operators declared."""
    inputs: Mapping[int, JobEdge] = field(default_factory=dict)
    """Its in-edges by their index in the job graph."""


@dataclass(frozen=True, slots=True)
class CompletedCheckpoint:
    """All subtasks acknowledged it. `metadata_path` is empty until its metadata file is written."""

    job_id: JobId
    checkpoint_id: CheckpointId
    timestamp_ms: int
    """Wall time of its trigger; the barriers carry it."""
    completed_ms: int
    """Wall time of its last acknowledgement."""
    state_size_bytes: int
    vertices: Mapping[VertexId, VertexSnapshot]
    """Every vertex of the job, stateless ones too."""
    is_savepoint: bool = False
    is_final: bool = False
    """Nothing of its job comes after it: all data had ended, or the job was stopped at its barrier."""
    metadata_path: str = ""
    predecessors: tuple[Predecessor, ...] = ()
    """Of its job: those that it continues, the oldest first."""

    @property
    def is_stop(self) -> bool:
        """Whether its job was stopped at its barrier, before all of its data had ended."""
        return self.is_final and not all(state.data_ended for state in self.states())

    def states(self) -> tuple[SubtaskState, ...]:
        """All that it holds: what a discard has to delete beside the metadata file."""
        return tuple(state for vertex in self.vertices.values() for state in vertex.subtasks.values())


class CompletedCheckpointStore(Protocol):
    """What a job can restore from: the latest N checkpoints, and the newest savepoint that is not older than they.

    A savepoint is never retained and never pushes anything out: its user owns it. It must be restored from all the
    same while it is the newest cut, because sinks have committed what it covers; even if its user has disposed of it.

    Nothing here may block. A store with a copy elsewhere has that written along with the metadata file, before it is
    given the checkpoint.
    """

    def add(self, completed: CompletedCheckpoint) -> list[CompletedCheckpoint]:
        """Take in a stored checkpoint; returns those it pushes out, oldest first, for the caller to discard.

        Checkpoints come in the order of their ids, savepoints in any order.
        """
        ...

    def latest(self) -> CompletedCheckpoint | None:
        """The newest retained checkpoint; a savepoint is none."""
        ...

    def retained(self) -> tuple[CompletedCheckpoint, ...]:
        """Oldest first, without savepoints."""
        ...

    def restorable(self) -> Iterator[CompletedCheckpoint]:
        """Newest to oldest: try the next one when the state or the metadata of one is corrupt or missing."""
        ...

    def shutdown(self, status: JobStatus) -> list[CompletedCheckpoint]:
        """The job has ended so. Empty the store, and return what the caller has to discard; or keep all that is
        restorable, and return nothing, if the job leaves its checkpoints. A status that is not terminal means
        suspended.
        """
        ...


class StandaloneCompletedCheckpointStore:
    """In memory, lost with its process: also a suspended job's checkpoints are discarded, since nobody could find them.

    Flink: StandaloneCompletedCheckpointStore.
    """

    def __init__(
        self,
        retain: int,
        retention: CheckpointRetention = CheckpointRetention.NEVER,
        kept: Iterable[CompletedCheckpoint] = (),
    ) -> None:
        """`kept`: what an earlier leader has left, in the order of their ids. Of checkpoints it may be one more than
        are to be retained: what is too much goes with the next one that is added.
        """
        if retain < 1:
            raise ValueError(f"at least one completed checkpoint must be retained, found retain={retain}")
        kept = list(kept)
        self._retain = retain
        self._retention = retention
        self._retained = [each for each in kept if not each.is_savepoint]
        self._savepoint: CompletedCheckpoint | None = None
        for each in kept:
            if each.is_savepoint:
                self._add_savepoint(each)

    def add(self, completed: CompletedCheckpoint) -> list[CompletedCheckpoint]:
        if completed.is_savepoint:
            self._add_savepoint(completed)
            return []
        latest = self.latest()
        assert latest is None or latest.checkpoint_id < completed.checkpoint_id, "checkpoints complete in order"
        self._retained.append(completed)
        surplus = max(0, len(self._retained) - self._retain)
        dropped, self._retained = self._retained[:surplus], self._retained[surplus:]
        if self._savepoint and self._savepoint.checkpoint_id < self._retained[0].checkpoint_id:
            self._savepoint = None
        return dropped

    def _add_savepoint(self, savepoint: CompletedCheckpoint) -> None:
        newest = next(self.restorable(), None)
        if newest is None or newest.checkpoint_id < savepoint.checkpoint_id:
            self._savepoint = savepoint

    def latest(self) -> CompletedCheckpoint | None:
        return self._retained[-1] if self._retained else None

    def retained(self) -> tuple[CompletedCheckpoint, ...]:
        return tuple(self._retained)

    def restorable(self) -> Iterator[CompletedCheckpoint]:
        savepoint = [self._savepoint] if self._savepoint else []
        return iter(sorted(savepoint + self._retained, key=lambda each: each.checkpoint_id, reverse=True))

    def shutdown(self, status: JobStatus) -> list[CompletedCheckpoint]:
        if self._retention.keeps(status):
            return []
        dropped, self._retained, self._savepoint = self._retained, [], None
        return dropped
