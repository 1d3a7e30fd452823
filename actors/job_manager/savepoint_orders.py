"""SavepointOrders: what the SavepointCoordinator has the JobManager do with its jobs, and with their files.

A part of the JobManager, on its dispatcher. Each order is answered by one PromiseSettled: at once where no job goes on,
else when the job has done what it was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, assert_never

from ...messages import (
    CheckpointNotTaken,
    DisposeSavepointSuccess,
    JobId,
    JobStatus,
    TriggerSavepointFailure,
)
from ...state.checkpoints.savepoints import Savepoints
from ..context import Ref
from ..errors import UnknownJob
from .job_files import JobFiles
from .managed_job import ManagedJob
from .savepoint_coordinator import PromiseSettled, ReleaseSavepoint, SavepointAnswer, TakeCheckpoint, TakeSavepoint

SavepointOrder: TypeAlias = TakeSavepoint | TakeCheckpoint | ReleaseSavepoint


class SavepointOrders:
    """To one JobManager."""

    def __init__(
        self, jobs: Mapping[JobId, ManagedJob], savepoints: Savepoints, files: JobFiles, coordinator: Ref
    ) -> None:
        self._jobs = jobs
        self._savepoints = savepoints
        self._files = files
        self._coordinator = coordinator

    def on(self, order: SavepointOrder) -> None:
        match order:
            case TakeSavepoint():
                self._take_savepoint(order)
            case TakeCheckpoint():
                self._take_checkpoint(order)
            case ReleaseSavepoint():
                self._release(order)
            case _:
                assert_never(order)

    def _take_savepoint(self, wanted: TakeSavepoint) -> None:
        job, refusal = self._going(wanted.job_id)
        if job is not None:
            refusal = self._savepoints.refusal(job.storage.location())
        if job is None or refusal is not None:
            self._settle(wanted.request.token, TriggerSavepointFailure(wanted.job_id, refusal or ""))
        else:
            job.take_savepoint(wanted.request)

    def _take_checkpoint(self, wanted: TakeCheckpoint) -> None:
        job, refusal = self._going(wanted.job_id)
        if job is None:
            self._settle(wanted.request.token, CheckpointNotTaken(wanted.job_id, refusal or ""))
        else:
            job.take_checkpoint(wanted.request)

    def _going(self, job_id: JobId) -> tuple[ManagedJob | None, str | None]:
        """A job that goes on, or why there is none."""
        job = self._jobs.get(job_id)
        if job is None:
            return None, str(UnknownJob.among(self._jobs, job_id))
        if job.status.is_terminal or job.status in (JobStatus.CANCELLING, JobStatus.FAILING):
            return None, f"the job is {job.overview.told_status()}"
        return job, None

    def _release(self, order: ReleaseSavepoint) -> None:
        """Its user does not need it any more. The answer waits for the files, unless they cannot be deleted now."""
        removed = order.removed
        if (job := self._jobs.get(removed.job_id)) is not None:
            job.overview.savepoint_removed(removed.path)

        def then() -> None:
            if (job := self._jobs.get(removed.job_id)) is not None:
                job.tidy_up()
            self._settle(order.token, DisposeSavepointSuccess(removed.path))

        self._files.dispose(removed, then)

    def _settle(self, token: str, answer: SavepointAnswer) -> None:
        self._coordinator.tell(PromiseSettled(token, answer))
