"""JobLease: one job's claim to its name, kept as long as the job lives. A part of the JobManager.

It is renewed now and then, which tells others that the job is alive, and at the job's end it says how that was. One
write at a time, off the JobManager's thread; what comes of it is a `LeaseTold`. A job that has lost its name deletes
nothing any more: whoever has the name now may start from any of its files. And one that has ended deletes nothing
before its end is stored: without its checkpoints, and with no word of its end, it would be started from the beginning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...messages import CheckpointId, JobId, JobStatus
from ...state.checkpoints.job_runs import RunClaim, RunOutcome
from ..context import ActorContext
from .storage_answers import ForJob, LeaseTold

log = logging.getLogger("understudy.job")

RENEWALS = 6
"""How often a lease is renewed in the time in which it ends without."""

_OUTCOMES = {
    JobStatus.FINISHED: RunOutcome.FINISHED,
    JobStatus.CANCELED: RunOutcome.CANCELED,
    JobStatus.FAILED: RunOutcome.FAILED,
}


class Lease:
    """Of a job that owns no name: it asks nobody, and nothing has to wait for it."""

    is_lost = False
    """Whether somebody else has the name now."""
    is_sure = True
    """Whether nobody can have the name yet, going by the time alone."""

    def keeps_inlets(self, status: JobStatus) -> bool:
        """Whether a next run needs what was acknowledged, though that may be in no checkpoint yet."""
        return False

    def confirm(self) -> None:
        """From any thread: raises LostOwnership when somebody else has the name. Blocks."""

    def completed(self, checkpoint_id: CheckpointId) -> None:
        """The job has this checkpoint."""

    def stopped_with_savepoint(self) -> None:
        """The job finishes now, and is to be gone on with from there."""

    def beat(self) -> None:
        """Time goes on: write what is due."""

    def end(self, status: JobStatus) -> None:
        """The job has ended so. Written as soon as can be, and again until that succeeds."""

    def delete(self, work: Callable[[], None], *, has_ended: bool) -> None:
        """Have something of the job deleted: at once, or when its end is stored, or never if it has lost its name."""
        work()

    def lose(self) -> None:
        """Somebody else has the name."""

    def told(self, error: BaseException | None) -> None:
        """A write has succeeded, or failed in another way than that the name is lost."""


class JobLease(Lease):
    """Of a job that owns its name. `claim`: made for this run of it, just before."""

    def __init__(self, context: ActorContext, job_id: JobId, claim: RunClaim) -> None:
        self._context = context
        self._job_id = job_id
        self._claim = claim
        self._every_ms = claim.run.lease_ms / RENEWALS
        written_ms = max(0, context.clock.wall_ms() - claim.run.renewed_ms)
        self._renewed_ms = context.clock.now_ms() - written_ms
        self._sure_until_ms = self._renewed_ms + claim.run.lease_ms
        self._is_writing = False
        self._is_in_trouble = False
        self._is_over = False
        """Its end is stored."""
        self._was_stopped = False
        self._deletions: list[Callable[[], None]] = []

    @property
    def is_sure(self) -> bool:  # type: ignore[override]
        """By the time of day, too, by which others judge: the other clock stands still while a machine is suspended."""
        clock, run = self._context.clock, self._claim.run
        is_silent = clock.now_ms() >= self._sure_until_ms or clock.wall_ms() - run.renewed_ms >= run.lease_ms
        return not (self.is_lost or is_silent)

    def keeps_inlets(self, status: JobStatus) -> bool:
        return status is not JobStatus.FINISHED

    def confirm(self) -> None:
        self._claim.confirm()

    def completed(self, checkpoint_id: CheckpointId) -> None:
        """The next renewal says so. The first one is said at once: then the job never starts from zero again."""
        is_first = not self._claim.newest_id
        self._claim.newest_id = max(checkpoint_id, self._claim.newest_id)
        if is_first:
            self._renewed_ms -= self._every_ms
            self.beat()

    def stopped_with_savepoint(self) -> None:
        self._was_stopped = True

    def beat(self) -> None:
        if self._is_writing or self._is_over or self.is_lost:
            return
        if (ending := self._claim.ending) is not None:
            self._write(lambda: self._claim.end(ending))
        elif self._context.clock.now_ms() - self._renewed_ms >= self._every_ms:
            self._write(self._claim.renew)

    def end(self, status: JobStatus) -> None:
        outcome = RunOutcome.STOPPED if self._was_stopped else _OUTCOMES[status]
        self._claim.ending = outcome
        self.beat()

    def delete(self, work: Callable[[], None], *, has_ended: bool) -> None:
        if self.is_lost:
            return
        if has_ended and not self._is_over:
            self._deletions.append(work)
        else:
            work()

    def lose(self) -> None:
        self.is_lost = True
        self._deletions.clear()

    def told(self, error: BaseException | None) -> None:
        self._is_writing = False
        if error is not None:
            self._say(error)
            return
        self._is_in_trouble = False
        self._sure_until_ms = self._renewed_ms + self._claim.run.lease_ms
        if self._claim.run.outcome is RunOutcome.NONE:
            self.beat()  # it may have ended meanwhile
            return
        self._is_over = True
        deletions, self._deletions = self._deletions, []
        for work in deletions:
            work()

    def _write(self, work: Callable[[], None]) -> None:
        self._is_writing = True
        self._renewed_ms = self._context.clock.now_ms()
        self._context.pipe_to_self(
            self._context.run_blocking(work),
            lambda _: ForJob(self._job_id, LeaseTold(None)),
            lambda error: ForJob(self._job_id, LeaseTold(error)),
        )

    def _say(self, error: BaseException) -> None:
        """Once, until it succeeds again."""
        if not self._is_in_trouble:
            self._is_in_trouble = True
            log.warning(
                "job %r: the file that says that it runs, or how it ended, cannot be written to its checkpoint "
                "directory: %s. It tries again; if that takes longer than %.0f s, another process may resume the job",
                self._claim.name,
                error,
                self._claim.run.lease_ms / 1000,
            )
