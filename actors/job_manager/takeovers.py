"""Takeovers: jobs of an earlier leader whose tasks may still run, until each is adopted as it is, or started again.

    begun -> (others can find this leader) -> waits for its TaskManagers -> adopted: not a task restarts
                                                '-> started again, from its newest checkpoint

A part of the JobManager. The Adoption of each job decides; whoever offers tasks gets no answer before that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...messages import JobGraph, JobId, RegisterTaskManager
from ..context import ActorContext, Ref
from ..jobs.adoption import Adoption
from .managed_job import ManagedJob


@dataclass(frozen=True, slots=True)
class LeaderPublished:
    """To the JobManager: others can find it from now on."""


@dataclass(frozen=True, slots=True)
class AdoptionOverdue:
    """Timer: this job has waited long enough for TaskManagers that run it."""

    job_id: JobId


@dataclass(frozen=True, slots=True)
class _Waiting:
    """One job that is not decided yet."""

    job: ManagedJob
    name: str
    adoption: Adoption
    refs: dict[int, Ref] = field(default_factory=dict)
    """Of the TaskManagers that have offered tasks, by index."""

    def offers(self) -> list[tuple[RegisterTaskManager, Ref]]:
        return [(offer, self.refs[offer.index]) for offer in self.adoption.offers]


class Takeovers:
    """Of one JobManager."""

    def __init__(
        self,
        context: ActorContext,
        timeout_ms: int,
        admit: Callable[[ManagedJob, RegisterTaskManager, Ref], None],
        refuse: Callable[[RegisterTaskManager, Ref, str], None],
        abandon: Callable[[JobId], None],
    ) -> None:
        """`timeout_ms`: how long a job waits; 0: no TaskManager outlives its leader. `admit` and `refuse` answer a
        TaskManager; `abandon` ends what else may run of a job.
        """
        self._context = context
        self._timeout_ms = timeout_ms
        self._admit = admit
        self._refuse = refuse
        self._abandon = abandon
        self._waiting: dict[JobId, _Waiting] = {}
        self._can_be_found = False

    def begin(self, job: ManagedJob, graph: JobGraph) -> bool:
        """A job of an earlier leader is to go on; whether it waits for what may still run of it."""
        if not self._timeout_ms:
            return False
        newest = next(job.master.coordinator.store.restorable(), None)
        self._waiting[job.job_id] = _Waiting(job, graph.name, Adoption(graph, newest))
        job.overview.is_taken_over = True
        if self._can_be_found:
            self._wait_for(job.job_id)
        return True

    def can_be_found(self) -> None:
        """TaskManagers learn from now on who leads: it makes sense to wait for them."""
        self._can_be_found = True
        for job_id in self._waiting:
            self._wait_for(job_id)

    def offered(self, message: RegisterTaskManager, ref: Ref) -> bool:
        """Whether that is for a job that is not decided: then its TaskManager is answered later."""
        waiting = self._waiting.get(message.job_id)
        if waiting is None:
            return False
        waiting.refs[message.index] = ref
        waiting.adoption.offer(message)
        obstacle = waiting.adoption.obstacle()
        if obstacle is None:
            self._adopt(self._waiting.pop(message.job_id))
        elif not obstacle.may_pass:
            self._start_again(message.job_id, obstacle.why)
        return True

    def exited(self, job_id: JobId) -> bool:
        """A TaskManager of this job has ended; whether that decides about the job."""
        return self._start_again(job_id, "a TaskManager of it has ended")

    def overdue(self, event: AdoptionOverdue) -> None:
        waiting = self._waiting.get(event.job_id)
        obstacle = None if waiting is None else waiting.adoption.obstacle()
        if obstacle is not None:
            self._start_again(event.job_id, obstacle.why)

    def forget(self, job_id: JobId) -> None:
        """It has ended meanwhile."""
        if (waiting := self._waiting.pop(job_id, None)) is not None:
            waiting.job.overview.is_taken_over = False

    def _wait_for(self, job_id: JobId) -> None:
        self._context.schedule(self._timeout_ms, AdoptionOverdue(job_id))

    def _adopt(self, waiting: _Waiting) -> None:
        waiting.job.overview.is_taken_over = False
        waiting.job.say(f"job {waiting.name!r} goes on under this JobManager: all its tasks run, and none restarts")
        for message, ref in waiting.offers():
            self._admit(waiting.job, message, ref)
        waiting.job.adopt(waiting.adoption.offers)

    def _start_again(self, job_id: JobId, why: str) -> bool:
        waiting = self._waiting.pop(job_id, None)
        if waiting is None:
            return False
        waiting.job.overview.is_taken_over = False
        waiting.job.say(f"job {waiting.name!r} is started again by this JobManager: {why}")
        for message, ref in waiting.offers():
            self._refuse(message, ref, f"its job starts again from its newest checkpoint: {why}")
        self._abandon(job_id)
        waiting.job.start()
        return True
