"""RestorePoints: which completed checkpoint a job's regions restart from, and what each subtask gets of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from ...messages import CheckpointId, FailureCause, FailureKind, JobGraph, Predecessor, SubtaskState
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint, CompletedCheckpointStore
from ..job_graph import Region, SubtaskKey
from .restored_operators import RestoredOperators


@dataclass(frozen=True, slots=True)
class Origin:
    """The start of a job: a savepoint, or a retained checkpoint of another job."""

    checkpoint: CompletedCheckpoint
    root: str
    """The URL that the paths of its state are relative to."""
    is_savepoint: bool = False

    @property
    def predecessors(self) -> tuple[Predecessor, ...]:
        """Of the job that starts here: its predecessors, and the one whose checkpoint it is."""
        return (*self.checkpoint.predecessors, Predecessor(self.checkpoint.job_id, self.checkpoint.checkpoint_id))


@dataclass(frozen=True, slots=True)
class RegionRestore:
    """What the tasks of one region begin with; TaskDeployment describes these fields."""

    checkpoint_id: CheckpointId | None = None
    """None: they begin without state."""
    states: Mapping[SubtaskKey, tuple[SubtaskState, ...]] = field(default_factory=dict)
    """Each subtask's share; one without state has no entry."""
    root: str = ""
    is_savepoint: bool = False
    is_failover: bool = False
    earlier_inlets: tuple[str, ...] = ()
    finishing: bool = False
    """It is the job's last checkpoint: they have only to commit it."""


NO_RESTORE = RegionRestore()


class RestorePoints:
    """The store's checkpoints, without those that turned out to be unreadable; before the first one, the origin.

    Once the job has a checkpoint of its own it never goes back to its origin: sinks have committed what came after.
    """

    def __init__(self, graph: JobGraph, store: CompletedCheckpointStore, origin: Origin | None = None) -> None:
        self._graph = graph
        self._store = store
        self._origin = origin
        self._condemned: set[CheckpointId] = set()
        self._newest_completed = CheckpointId(0)
        self._chosen: dict[Region, CheckpointId] = {}

    @property
    def are_used_up(self) -> bool:
        """Whether there were checkpoints, and all of them are unreadable."""
        return bool(self._condemned) and self._newest() is None

    @property
    def origin(self) -> Origin | None:
        """None when there is none, and from the job's first completed checkpoint on."""
        return self._origin

    @property
    def predecessors(self) -> tuple[Predecessor, ...]:
        """The jobs that this one continues, going by what it would restore now."""
        if (own := self.own) is not None:
            return own.predecessors
        return () if self._origin is None else self._origin.predecessors

    @property
    def own(self) -> CompletedCheckpoint | None:
        """The newest of the job's own that can be read, as far as that is known."""
        newest = self._newest()
        return None if self._origin is not None and newest is self._origin.checkpoint else newest

    def completed(self, checkpoint_id: CheckpointId) -> None:
        """A checkpoint of the job is complete, a savepoint too. Savepoints may come in any order."""
        self._origin = None
        self._newest_completed = max(self._newest_completed, checkpoint_id)

    def choose(self, region: Region) -> CompletedCheckpoint | None:
        """What this region restores from: the newest that can be read; None for a fresh start, if none are used up."""
        newest = self._newest()
        if newest is None:
            self._chosen.pop(region, None)
        else:
            self._chosen[region] = newest.checkpoint_id
        return newest

    @property
    def next_id(self) -> CheckpointId | None:
        """Of the checkpoint that would be restored now; None: there would be a fresh start."""
        newest = self._newest()
        return None if newest is None else newest.checkpoint_id

    def failed_to_restore(self, region: Region, failure: FailureCause) -> None:
        """A task failed while it restored. If its state was unreadable the next restart takes the next older one.

        An error that user code raised says nothing of the checkpoint, whatever its class.
        """
        step: FailureCause | None = failure
        while step is not None and step.kind not in (FailureKind.UNREADABLE_STATE, FailureKind.USER_CODE):
            step = step.cause
        chosen = self._chosen.get(region)
        if step is not None and step.kind is FailureKind.UNREADABLE_STATE and chosen is not None:
            self._condemned.add(chosen)

    def restore_of(self, restored: CompletedCheckpoint | None, region: Region) -> RegionRestore:
        """What this region begins with when it restores this checkpoint, which `choose` has returned."""
        if restored is None:
            return RegionRestore(earlier_inlets=self._graph.earlier_inlets)
        is_own = restored.job_id == self._graph.job_id
        origin = self._origin if self._origin is not None and restored is self._origin.checkpoint else None
        return RegionRestore(
            restored.checkpoint_id,
            self.states(restored, region),
            "" if origin is None else origin.root,
            is_savepoint=origin is not None and origin.is_savepoint,
            is_failover=self.is_failover(restored),
            earlier_inlets=() if is_own else self._graph.earlier_inlets,  # one of its own says what is left to be read
            finishing=is_own and restored.is_final,
        )

    def is_failover(self, restored: CompletedCheckpoint) -> bool:
        """Whether it is the newest that this very job has completed, readable or not: nothing that came behind it has
        been committed. Of what was completed before this JobManager began, that is not known.
        """
        return restored.job_id == self._graph.job_id and restored.checkpoint_id == self._newest_completed

    def states(self, restored: CompletedCheckpoint, region: Region) -> dict[SubtaskKey, tuple[SubtaskState, ...]]:
        """The region's subtasks' shares of a checkpoint; one without state has no entry."""
        return RestoredOperators(restored, self._graph).states(region)

    def _newest(self) -> CompletedCheckpoint | None:
        return next((one for one in self._restorable() if one.checkpoint_id not in self._condemned), None)

    def _restorable(self) -> Iterator[CompletedCheckpoint]:
        return chain(self._store.restorable(), [self._origin.checkpoint] if self._origin else [])
