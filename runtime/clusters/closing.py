"""Closing: the end of a cluster's jobs, as long as its JobManager still answers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from ...actors.context import Ref
from ...actors.job_manager.job_files import TidyUp
from ...messages import CancelJob, JobId
from .job_handle import JobHandle

TIDY_TIMEOUT_SECONDS = 2.5
"""How long `close` waits for files of jobs that have ended to be removed."""
CANCEL_TIMEOUT_SECONDS = 2.5
"""How long `close` waits for jobs to be cancelled, before it ends their processes."""


def cancel_all(job_manager: Ref, submitted: Sequence[JobId], handles: Sequence[JobHandle]) -> None:
    """Cancel every job that has not ended, and wait for each a little. `submitted`: also those that have no handle."""
    deadline = time.monotonic() + CANCEL_TIMEOUT_SECONDS
    jobs = [(handle.name, handle.submitted.job_id) for handle in handles]
    for handle in handles:
        handle.before_close(max(0.0, deadline - time.monotonic()), jobs)
    answers = [job_manager.ask(CancelJob(job_id)) for job_id in submitted]
    deadline = time.monotonic() + CANCEL_TIMEOUT_SECONDS
    for answer in answers:
        with contextlib.suppress(Exception):  # a job that never reached the JobManager is none to cancel
            answer.result(timeout=deadline - time.monotonic())
    for handle in handles:
        with contextlib.suppress(Exception):
            handle.wait_as_cluster(max(0.0, deadline - time.monotonic()))


def tidy_up(job_manager: Ref) -> None:
    """Once no TaskManager is left: a task may have written a snapshot after the end of its job."""
    answer = job_manager.ask(TidyUp(), timeout_ms=TIDY_TIMEOUT_SECONDS * 1000)
    with contextlib.suppress(Exception):  # storage is away, or this JobManager has stopped, as it leads no more
        answer.get()
