"""AskedJob: how a job's JobManager is asked, and what it means when that is gone. Base of parts of the JobHandle."""

from __future__ import annotations

from typing import Any

from ...actors.ask_errors import ActorDead
from ...messages import JobGraph, JobId
from .async_twin import Blocking
from .job_client import JobClient
from .job_errors import JobLost
from .job_future import JobFuture


class AskedJob(Blocking):
    """One job."""

    _client: JobClient
    _graph: JobGraph
    _lost: JobLost | None = None
    """Why nobody can be asked any more, once the cluster has said so."""

    @property
    def name(self) -> str:
        return self._graph.name

    @property
    def job_id(self) -> JobId:
        return self._graph.job_id

    def _future(self, message: object, what: str) -> JobFuture[Any]:
        """`what`: of the message, for texts."""
        return JobFuture(self._client.ask(message), f"{what} of job {self.name!r}", failed=self._or_lost)

    def _or_lost(self, error: BaseException) -> BaseException:
        """What a question has failed with; JobLost when there is nobody left who could answer."""
        if not isinstance(error, ActorDead):
            return error
        return self._lost or JobLost(f"the JobManager of job {self.name!r} is gone: {error.reason}")
