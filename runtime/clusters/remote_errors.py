"""What can go wrong between a client in another process and its JobManager.

RemoteError              the base of all; the text says what to do
├── NoJobManager         nobody answers at the address, or not any more
├── KeyRefused           somebody answers, but the key does not fit
├── NoAnswer             no answer within the time that the client gave; the JobManager may still be at it
├── NoSuchJob            no job of this id, prefix or name
├── AmbiguousJob         several of this prefix or name
└── Refused              the JobManager said no; with its reason
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from ...messages import JobSummary
from ...messages.known_names import meant


class RemoteError(Exception):
    """Base of all errors of a RemoteCluster."""


class NoJobManager(RemoteError):
    """There is no JobManager at this address."""


class KeyRefused(RemoteError):
    """Client and JobManager do not have the same key."""


class NoAnswer(RemoteError):
    """The JobManager did not answer in time."""


OF_PROGRAMS = "A cluster that a program of yours has made is found once the program has called cluster.announce()"


class NoSuchJob(RemoteError, LookupError):
    """The JobManager knows no such job."""

    def __init__(self, wanted: str, jobs: Sequence[JobSummary]) -> None:
        found = meant(wanted, [job.name for job in jobs])
        near = found or "."
        if os.sep in wanted:
            near = ", which looks like a path: the job comes first, and a folder behind it."
        elsewhere = "" if found else f". {OF_PROGRAMS}"
        text = f"no job has the id, a prefix of it, or the name {wanted!r}{near} There are: {_names(jobs)}"
        super().__init__(f"{text}{elsewhere}")


class AmbiguousJob(RemoteError, LookupError):
    """More than one job is meant."""

    def __init__(self, wanted: str, jobs: Sequence[JobSummary]) -> None:
        super().__init__(f"{wanted!r} means several jobs, say which by its id: {_names(jobs)}")


class Refused(RemoteError):
    """The JobManager does not do it; the text is its own."""


def _names(jobs: Sequence[JobSummary]) -> str:
    return ", ".join(f"{job.job_id} ({job.name}, {job.status.value})" for job in jobs) or "none"
