"""JobStatus: where a job stands, from its submission to its end."""

from __future__ import annotations

from enum import Enum


class JobStatus(Enum):
    """Flink's JobStatus. FINISHED, CANCELED and FAILED are terminal.

    Unlike Flink's, RUNNING is stricter: a job whose tasks have been deployed and still start is not RUNNING yet.
    """

    CREATED = "created"
    """Submitted; its TaskManagers start, or its tasks do."""
    RUNNING = "running"
    """Every task runs, or has finished: operators can be asked, and savepoints taken."""
    FAILING = "failing"
    """It is given up; its tasks are being cancelled."""
    RESTARTING = "restarting"
    """A task has failed; some tasks are being cancelled, wait for their restart, or restore their state."""
    CANCELLING = "cancelling"
    """The user wants it to end; its tasks are being cancelled."""
    FINISHED = "finished"
    CANCELED = "canceled"
    FAILED = "failed"

    @property
    def is_terminal(self) -> bool:
        return self in (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED)
