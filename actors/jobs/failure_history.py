"""FailureHistory: what has failed in a job's life, oldest first, each by its root cause.

When one task fails its neighbours see a broken channel, and when a process dies its connections break before anybody
can say how it ended. So the first word of a failure may be secondhand; the cause that comes after it takes its place.
A value machine of the JobMaster.
"""

from __future__ import annotations

from dataclasses import replace

from ...messages import FailureCause, FailureKind, TaskManagerId
from ..job_graph import Region

FAILURES_KEPT = 20


class FailureHistory:
    """The last failures of one job."""

    def __init__(self, job_name: str) -> None:
        self._job_name = job_name
        self._failures: list[FailureCause] = []
        self._times: list[int] = []
        self.wall_ms = 0
        """The time of the event that is handled now."""
        self._open: dict[Region, FailureCause] = {}
        """The cause of each region that is being cancelled, as far as known."""

    @property
    def all(self) -> tuple[FailureCause, ...]:
        return tuple(self._failures)

    @property
    def times(self) -> tuple[int, ...]:
        """When each of `all` was added, by the wall clock."""
        return tuple(self._times)

    @property
    def latest(self) -> FailureCause | None:
        return self._failures[-1] if self._failures else None

    def add(self, cause: FailureCause, region: Region | None = None) -> FailureCause:
        """A failure: of this region, or of the job as a whole. Returns it with the job's name."""
        cause = replace(cause, job_name=self._job_name)
        self._failures = [*self._failures, cause][-FAILURES_KEPT:]
        self._times = [*self._times, self.wall_ms][-FAILURES_KEPT:]
        if region is not None:
            self._open[region] = cause
        return cause

    def failed_too(self, region: Region, cause: FailureCause) -> None:
        """One more region has failed of this, which is known."""
        self._open[region] = cause

    def is_explained_by(self, region: Region, cause: FailureCause) -> bool:
        """One more task of a region that is being cancelled has failed: perhaps it was the first to."""
        told = self._open.get(region)
        return told is not None and told.is_secondhand and not cause.is_secondhand

    def explain(self, region: Region, cause: FailureCause) -> FailureCause:
        """This cause takes the place of the region's secondhand one. Returns it with the job's name. Where that one was
        another region's, too, which has been explained, it is the failure of both, or one more.
        """
        if any(each is cause for each in self._failures):
            self.failed_too(region, cause)
            return cause
        told = self._open[region]
        if not any(each is told for each in self._failures):
            return self.add(cause, region)
        self._open[region] = cause = replace(cause, job_name=self._job_name)
        self._failures = [cause if each is told else each for each in self._failures]
        return cause

    def settled(self, region: Region) -> None:
        """The region runs again; what fails from now on is another failure."""
        self._open.pop(region, None)

    def process_ended(self, task_manager_id: TaskManagerId, how: str) -> None:
        """The process of a TaskManager that was lost before is gone now: add how it ended."""

        def lost_it(cause: FailureCause) -> bool:
            return cause.kind is FailureKind.TASK_MANAGER_LOST and cause.task_manager == task_manager_id

        self._failures = [_with_end(each, how) if lost_it(each) else each for each in self._failures]


def _with_end(cause: FailureCause, how: str) -> FailureCause:
    return replace(cause, error_message=f"{cause.error_message}; its process: {how}")
