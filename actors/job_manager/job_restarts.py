"""JobRestarts: jobs that are started again from a savepoint, with the graph and the code that they were submitted with.

    checked (the savepoint fits, the code is there) -> cancelled, where the job still runs -> submitted as another job

A part of the JobManager. What blocks happens off its thread. Nothing is cancelled before the savepoint was read and
held against the program; who asks is answered when the other job is there, or with why it is not. Flink starts a job
from a jar that it has kept (`/jars/:jarid/run`); here a job's own submission takes the jar's place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pykka

from ...messages import JobDetails, JobId, JobSubmitted, JobView, RestartJob, SubmitJob
from ...state.checkpoints.savepoints import Savepoints, metadata_path
from ..context import ActorContext
from ..errors import NotRestartable
from ..restore.found_origin import find_origin
from .job_files import Tidy
from .job_programs import JobPrograms
from .managed_job import ManagedJob

log = logging.getLogger("understudy.job")


@dataclass(frozen=True, slots=True)
class _Restart:
    """One that is under way."""

    order: RestartJob
    before: SubmitJob
    wanted: SubmitJob
    """Without code, until that is there: the code of `before` is that job's own."""
    promise: pykka.Future[Any]
    found_at: str = ""
    """The savepoint's path, as the store writes it; empty for a checkpoint."""


@dataclass(frozen=True, slots=True)
class RestartChecked:
    """To the JobManager: it may be carried out now, by submitting this."""

    restart: _Restart


@dataclass(frozen=True, slots=True)
class RestartBegun:
    """The other job is there."""

    restart: _Restart
    submitted: JobSubmitted


@dataclass(frozen=True, slots=True)
class RestartSettled:
    """How it went: the answer to whoever asked."""

    restart: _Restart
    result: JobSubmitted | BaseException


RestartEvent: TypeAlias = RestartChecked | RestartBegun | RestartSettled


class JobRestarts:
    """One JobManager's. `jobs`: all that it knows; `submit` as JobSubmissions.submit; `tidy` does something that
    blocks, and again until it succeeds.
    """

    def __init__(
        self,
        context: ActorContext,
        programs: JobPrograms,
        savepoints: Savepoints,
        jobs: Mapping[JobId, ManagedJob],
        submit: Callable[[SubmitJob], JobSubmitted | pykka.Future[Any]],
        tidy: Callable[[Tidy], None],
    ) -> None:
        self._context = context
        self._programs = programs
        self._savepoints = savepoints
        self._jobs = jobs
        self._submit = submit
        self._tidy = tidy
        self._submitted: dict[JobId, SubmitJob] = {}
        self._next: dict[JobId, JobId] = {}
        """Who goes on in place of whom, or will."""
        self._first: dict[JobId, JobId] = {}
        """Of each job that goes on in place of another one, the first of that line."""
        self._under_way: dict[JobId, _Restart] = {}
        self._when_ended: dict[JobId, _Restart] = {}
        """By the job that is cancelled for it."""

    # -- jobs

    def begun(self, submitted: SubmitJob) -> None:
        self._submitted[submitted.graph.job_id] = submitted

    def ended(self, job_id: JobId) -> None:
        """It may have been cancelled to be restarted."""
        self._over(self._submitted[job_id])
        if (restart := self._when_ended.pop(job_id, None)) is not None:
            self._begin(restart)

    def forgotten(self, job_id: JobId) -> None:
        self._submitted.pop(job_id, None)
        self._next.pop(job_id, None)
        self._first.pop(job_id, None)

    # -- clients

    def restart(self, order: RestartJob, job: ManagedJob) -> pykka.Future[Any]:
        """The promise of a JobSubmitted. Raises NotRestartable."""
        before = self._submitted[order.job_id]
        if why := self._refusal(before) or _in_the_way(order, job):
            raise NotRestartable(f"job {before.graph.name!r} ({order.job_id}) is not restarted: {why}")
        new_id = JobId(f"job-{self._context.random.getrandbits(128):032x}")
        wanted = replace(
            before,
            graph=replace(before.graph, job_id=new_id, earlier_inlets=()),
            restore_from=order.savepoint_path,
            allow_non_restored_state=order.allow_non_restored_state,
            working_directory="",
            program=None,
        )
        restart = _Restart(order, before, wanted, self._context.promise())
        self._under_way[order.job_id] = restart
        self._next[order.job_id] = new_id
        self._first[new_id] = self._first.get(order.job_id, order.job_id)
        self._context.pipe_to_self(
            self._context.run_blocking(self._check, restart),
            RestartChecked,
            lambda error: RestartSettled(restart, error),
        )
        return restart.promise

    def needs(self, savepoint_path: str) -> str:
        """Why nobody may dispose of this savepoint now; empty: one may."""
        for job_id, restart in self._under_way.items():
            if savepoint_path in (restart.order.savepoint_path, restart.found_at):
                return f"job {job_id} is just being restarted from it"
        return ""

    def details(self, found: JobDetails) -> JobDetails:
        """With what has become of the job's restart."""
        return replace(found, restarted_as=self._next.get(found.job_id, ""))

    def view(self, found: JobView) -> JobView:
        before = self._submitted[found.graph.job_id]
        return replace(found, details=self.details(found.details), restart_refusal=self._refusal(before))

    def on(self, event: RestartEvent) -> None:
        match event:
            case RestartChecked(restart):
                self._checked(restart)
            case RestartBegun(restart, submitted):
                self._context.pipe_to_self(
                    self._context.run_blocking(self._programs.started, restart.before, submitted),
                    lambda _: RestartSettled(restart, submitted),
                    lambda error: _unheard(restart, submitted, error),
                )
            case RestartSettled(restart, result):
                self._settle(restart, result)

    # -- inside

    def _refusal(self, before: SubmitJob) -> str:
        """Why it can be started again neither now nor when it has ended."""
        job_id = before.graph.job_id
        if job_id in self._under_way:
            return f"that is under way already, as job {self._next[job_id]}"
        for other in self._relatives(job_id):
            if other in self._under_way:
                return f"job {other}, which runs the same program, is just being restarted, as job {self._next[other]}"
            if other in self._jobs and not self._jobs[other].status.is_terminal:
                return f"it was restarted already, and job {other} goes on in its place: restart that one"
        if before.resume:
            return (
                "it owns its name (resume='latest'), and what has become of that name decides from where it goes on: "
                "start its program again; from a savepoint of your choice with resume='savepoint'"
            )
        return self._programs.refusal(before)

    def _relatives(self, job_id: JobId) -> list[JobId]:
        """The other jobs of its line: all write to the same sinks."""
        first = self._first.get(job_id, job_id)
        line = [first, *(each for each, of in self._first.items() if of == first)]
        return [each for each in line if each != job_id]

    def _check(self, restart: _Restart) -> _Restart:
        """Blocks. Raises CannotRestore, NotRestartable, OSError."""
        # Damage that is found when the job that runs is gone is found too late.
        found = find_origin(restart.wanted, self._savepoints, every_byte=restart.order.cancel)
        ready = self._programs.again(restart.before, restart.wanted)
        return replace(restart, wanted=ready, found_at=found.savepoint_path)

    def _checked(self, restart: _Restart) -> None:
        job_id = restart.order.job_id
        self._under_way[job_id] = restart
        job = self._jobs.get(job_id)
        if job is None or job.status.is_terminal:
            self._begin(restart)
            return
        log.warning(
            "job %r (%s) is cancelled, to be started again from %s as job %s",
            restart.before.graph.name,
            job_id,
            restart.order.savepoint_path,
            restart.wanted.graph.job_id,
        )
        self._when_ended[job_id] = restart
        job.cancel()

    def _begin(self, restart: _Restart) -> None:
        try:
            submitted = self._submit(restart.wanted)
        except Exception as error:  # noqa: BLE001 - supervision boundary: whoever asked gets it
            self._settle(restart, error)
            return
        assert isinstance(submitted, pykka.Future), "what a job starts from is read off this thread"
        self._context.pipe_to_self(
            submitted, lambda there: RestartBegun(restart, there), lambda error: RestartSettled(restart, error)
        )

    def _settle(self, restart: _Restart, result: JobSubmitted | BaseException) -> None:
        job_id, name = restart.order.job_id, restart.before.graph.name
        self._under_way.pop(job_id, None)
        if isinstance(result, BaseException):
            self._next.pop(job_id, None)
            self._first.pop(restart.wanted.graph.job_id, None)
            self._over(restart.wanted)
            log.warning("job %r (%s) was not started again: %s", name, job_id, result)
            restart.promise.set_exception((type(result), result, result.__traceback__))
        else:
            log.info("job %r (%s) is started again as job %s", name, job_id, result.job_id)
            restart.promise.set(result)

    def _over(self, submitted: SubmitJob) -> None:
        work = self._programs.over
        self._tidy(Tidy(f"the code of job {submitted.graph.job_id}", lambda: work(submitted)))


def _in_the_way(order: RestartJob, job: ManagedJob) -> str:
    """Of a job that still runs."""
    if job.status.is_terminal:
        return ""
    if not order.cancel:
        return f"it is {job.status.value}: stop it with a savepoint, or cancel it, first"
    if metadata_path(order.savepoint_path) is not None:
        return "it still runs, and a checkpoint of it may go while it is cancelled: take a savepoint"
    return ""


def _unheard(restart: _Restart, submitted: JobSubmitted, error: BaseException) -> RestartSettled:
    """Its cluster is closing, say: the job is there all the same."""
    log.warning("job %s has no handle: %s", submitted.job_id, error)
    return RestartSettled(restart, submitted)
