"""CheckpointFiles: which files one job's checkpoints need, and what goes when the job gives one up.

A value machine of the CheckpointCoordinator, over the registry that all jobs of a JobManager share. A checkpoint is its
job's from its first acknowledgement on. A completed savepoint has two owners: its user, until it is disposed of, and
its job, as long as that would restore from it; the job's share ends here, the user's with the JobManager.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ...messages import CheckpointId, JobId, SubtaskState
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ...state.checkpoints.savepoints import checkpoint_files
from ...state.checkpoints.shared_state import (
    CheckpointOf,
    DoomedMetadata,
    SavepointAt,
    SharedStateRegistry,
    StateFile,
)
from ...state.checkpoints.snapshot_file import state_handles
from .checkpoint_effects import Discard


class CheckpointFiles:
    """One job's. `root`: the `location()` of its checkpoint storage."""

    def __init__(self, job_id: JobId, root: str, registry: SharedStateRegistry) -> None:
        self._job_id = job_id
        self._root = root
        self._registry = registry
        self._savepoints: dict[CheckpointId, CompletedCheckpoint] = {}
        """Completed ones from which the job would still restore."""

    def acknowledged(self, checkpoint_id: CheckpointId, state: SubtaskState | None) -> None:
        """A pending checkpoint has taken this state in."""
        if state is not None:
            self._registry.register(CheckpointOf(self._job_id, checkpoint_id), self._files_of((state,)))

    def completed(self, completed: CompletedCheckpoint, savepoints: Iterable[str] = ()) -> None:
        """It is stored, and its users have the paths of these savepoints, if it is one."""
        files = checkpoint_files(self._root, completed)
        self._registry.register(CheckpointOf(self._job_id, completed.checkpoint_id), files)
        for path in savepoints:
            self._registry.register(SavepointAt(path), files)
        if completed.is_savepoint:
            self._savepoints[completed.checkpoint_id] = completed

    def superseded(self, restorable: Collection[CheckpointId]) -> list[Discard]:
        """The files to discard of savepoints that are not among those that the job would restore from."""
        past = [each for checkpoint_id, each in self._savepoints.items() if checkpoint_id not in restorable]
        for savepoint in past:
            del self._savepoints[savepoint.checkpoint_id]
        return [discard for each in past if (discard := self.drop(each)) is not None]

    def drop(self, completed: CompletedCheckpoint) -> Discard | None:
        """The job would not restore from this one any more. One of another job is not its to discard."""
        if completed.job_id != self._job_id:
            return None
        return self.give_up(completed.checkpoint_id, completed.states(), completed.metadata_path)

    def give_up(
        self,
        checkpoint_id: CheckpointId,
        states: tuple[SubtaskState, ...],
        metadata_path: str = "",
        savepoints: tuple[str, ...] = (),
    ) -> Discard | None:
        """The job does not need this checkpoint: what is to be discarded of it, if it is not all somebody else's.

        `savepoints`: pointers to it that have been stored, and were never announced. Metadata are doomed from now on:
        whoever deletes them releases what they lead to.
        """
        self._registry.release(CheckpointOf(self._job_id, checkpoint_id))
        if metadata_path and self._registry.is_needed(StateFile(self._root, metadata_path)):
            return None
        discard = self._discard(states, metadata_path, savepoints)
        if metadata_path:
            self._registry.register(DoomedMetadata(self._root, metadata_path), self._files_of(states))
        return discard

    def unowned(self, state: SubtaskState | None) -> Discard | None:
        """State that came when no checkpoint wanted it; but a file in it may be somebody's all the same."""
        return self._discard((state,), "", ()) if state is not None else None

    def _discard(
        self, states: tuple[SubtaskState, ...], metadata_path: str, savepoints: tuple[str, ...]
    ) -> Discard | None:
        if not (states or metadata_path or savepoints):
            return None
        kept = frozenset(file.path for file in self._files_of(states) if self._registry.is_needed(file))
        return Discard(states, metadata_path, kept, savepoints)

    def _files_of(self, states: Iterable[SubtaskState]) -> list[StateFile]:
        handles = (handle for state in states for handle in state_handles(state))
        return [StateFile(self._root, handle.path) for handle in handles if handle.path is not None]
