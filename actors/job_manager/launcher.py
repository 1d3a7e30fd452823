"""Launcher: who starts TaskManager processes. Each cluster has its own; the JobManager only says which are wanted."""

from __future__ import annotations

from typing import Protocol

from ...messages import JobId, SubmitJob


class Launcher(Protocol):
    """Starts and ends the TaskManager processes of jobs. Nothing here blocks.

    The JobManager gets the end of a process as `TaskManagerExited`, once per start.
    """

    def expect(self, wanted: SubmitJob) -> None:
        """This job begins: its TaskManagers are going to be asked for."""
        ...

    def start(self, job_id: JobId, index: int) -> None:
        """Start TaskManager `index` of this job, or start it again after it has exited."""
        ...

    def kill(self, job_id: JobId, index: int) -> None:
        """End this TaskManager by force: it does not answer any more."""
        ...

    def abandon(self, job_id: JobId) -> None:
        """End by force what earlier leaders have started for this job. That is not reported."""
        ...

    def forget(self, job_id: JobId) -> None:
        """The job is over and its TaskManagers are released: whatever still runs after a grace period is killed."""
        ...
