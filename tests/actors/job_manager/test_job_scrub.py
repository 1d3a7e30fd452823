"""JobScrub: files of earlier checkpoints that are gone have a full checkpoint taken, until one is. Rounds are tested in
the simulator.
"""

from __future__ import annotations

from typing import Any

import pytest

from understudy.actors.checkpoints.savepoint_request import CheckpointRequest
from understudy.actors.job_manager.job_scrub import JobScrub
from understudy.messages import CheckpointId, CheckpointNotTaken, CheckpointTaken, JobId

from ..graphs import graph

JOB = JobId("job")
REFUSED = CheckpointNotTaken(JOB, "a region restarts")
TAKEN = CheckpointTaken(JOB, CheckpointId(4), "memory://checkpoints/job/chk-4")


def scrub_of(asked: list[CheckpointRequest]) -> JobScrub:
    """Of a job without rounds, which needs no context and no storage."""
    nothing: Any = None
    return JobScrub(nothing, graph(), nothing, lambda: iter(()), asked.append)


def test_a_full_checkpoint_that_is_refused_is_asked_for_again_with_the_next_one_that_misses_files(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked: list[CheckpointRequest] = []
    scrub = scrub_of(asked)
    scrub.files_gone("files are gone")
    scrub.files_gone("files are gone")
    assert len(asked) == 1, "it is under way"
    assert asked[0].is_full
    assert scrub.answered(asked[0], REFUSED)
    scrub.files_gone("files are gone")
    assert len(asked) == 2
    assert asked[1].is_full
    assert asked[1] != asked[0]
    assert len([text for text in caplog.messages if "files are gone" in text]) == 1


def test_files_that_are_gone_after_a_full_checkpoint_are_said_again(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[CheckpointRequest] = []
    scrub = scrub_of(asked)
    for time in (1, 2):
        scrub.files_gone("files are gone")
        assert len(asked) == time
        assert scrub.answered(asked[-1], TAKEN)
        assert len([text for text in caplog.messages if "files are gone" in text]) == time


def test_an_answer_to_the_request_of_somebody_else_is_not_its_own() -> None:
    asked: list[CheckpointRequest] = []
    scrub = scrub_of(asked)
    scrub.files_gone("files are gone")
    assert not scrub.answered(CheckpointRequest("of a client"), TAKEN)
    scrub.files_gone("files are gone")
    assert len(asked) == 1
