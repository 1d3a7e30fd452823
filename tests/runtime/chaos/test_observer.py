"""The observer waits for what events tell, and for no longer than the job lives."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from understudy.messages import JobId, JobStatus, JobStatusChanged
from understudy.runtime.chaos.observer import Observer


def changed(status: JobStatus) -> Any:
    return JobStatusChanged(JobId("job"), status, JobStatus.CREATED, 0)


def test_a_condition_is_looked_at_after_each_event_and_believed_the_first_time() -> None:
    """A process that lives when it is looked at may be dead a moment later."""
    observer, answers = Observer(), iter([False, True, False])
    threading.Timer(0.05, observer.on_event, [changed(JobStatus.RUNNING)]).start()
    assert observer.wait_for(lambda: next(answers), 10)


@pytest.mark.parametrize("status", [JobStatus.FINISHED, JobStatus.FAILED])
def test_a_wait_ends_with_the_job(status: JobStatus) -> None:
    observer = Observer()
    threading.Timer(0.05, observer.on_event, [changed(status)]).start()
    assert not observer.wait_for(lambda: False, 10)


def test_a_wait_ends_with_its_time() -> None:
    assert not Observer().wait_for(lambda: False, 0.01)
