"""Live: server-sent events for the page: the list of jobs, or one job, as often as there is something new.

    event: jobs      the list
    event: job       {"view": all but the timeline, "timeline": what is new of it}
    event: away      nothing new can be shown; {"why": text, "status": number}. The JobManager does not answer (503),
                     there is no such job (404), or a view could not be made, a bug here (500). It is tried again

However many pages look at a job, the JobManager is asked once in an interval, and the answer is encoded once. A page
that reads slowly misses views, and gets the newest one when it is ready: nothing piles up for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import deque
from http import HTTPStatus
from typing import Any
from weakref import WeakValueDictionary

from ...messages import JobView, TimelineMark, TimelineSample
from . import page_view
from .errors import HttpError, JobManagerAway, fault
from .job_page import JobPage
from .jobs import Desk

log = logging.getLogger(__name__)
INTERVAL_SECONDS = 1.0
PATIENCE_SECONDS = 15.0
"""After so long without news a comment is sent, so that proxies keep the connection."""
MOST_STREAMS = 256
LATE_MS = 5_000
"""What has happened may become known so much later; the page knows what it has already."""
MOST_LOGGED = 20
"""Faults of one page that are logged: the text of one may be another each time."""
LOGGED_LENGTH = 500
"""Of the text of a fault."""
SHARE_OF_TIME = 0.05
"""To make views takes no more of the thread's time than this: of the largest jobs there are fewer in a minute."""


class Live:
    """The streams of one app."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._feeds: WeakValueDictionary[tuple[int, str], _Feed] = WeakValueDictionary()
        self._streams = 0
        self._most = MOST_STREAMS
        self._is_over = False

    def limit(self, most: int) -> None:
        """Serve at most this number of streams at once."""
        self._most = min(MOST_STREAMS, most)

    def end(self) -> None:
        """End all streams. To be called on their event loop."""
        self._is_over = True
        for feed in list(self._feeds.values()):
            feed.news.set()

    async def stream(self, job: str) -> Stream:
        """The events about one job, or with an empty id about all. Raises HttpError for a job that there is not."""
        if job:
            with contextlib.suppress(JobManagerAway):  # the page waits for it
                job = await self._desk.job_id(job)
        if self._streams >= self._most:
            raise HttpError(
                HTTPStatus.SERVICE_UNAVAILABLE, f"{self._most} pages are being served already: close one of them"
            )
        self._streams += 1
        key = (id(asyncio.get_running_loop()), job)
        if (feed := self._feeds.get(key)) is None:
            feed = self._feeds[key] = _Feed(self._desk, job)
        return Stream(self, feed)

    @property
    def is_over(self) -> bool:
        return self._is_over

    def closed(self) -> None:
        """A stream is."""
        self._streams -= 1


class Stream:
    """The events of one page, until it is closed."""

    def __init__(self, live: Live, feed: _Feed) -> None:
        self._live = live
        self._feed = feed
        self._reader = _Reader(feed)
        self._is_closed = False
        feed.begin()

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> bytes:
        if self._live.is_over or self._is_closed:
            raise StopAsyncIteration
        return await self._reader.next()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._feed.end()
            self._live.closed()


class _Feed:
    """What all pages that look at the same thing are sent. It polls as long as there is one."""

    def __init__(self, desk: Desk, job: str) -> None:
        self._desk = desk
        self._job = job
        self._page = JobPage()
        self._pages = 0
        self._task: asyncio.Task[None] | None = None
        self.number = 0
        self.kind, self.body = "", b""
        self.samples: deque[TimelineSample] = deque(maxlen=120)
        self.marks: deque[TimelineMark] = deque(maxlen=400)
        self.news = asyncio.Event()
        self._logged: set[str] = set()

    @property
    def of_job(self) -> bool:
        return bool(self._job)

    def begin(self) -> None:
        self._pages += 1
        if self._task is None:
            self._task = asyncio.ensure_future(self._poll())

    def end(self) -> None:
        self._pages -= 1
        if not self._pages and self._task is not None:
            self._task.cancel()
            self._task = None

    async def whole_timeline(self) -> tuple[Any, Any]:
        view = await self._desk.view(self._job)
        return view.samples, view.marks

    async def _poll(self) -> None:
        after_ms = 0
        while True:
            began, is_over = time.thread_time(), False
            try:
                if self._job:
                    view = await self._desk.view(self._job, after_ms)
                    history = await self._desk.checkpoints(self._job)
                    began = time.thread_time()
                    after_ms = self._take(view, after_ms)
                    is_over = view.summary.status.is_terminal
                    self._send("job", self._page.text(view, history))
                else:
                    found = await self._desk.summaries()
                    self._publish("jobs", page_view.jobs(found, time.time_ns() // 1_000_000))
            except HttpError as error:
                self._send("away", _away(error))
            except Exception as error:  # noqa: BLE001 - supervision boundary: one bad view must not end the rest
                self._send("away", _away(self.failed(error)))
            cost = time.thread_time() - began
            await asyncio.sleep(PATIENCE_SECONDS if is_over else max(INTERVAL_SECONDS, cost / SHARE_OF_TIME))

    def failed(self, error: Exception) -> HttpError:
        """The page gets this in place of a view. The log has the traceback once for each kind, not each second."""
        reason = f"{type(error).__name__}: {error}"[:LOGGED_LENGTH]
        if reason not in self._logged and len(self._logged) < MOST_LOGGED:
            self._logged.add(reason)
            about = f"job {self._job}" if self._job else "the list of jobs"
            log.error(
                "The page of %s has nothing new, and it is tried again; this is a bug: %s",
                about,
                reason,
                exc_info=error,
            )
        return fault(error)

    def _take(self, view: JobView, after_ms: int) -> int:
        """Keep what is new of the timeline; returns up to when it is known. A mark may come a moment late."""
        known = {(each.at_ms, each.kind, each.number) for each in self.marks}
        self.marks.extend(each for each in view.marks if (each.at_ms, each.kind, each.number) not in known)
        last_ms = self.samples[-1].at_ms if self.samples else 0
        self.samples.extend(each for each in view.samples if each.at_ms > last_ms)
        return max(after_ms, min(view.at_ms - LATE_MS, view.samples[-1].at_ms if view.samples else after_ms))

    def _publish(self, kind: str, value: Any) -> None:
        self._send(kind, json.dumps(value, separators=(",", ":")))

    def _send(self, kind: str, text: str) -> None:
        self.number += 1
        self.kind, self.body = kind, text.encode("utf-8", "replace")
        self.news.set()
        self.news = asyncio.Event()


class _Reader:
    """One page: how far it has come."""

    def __init__(self, feed: _Feed) -> None:
        self._feed = feed
        self._number = 0
        self._sample_ms = self._mark_ms = -1

    async def next(self) -> bytes:
        """The next event."""
        feed = self._feed
        if feed.number == self._number:
            try:
                await asyncio.wait_for(feed.news.wait(), PATIENCE_SECONDS)
            except TimeoutError:
                return b": still here\n\n"
        self._number, kind, body = feed.number, feed.kind, feed.body
        if kind == "job":
            try:
                timeline = await self._timeline()
            except HttpError as error:
                kind, body = "away", _away(error).encode()
            except Exception as error:  # noqa: BLE001 - supervision boundary, as of the feed
                kind, body = "away", _away(feed.failed(error)).encode()
            else:
                new = json.dumps(timeline, separators=(",", ":")).encode("utf-8", "replace")
                body = b'{"view":' + body + b',"timeline":' + new + b"}"
        return b"event: " + kind.encode() + b"\ndata: " + body + b"\n\n"

    async def _timeline(self) -> Any:
        samples: Any = self._feed.samples
        marks: Any = self._feed.marks
        if self._sample_ms < 0 or (samples and samples[0].at_ms > self._sample_ms + 60_000):
            samples, marks = await self._feed.whole_timeline()
        new_samples = [each for each in samples if each.at_ms > self._sample_ms]
        new_marks = [each for each in marks if each.at_ms > self._mark_ms - LATE_MS]
        self._sample_ms = max((each.at_ms for each in new_samples), default=max(self._sample_ms, 0))
        self._mark_ms = max((each.at_ms for each in new_marks), default=max(self._mark_ms, 0))
        return page_view.timeline(new_samples, new_marks)


def _away(error: HttpError) -> str:
    return json.dumps({"why": str(error), "status": int(error.status)})
