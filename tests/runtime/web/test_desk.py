"""Desk: what the JobManager does not say, and the history does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.messages import EndedJob, JobStatus
from understudy.runtime.web import jobs
from understudy.runtime.web.errors import JobManagerAway
from understudy.runtime.web.jobs import Desk

from .views import JOB, AnsweringJobs, history_of, job_view

ENDED = EndedJob(job_view(status=JobStatus.FINISHED), history_of(job_view()))


async def answers(answering: AnsweringJobs, *, away: bool) -> list[Any]:
    """To all that is asked of the job, answers or errors."""
    history: Any = SimpleNamespace(jobs=lambda: [ENDED])
    desk = Desk(answering, history)
    await desk.summaries()
    answering.away = away
    asked: list[Coroutine[Any, Any, Any]] = [desk.view(JOB), desk.checkpoints(JOB)]
    return list(await asyncio.gather(*asked, return_exceptions=True))


def test_a_job_that_the_job_manager_has_forgotten_is_as_the_history_has_it() -> None:
    assert asyncio.run(answers(AnsweringJobs(), away=False)) == [ENDED.view, ENDED.checkpoints]


@pytest.mark.parametrize("views", [(), (job_view(),)], ids=["forgotten", "known"])
def test_when_the_job_manager_is_away_nothing_old_is_shown_as_new(views: Any) -> None:
    """The page shows what it knew, and asks again."""
    view, checkpoints = asyncio.run(answers(AnsweringJobs(*views), away=True))
    assert isinstance(view, JobManagerAway)
    assert isinstance(checkpoints, JobManagerAway)


def test_an_answer_serves_those_who_ask_at_about_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at_s = 100.0
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: at_s))

    async def asked() -> list[int]:
        nonlocal at_s
        answering, found = AnsweringJobs(job_view()), []
        desk = Desk(answering, None)
        for passed_s in (0.0, jobs.FRESH_SECONDS / 2, jobs.FRESH_SECONDS):
            at_s += passed_s
            await desk.summaries()
            found.append(answering.questions)
        return found

    assert asyncio.run(asked()) == [1, 1, 2]
