"""A bug where the page's views and answers are made: it is said, on the page and in the log, and the next one comes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import httpx
import pytest

from understudy.runtime.web import live, page_view
from understudy.runtime.web.app import App
from understudy.runtime.web.job_page import JobPage

from .views import HEX, AnsweringJobs


class _Faulty:
    """Stands before a function of the page, which fails as long as it is told to."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self.real = real
        self.left = 2

    def __get__(self, instance: Any, _: Any = None) -> Callable[..., Any]:
        return lambda *given: self(instance, *given)

    def __call__(self, *given: Any) -> Any:
        if self.left:
            self.left -= 1
            raise KeyError("no such vertex")
        return self.real(*given)


def _events(app: App, job: str, number: int) -> list[tuple[str, Any]]:
    """The first of a page."""

    async def read() -> list[tuple[str, Any]]:
        stream = await app._live.stream(job)
        found = []
        async for event in stream:
            kind, data = event.decode().strip().split("\n")
            found.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
            if len(found) == number:
                break
        stream.close()
        return found

    return asyncio.run(asyncio.wait_for(read(), 20))


@pytest.mark.parametrize(
    ("job", "kind", "where", "name"),
    [
        (HEX, "job", JobPage, "text"),
        ("", "jobs", page_view, "jobs"),
        (HEX, "job", page_view, "timeline"),
    ],
    ids=["view of a job", "list of jobs", "timeline of one page"],
)
def test_a_view_that_cannot_be_made_is_said_and_the_next_one_comes(
    jobs: AnsweringJobs,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    job: str,
    kind: str,
    where: Any,
    name: str,
) -> None:
    monkeypatch.setattr(live, "INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(where, name, _Faulty(getattr(where, name)))
    with caplog.at_level(logging.ERROR):
        *failed, (found, _) = _events(App(jobs), job, 3)
    assert [each for each, _ in failed] == ["away", "away"]
    for _, said in failed:
        assert said["status"] == HTTPStatus.INTERNAL_SERVER_ERROR
        assert "the server of the page failed: KeyError. " in said["why"]
        assert "says more" in said["why"]
        assert "no such vertex" not in said["why"]
    assert found == kind
    (logged,) = caplog.records  # once, not each second
    assert "KeyError: 'no such vertex'" in logged.getMessage()
    assert "tried again" in logged.getMessage()
    assert logged.exc_info


async def _get(client: httpx.AsyncClient, path: str) -> httpx.Response:
    async with client:
        return await client.get(path)


def test_the_answer_to_a_request_says_what_failed_and_the_log_says_more(
    jobs: AnsweringJobs,
    client_of: Callable[..., httpx.AsyncClient],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever asks may see no paths, and no values of users."""
    broken = _Faulty(page_view.watermarks)
    monkeypatch.setattr(page_view, "watermarks", broken)
    answer = asyncio.run(_get(client_of(App(jobs)), f"/page/{HEX}/watermarks"))
    assert answer.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    (said,) = answer.json()["errors"]
    assert "the server of the page failed: KeyError. " in said
    assert "says more" in said
    assert "no such vertex" not in answer.text
    assert "no such vertex" in caplog.text
