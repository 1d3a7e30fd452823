"""JobFailed: a line of what failed, and its story where that says more."""

from __future__ import annotations

import pytest

from understudy import JobFailed, JobStatus
from understudy.messages import CheckpointId, FailureCause, JobDetails, JobId

PLAIN = FailureCause("NoResourceAvailable", "it needs 2 slots, 0 are offered")


def text_of(failure: FailureCause) -> str:
    return str(
        JobFailed(JobDetails(JobId("job-7"), "orders", JobStatus.FAILED, 0, (failure,), 0, CheckpointId(0), "", ()))
    )


def test_a_failure_that_a_line_says_is_said_once() -> None:
    assert text_of(PLAIN).splitlines() == [
        f"job 'orders' (job-7) failed after 0 restarts: {PLAIN.error_type}: it needs 2 slots, 0 are offered"
    ]


@pytest.mark.parametrize(
    ("failure", "more"),
    [
        (FailureCause("ValueError", "boom", cause=FailureCause("KeyError", "'delya'")), "caused by KeyError: 'delya'"),
        (FailureCause("ValueError", "two\nlines"), "two\nlines"),
        (FailureCause("ValueError", "boom", task_manager="tm-1"), "on tm-1"),
        (FailureCause("ValueError", "boom", traceback="the user's own line"), "the user's own line"),
    ],
    ids=["a cause", "more than a line", "a place", "a traceback"],
)
def test_the_story_of_a_failure_that_has_more_follows(failure: FailureCause, more: str) -> None:
    assert more in text_of(failure)
