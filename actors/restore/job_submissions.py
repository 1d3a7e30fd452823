"""JobSubmissions: jobs that are to be started, until what they start from has been read, and they are kept.

A part of the JobManager. Claiming a name, reading, checking and keeping block, so they happen off its thread, before
anything is made of the job: whatever is wrong is the answer to the client, and touches nothing that runs.

Flink: Dispatcher.submitJob.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pykka

from ...messages import CheckpointId, JobId, JobStatus, JobSubmitted, SubmitJob
from ...state import AlreadyFinished, StateError
from ...state.checkpoints.checkpoint_ids import FIRST_CHECKPOINT_ID
from ...state.checkpoints.high_availability import HighAvailability, KeptJob
from ...state.checkpoints.job_runs import Claimant, JobRuns, RunClaim, RunOutcome
from ...state.checkpoints.savepoints import Savepoints
from ..context import ActorContext
from .found_origin import FoundOrigin, cannot_restore, find_origin
from .resumption import Resumption, path_to_keep, say_what_is_resumed


@dataclass(frozen=True, slots=True)
class JobKept:
    """Of one submission: a job is kept, and may be started, from `origin` if there is one."""

    job: KeptJob
    origin: FoundOrigin | None
    claim: RunClaim | None = None
    """To the job's name, if it is to be resumed."""
    earlier_inlets: tuple[str, ...] = ()
    """See JobGraph."""
    is_taken_over: bool = False
    """Whether an earlier leader has had it: then it stays kept, also if it cannot be started."""


@dataclass(frozen=True, slots=True)
class SubmissionRead:
    """To the JobManager, once per submission that blocks: what came of it, or why nothing."""

    wanted: SubmitJob
    result: JobKept | BaseException


Start: TypeAlias = Callable[[SubmitJob, JobKept], JobSubmitted]
"""Makes the job; raises when that cannot be."""


class JobSubmissions:
    """One JobManager's."""

    def __init__(
        self,
        context: ActorContext,
        savepoints: Savepoints,
        high_availability: HighAvailability,
        claimant: Claimant,
    ) -> None:
        self._context = context
        self._savepoints = savepoints
        self._high_availability = high_availability
        self._claimant = claimant
        self._promises: dict[JobId, pykka.Future[Any]] = {}

    def submit(self, wanted: SubmitJob, start: Start) -> JobSubmitted | pykka.Future[Any]:
        """Start the job at once where nothing blocks, and raise what is wrong; else the promise of the answer, and
        SubmissionRead follows. The same job twice is the same promise.
        """
        job_id, checkpoints = wanted.graph.job_id, wanted.graph.checkpoints
        if checkpoints.encryption_key:
            self._savepoints.open_storage(checkpoints.directory).check_encryption(checkpoints.encryption_key)
        if wanted.restore_from is None and not wanted.resume and not self._high_availability.may_block:
            return start(wanted, JobKept(self._high_availability.add_job(wanted), None))
        if job_id not in self._promises:
            self._promises[job_id] = self._context.promise()
            self._context.pipe_to_self(
                self._context.run_blocking(self._keep, wanted),
                lambda kept: SubmissionRead(wanted, kept),
                lambda error: SubmissionRead(wanted, error),
            )
        return self._promises[job_id]

    def settle(self, read: SubmissionRead, start: Start) -> bool:
        """Start the job, or answer the client what is wrong; returns whether it was started."""
        promise = self._promises.pop(read.wanted.graph.job_id)
        try:
            if isinstance(read.result, BaseException):
                raise read.result
            promise.set(self._started(read.wanted, read.result, start))
        except Exception as error:  # noqa: BLE001 - supervision boundary: whoever asked gets it
            promise.set_exception((type(error), error, error.__traceback__))
            return False
        return True

    def _started(self, wanted: SubmitJob, kept: JobKept, start: Start) -> JobSubmitted:
        try:
            submitted = start(wanted, kept)
        except Exception as error:
            if kept.claim is not None:
                self._context.run_blocking(kept.claim.end, RunOutcome.NOT_STARTED)
            if kept.origin is None or not isinstance(error, StateError):
                raise
            raise cannot_restore(wanted, error) from error  # it was disposed of meanwhile
        if kept.claim is not None:
            storage = kept.claim.runs.storage
            say_what_is_resumed(wanted.graph.name, submitted, storage, self._context.clock.wall_ms())
        return submitted

    # -- blocking

    def _keep(self, wanted: SubmitJob) -> JobKept:
        """Find what the job starts from, and have it kept. Raises as `find_origin`, `JobRuns.claim`, `Resumption` and
        HighAvailability.add_job.
        """
        if self._high_availability.is_kept(wanted.graph.job_id):
            return self._take_over(wanted)
        return self._begin(wanted)

    def _take_over(self, wanted: SubmitJob) -> JobKept:
        """An earlier leader has had the job: it goes on from its newest checkpoint; without any it begins again. One
        that has finished is kept no more: that leader died after it had stored that, and before it forgot the job.
        """
        if wanted.resume:
            try:
                self._runs(wanted).check_unfinished(wanted.graph.job_id)
            except AlreadyFinished:
                self._high_availability.remove_job(wanted.graph.job_id, JobStatus.FINISHED)
                raise
        kept = self._high_availability.add_job(wanted)
        newest = next(kept.checkpoints.restorable(), None)
        if newest is None:
            return self._begin(wanted, is_taken_over=True)
        claim = None
        if wanted.resume:
            claim = self._claim(wanted)
            ids_from = kept.checkpoint_ids.get_and_increment()
            claim.start(
                newest.checkpoint_id, newest.metadata_path, counted_anyway=_counts_anyway(wanted), ids_from=ids_from
            )
        return JobKept(kept, None, claim, is_taken_over=True)

    def _runs(self, wanted: SubmitJob) -> JobRuns:
        storage = self._savepoints.open_storage(wanted.graph.checkpoints.directory)
        return JobRuns(storage, wanted.graph.name, self._claimant)

    def _claim(self, wanted: SubmitJob) -> RunClaim:
        return self._runs(wanted).claim(wanted.graph.job_id)

    def _begin(self, wanted: SubmitJob, *, is_taken_over: bool = False) -> JobKept:
        if not wanted.resume:
            found = None if wanted.restore_from is None else find_origin(wanted, self._savepoints)
            return replace(self._kept(wanted, found), is_taken_over=is_taken_over)
        claim = self._claim(wanted)
        try:
            resumption = Resumption(wanted, self._savepoints, claim)
            origin = resumption.origin()
            earlier_inlets = resumption.inlets_since(origin)
            kept = replace(self._kept(wanted, origin), is_taken_over=is_taken_over)
            ids_from = kept.job.checkpoint_ids.get_and_increment() if is_taken_over else CheckpointId(0)
            if origin is None:
                claim.start(ids_from=ids_from)
            else:
                claim.start(
                    origin.checkpoint.checkpoint_id,
                    path_to_keep(origin),
                    counted_anyway=_counts_anyway(wanted),
                    ids_from=ids_from,
                )
        except BaseException:
            with suppress(OSError):
                claim.end(RunOutcome.NOT_STARTED)
            raise
        return replace(kept, claim=claim, earlier_inlets=earlier_inlets)

    def _kept(self, wanted: SubmitJob, origin: FoundOrigin | None) -> JobKept:
        first_id = FIRST_CHECKPOINT_ID if origin is None else origin.next_checkpoint_id
        return JobKept(self._high_availability.add_job(wanted, first_id), origin)


def _counts_anyway(wanted: SubmitJob) -> str:
    return wanted.restore_from or "" if wanted.restore_anyway else ""
