"""The end of a job's wait for slots, at a moment that a test chooses."""

from __future__ import annotations

from typing import Any

from understudy import JobHandle
from understudy.actors.job_manager.managed_job import TimerDue
from understudy.actors.jobs.job_effects import SlotsOverdue
from understudy.messages import RequestJobView

from .jobs import WAIT_S, eventually

LONG_MS = 3_600_000
"""So that no job of a test has waited long enough by itself."""


def registered(cluster: Any, job: JobHandle, count: int) -> None:
    """Wait until as many TaskManagers of the job have registered."""

    def there() -> bool:
        return len(cluster.ask_job_manager(RequestJobView(job.job_id)).result(WAIT_S).task_managers) == count

    eventually(there, f"{count} TaskManagers")


def give_up(cluster: Any, job: JobHandle) -> None:
    """As if the job, which has not failed yet, had waited for its slots as long as it may."""
    _, job_manager = cluster._running()
    job_manager.tell(TimerDue(job.job_id, SlotsOverdue(0)))
