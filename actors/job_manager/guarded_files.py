"""GuardedFiles: the files of one job, written and deleted as its lease and its pointers allow. A ManagedJob's part.

A job that has lost its name announces and deletes nothing more; what a successor may still find is not deleted. How
files are written and deleted stands in `JobFiles`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...messages import CheckpointId, JobId
from ...state import CheckpointStorage
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ..checkpoints.checkpoint_effects import Discard, StoreMetadata
from ..jobs.job_master import JobMaster
from .job_files import JobFiles
from .job_lease import Lease
from .job_pointers import JobPointers


class GuardedFiles:
    """Of one job, and of what its JobMaster orders."""

    def __init__(
        self,
        job_id: JobId,
        master: JobMaster,
        files: JobFiles,
        storage: CheckpointStorage,
        lease: Lease,
        pointers: JobPointers,
    ) -> None:
        self._job_id, self._master = job_id, master
        self._files, self._storage = files, storage
        self._lease, self._pointers = lease, pointers
        self._swept_at = -1 if any(master.coordinator.store.restorable()) else 0
        """How often it had been restarted when leftovers of its checkpoints were removed; -1: it has those of an
        earlier leader.
        """

    def adopted(self) -> None:
        """The job runs on, as an earlier leader has deployed it."""
        self._swept_at = -1

    def store(self, effect: StoreMetadata) -> None:
        """Answered as `JobFiles.store` says."""
        self._pointers.storing()
        self._files.store(self._job_id, self._storage, effect, self._confirm)

    def discard(self, effect: Discard) -> None:
        work = partial(self._files.discard, self._job_id, self._storage, effect)
        if self._master.status.is_terminal:  # all its pointers go with the job
            self._delete(work)
        else:
            self._pointers.remove(effect.metadata_path, lambda: self._delete(work))

    def completed(self, checkpoint_id: CheckpointId) -> None:
        """The job has this checkpoint. After the first one since a restart leftovers go: nothing before the oldest
        checkpoint that is under way is written any more.
        """
        self._files.superseded(self._job_id)
        self._lease.completed(checkpoint_id)
        if self._swept_at != self._master.restarts:
            self._swept_at = self._master.restarts
            below = min((each.checkpoint_id for each in self._master.coordinator.pending), default=checkpoint_id)
            self._delete(partial(self._files.sweep, self._job_id, self._storage, min(below, checkpoint_id)))

    def job_ended(self) -> None:
        self._files.superseded(self._job_id)
        self._lease.end(self._master.status)
        self.tidy_up()

    def tidy_up(self) -> None:
        """After its end: what is left of it in storage, and nobody needs, goes."""
        status = self._master.status
        if status.is_terminal:
            leaves = bool(self._master.report.details().retained_checkpoint_path) or self._lease.keeps_inlets(status)
            tidy_up = self._files.tidy_up_after
            self._delete(lambda: tidy_up(self._job_id, self._storage, leaves_checkpoints=leaves))

    def _confirm(self, completed: CompletedCheckpoint, savepoints: tuple[str, ...]) -> None:
        """On any thread: it is stored. Raises LostOwnership, LostLeadership."""
        self._lease.confirm()
        self._pointers.add(completed, savepoints)

    def _delete(self, work: Callable[[], None]) -> None:
        has_ended = self._master.status.is_terminal
        self._pointers.delete(lambda: self._lease.delete(work, has_ended=has_ended), has_ended=has_ended)
