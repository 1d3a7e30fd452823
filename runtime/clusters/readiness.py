"""Readiness: who waits for the tasks of a job to run, and their answer. A part of the JobHandle.

It looks at the job's status whenever that has changed, and keeps futures until one of these is known:

    RUNNING, FINISHED    all tasks run, or have run: they are fulfilled
    FAILED, CANCELED     they fail with what `over` is given, once that is known
    its cluster is gone  the same

Any thread may use it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...messages import JobDetails, JobStatus
from ...messages.failures import tell_line
from ..system.future import ActorFuture


class Readiness:
    """Of one job. `promise` makes a future that the user may wait for; `status` is the job's, as last heard."""

    def __init__(self, promise: Callable[[], ActorFuture[None]], status: Callable[[], JobStatus]) -> None:
        self._promise = promise
        self._status = status
        self._lock = threading.Lock()
        self._waiting: list[ActorFuture[None]] = []
        self._error: BaseException | None = None

    def future(self) -> ActorFuture[None]:
        """Done when all tasks run, or when it is known that they will not any more."""
        future = self._promise()
        with self._lock:
            self._waiting.append(future)
        self.look()
        return future

    def over(self, error: BaseException) -> None:
        """The job has failed, was canceled or lost: it will not run any more. The first error counts."""
        with self._lock:
            if self._status() is not JobStatus.FINISHED:
                self._error = self._error or error
        self.look()

    def look(self) -> None:
        """The status may have changed."""
        with self._lock:
            error, runs = self._error, self._status() in (JobStatus.RUNNING, JobStatus.FINISHED)
            if error is None and not runs:
                return
            waiting, self._waiting = self._waiting, []
        for future in waiting:
            if error is None:
                future.try_set(None)
            else:
                future.try_fail(error)


def not_ready(details: JobDetails | None) -> str:
    """Why the tasks do not run yet, as far as it is known, after "the start of job ... is not done"; None: the
    JobManager does not answer.
    """
    if details is None:
        return "; its JobManager does not answer"
    if details.failures:
        return f": it is {details.status.value}; last failure: {tell_line(details.failures[-1])}"
    return (
        f": it is {details.status.value}, and no task has failed. If a TaskManager does not start, the log says why "
        "(`understudy logs`, or the logger understudy.job)"
    )
