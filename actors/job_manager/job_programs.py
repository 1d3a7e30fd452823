"""JobPrograms: who has the code of jobs, so that one can be started again. A JobManager has their graphs alone."""

from __future__ import annotations

from typing import Protocol

from ...messages import JobSubmitted, SubmitJob
from ..errors import NotRestartable

KEPT_PROGRAMS = 20
"""Of this number of ended jobs, the last ones, the code is kept."""


class JobPrograms(Protocol):
    """Jobs are named by what was submitted of them. From any thread; all but `refusal` may block."""

    def refusal(self, before: SubmitJob) -> str:
        """Why the code of this job cannot be run again; empty: it can."""
        ...

    def again(self, before: SubmitJob, wanted: SubmitJob) -> SubmitJob:
        """Get ready to run the code of one job as another one; returns what is to be submitted of that. Raises
        NotRestartable, and OSError where storage does not answer.
        """
        ...

    def started(self, before: SubmitJob, submitted: JobSubmitted) -> None:
        """The other job is there, and its code is that of `before`."""
        ...

    def over(self, ended: SubmitJob) -> None:
        """This job has ended, or was not started in the end: its code is kept for a while."""
        ...


class NoPrograms:
    """Nobody keeps any."""

    def refusal(self, before: SubmitJob) -> str:
        return "this cluster does not keep the code of its jobs: submit it again, with from_savepoint"

    def again(self, before: SubmitJob, wanted: SubmitJob) -> SubmitJob:
        raise NotRestartable(self.refusal(before))

    def started(self, before: SubmitJob, submitted: JobSubmitted) -> None:
        """It cannot be."""

    def over(self, ended: SubmitJob) -> None:
        """There is nothing of it."""
