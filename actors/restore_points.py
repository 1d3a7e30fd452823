"""RestorePoints: which completed checkpoint a job's regions restart from, and what each subtask gets of it."""

from __future__ import annotations

from ..messages import CheckpointId, FailureCause, JobGraph, SubtaskIndex, SubtaskState
from ..state import assign_state
from ..state.completed_checkpoints import CompletedCheckpoint, CompletedCheckpointStore
from .execution_graph import Region
from .job_graph import SubtaskKey

UNREADABLE_STATE = frozenset({"CorruptState", "MissingState", "OutsideRoot"})
"""Failures while a task restores that condemn the checkpoint rather than the code."""


class RestorePoints:
    """The store's checkpoints, without those that turned out to be unreadable."""

    def __init__(self, graph: JobGraph, store: CompletedCheckpointStore) -> None:
        self._graph = graph
        self._store = store
        self._condemned: set[CheckpointId] = set()
        self._chosen: dict[Region, CheckpointId] = {}

    @property
    def are_used_up(self) -> bool:
        """Whether there were checkpoints, and all of them are unreadable."""
        return bool(self._condemned) and self._newest() is None

    def choose(self, region: Region) -> CompletedCheckpoint | None:
        """What this region restores from: the newest that can be read; None for a fresh start, if none are used up."""
        newest = self._newest()
        if newest is None:
            self._chosen.pop(region, None)
        else:
            self._chosen[region] = newest.checkpoint_id
        return newest

    def failed_to_restore(self, region: Region, failure: FailureCause) -> None:
        """A task failed while it restored. If its state was unreadable the next restart takes the next older one."""
        step: FailureCause | None = failure
        while step is not None and step.error_type not in UNREADABLE_STATE:
            step = step.cause
        chosen = self._chosen.get(region)
        if step is not None and chosen is not None:
            self._condemned.add(chosen)

    def _newest(self) -> CompletedCheckpoint | None:
        usable = (one for one in self._store.restorable() if one.checkpoint_id not in self._condemned)
        return next(usable, None)

    def states(self, restored: CompletedCheckpoint, region: Region) -> dict[SubtaskKey, tuple[SubtaskState, ...]]:
        """The region's subtasks' shares of a checkpoint; one without state has no entry."""
        states: dict[SubtaskKey, tuple[SubtaskState, ...]] = {}
        for vertex in self._graph.vertices:
            snapshot = restored.vertices.get(vertex.vertex_id)
            if snapshot is None or vertex.vertex_id not in region:
                continue
            shares = assign_state(snapshot.subtasks, snapshot.parallelism, vertex.parallelism, snapshot.max_parallelism)
            for index, share in enumerate(shares):
                if share is not None:
                    states[SubtaskKey(vertex.vertex_id, SubtaskIndex(index))] = (share,)
        return states
