"""Jobs: what the web asks, as a Protocol; and Desk, which asks for all who look, and knows ended jobs too.

A view is asked for once in a short time, however many look. Jobs have Flink's ids here, 32 hexadecimal digits, or our
own: both are understood.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from ...messages import (
    CheckpointHistory,
    ClusterMetrics,
    EndedJob,
    JobId,
    JobList,
    JobMetrics,
    JobSummary,
    JobView,
    JobWatermarks,
    KeyGroups,
    ListJobs,
    RequestCheckpointStatistics,
    RequestJobView,
    RequestKeyGroups,
    RequestMetrics,
)
from ...state.job_history import JobHistory
from ..system.shared_outcome import outcome_of
from .errors import HttpError, JobManagerAway, not_found

FRESH_SECONDS = 0.5
"""So long an answer serves those who ask the same."""
_HEX = re.compile(r"(?:job-)?([0-9a-f]{32})")


class Explained(Protocol):
    """Why event time is no further at an operator; `str()` of it is meant to be read."""

    @property
    def operator(self) -> str: ...

    @property
    def advice(self) -> str: ...

    @property
    def path(self) -> tuple[str, ...]: ...

    @property
    def has_no_event_time(self) -> bool: ...

    @property
    def subtasks(self) -> tuple[Any, ...]: ...

    @property
    def behind(self) -> int:
        """Index of the subtask that is furthest behind; each has `standing_ms`."""
        ...


class Jobs(Protocol):
    """How the JobManager is reached; `clusters` supplies it."""

    def ask(self, message: Any, timeout_ms: float | None = None) -> Awaitable[Any]:
        """Its answer. Raises JobManagerAway, or HttpError with what it has refused."""
        ...

    def explain(self, report: JobWatermarks) -> Iterable[Explained]: ...


def flink_id(job_id: str) -> str:
    """A job's id as Flink's clients want it."""
    found = _HEX.fullmatch(job_id)
    return found.group(1) if found else hashlib.md5(job_id.encode(), usedforsecurity=False).hexdigest()


@dataclass(slots=True)
class _Kept:
    at: float
    task: asyncio.Task[Any]


class Desk:
    """`jobs` None: there is only the history."""

    def __init__(self, jobs: Jobs | None, history: JobHistory | None) -> None:
        self._jobs = jobs
        self._history = history
        self._kept: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, _Kept]] = WeakKeyDictionary()
        self._ids: dict[str, JobId] = {}

    @property
    def is_live(self) -> bool:
        return self._jobs is not None

    async def ask(self, message: Any, timeout_ms: float | None = None) -> Any:
        """A question or order that is not shared. Raises HttpError."""
        if self._jobs is None:
            raise not_found("this is the history of jobs that have ended: there is no JobManager to ask")
        return await self._jobs.ask(message, timeout_ms)

    def changed(self) -> None:
        """By an order: answers from before it are not given again."""
        self._kept.pop(asyncio.get_running_loop(), None)

    async def summaries(self) -> list[JobSummary]:
        """Newest first; jobs that the JobManager does not know any more come from the history."""
        live: tuple[JobSummary, ...] = ()
        if self._jobs is not None:
            answered: JobList = await self._shared(ListJobs(), lambda: self.ask(ListJobs()))
            live = answered.jobs
        known = {each.job_id for each in live}
        kept = [each.view.summary for each in await self._ended() if each.view.summary.job_id not in known]
        found = sorted((*live, *kept), key=lambda each: each.started_ms, reverse=True)
        self._ids = {flink_id(each.job_id): each.job_id for each in found}
        return found

    async def job_id(self, wanted: str) -> JobId:
        """Of an id of either kind. Raises HttpError."""
        for again in (False, True):
            if again:
                await self.summaries()
            if (found := self._ids.get(wanted)) is not None:
                return found
            if wanted in self._ids.values():
                return JobId(wanted)
        raise not_found(f"Job {wanted[:100]!r} not found: there are {', '.join(self._ids) or 'none'}")

    async def view(self, wanted: str, after_ms: int = 0) -> JobView:
        """Raises HttpError."""
        job_id = await self.job_id(wanted)
        if self._jobs is not None:
            question = RequestJobView(job_id, after_ms)
            try:
                view: JobView = await self._shared(question, lambda: self.ask(question))
                return view
            except HttpError as error:
                if isinstance(error, JobManagerAway) or (kept := await self._of_history(job_id)) is None:
                    raise
                return kept.view
        return (await self._must_be_in_history(job_id)).view

    async def checkpoints(self, wanted: str) -> CheckpointHistory:
        """With what each subtask did. Raises HttpError."""
        job_id = await self.job_id(wanted)
        if self._jobs is not None:
            question = RequestCheckpointStatistics(job_id)
            try:
                found: CheckpointHistory = await self._shared(question, lambda: self.ask(question))
                return found
            except HttpError as error:
                if isinstance(error, JobManagerAway) or (kept := await self._of_history(job_id)) is None:
                    raise
                return kept.checkpoints
        return (await self._must_be_in_history(job_id)).checkpoints

    async def running(self) -> list[JobView]:
        """Of all jobs that have not ended. Raises HttpError."""
        found = [each for each in await self.summaries() if not each.status.is_terminal]
        return [await self.view(each.job_id) for each in found]

    async def metrics_of(self, view: JobView) -> JobMetrics | None:
        found = await self.cluster_metrics(view)
        return next((each for each in found.jobs if each.job_id == view.graph.job_id), None) if found else None

    async def key_groups(self, view: JobView) -> KeyGroups | None:
        """None where there are none: of a job of the history, or of a JobManager that does not say."""
        if not self.is_live:
            return None
        question = RequestKeyGroups(view.graph.job_id)
        try:
            found: KeyGroups = await self._shared(question, lambda: self.ask(question))
        except JobManagerAway:
            raise
        except HttpError:
            return None
        return found

    async def cluster_metrics(self, view: JobView | None = None) -> ClusterMetrics | None:
        """Of all jobs, or of this one; None where there are none: of a job of the history."""
        if not self.is_live:
            return None
        try:
            found: ClusterMetrics = await self.ask(RequestMetrics(None if view is None else view.graph.job_id))
        except JobManagerAway:
            raise
        except HttpError:
            return None
        return found

    def explain(self, view: JobView) -> list[Explained]:
        """Why event time is where it is, vertex by vertex."""
        graph, details = view.graph, view.details
        report = JobWatermarks(graph.job_id, graph.name, details.status, graph.vertices, graph.edges, details.tasks)
        return [] if self._jobs is None else list(self._jobs.explain(report))

    async def _of_history(self, job_id: JobId) -> EndedJob | None:
        return next((each for each in await self._ended() if each.view.summary.job_id == job_id), None)

    async def _must_be_in_history(self, job_id: JobId) -> EndedJob:
        found = await self._of_history(job_id)
        if found is None:
            raise not_found(f"Job {job_id} is not in the history any more")
        return found

    async def _ended(self) -> list[EndedJob]:
        if (history := self._history) is None:
            return []
        found: list[EndedJob] = await self._shared("history", lambda: asyncio.to_thread(history.jobs))
        return found

    async def _shared(self, key: Any, ask: Callable[[], Awaitable[Any]]) -> Any:
        """One question for all who ask it on this event loop at about the same time."""
        kept = self._kept.setdefault(asyncio.get_running_loop(), {})
        now = time.monotonic()
        for old in [each for each, one in kept.items() if one.task.done() and now - one.at > FRESH_SECONDS]:
            del kept[old]
        if (known := kept.get(key)) is None:
            known = kept[key] = _Kept(now, asyncio.ensure_future(_awaited(ask)))
            known.task.add_done_callback(_take_error)
        return await outcome_of(known.task)


async def _awaited(ask: Callable[[], Awaitable[Any]]) -> Any:
    return await ask()


def _take_error(task: asyncio.Task[Any]) -> None:
    """Whoever has asked gets it; if all of them have gone, nobody needs it."""
    if not task.cancelled():
        task.exception()
