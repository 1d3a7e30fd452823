"""JobRuns: who runs the job of a name, and who has before, as small files in the checkpoint directory.

    <root>/names/<name>/<number>     one per run, whole or absent; the highest number owns the name

A run claims the name by making the next number's file, which of several that try one can. As long as it lives it renews
its file, and at its end it writes how it has ended. A name may be claimed when its newest run has ended, or its process
is known to be dead, or nobody has heard of it for as long as it said. An owner that was not dead after all sees that
there is a higher number: it asks (`confirm`) before each checkpoint completes, after the metadata is stored. So what it
completes was there when the next run looked for what to go on from.

All of it blocks. Which checkpoint a run goes on from is decided in `actors/restore`; when it renews in
`actors/job_manager`. Flink: LeaderElection's locks and JobResultStore are near; a lease of a job's name it has not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from urllib.parse import quote

from ...messages import CheckpointId, JobId, MalformedMessage, decode, encode, message
from ..errors import AlreadyFinished, AlreadyRunning, CorruptState, LostOwnership
from ..storage import CheckpointStorage

FOLDER = "names"
VERSION = 1
_NONE_YET = CheckpointId(0)
_LONGEST, _HEAD = 255, 200
"""Of a folder's name: what file systems take; and what is left of the name of a job that is longer."""
LEASE_MS = 30_000
"""How long after its last word a run is taken for alive, when its process cannot be looked at."""


_CLOCKS_AGREE_S = 5
"""So far those of machines may differ: docs/savepoints.md."""


class RunOutcome(Enum):
    """How a run has ended. The next one acts on it as said in `JobRuns.claim` and `actors/restore/resumption.py`."""

    NONE = "none"
    """It runs, or its process has died."""
    FINISHED = "finished"
    """All its data is processed: there is nothing to go on with."""
    STOPPED = "stopped"
    """With a savepoint, which is its newest cut."""
    CANCELED = "canceled"
    FAILED = "failed"
    NOT_STARTED = "not started"
    """It could not be started from what it found."""


@message
class RunOwner:
    """A process: whose run it is."""

    host: str
    pid: int
    program: str
    """To show to users: the script's name."""
    machine: str
    """Names the machine since its start, and what process ids mean there; another process with the same text could see
    this one.
    """
    started: str
    """When the process was started, in whatever units: with it, its id is not used again."""


@message
class JobRun:
    """What a run's file says."""

    format_version: int
    job_id: JobId
    owner: RunOwner
    since_ms: int
    """Wall time."""
    renewed_ms: int
    """Wall time of its last word."""
    lease_ms: int
    has_started: bool = False
    origin_id: CheckpointId = CheckpointId(0)
    """The checkpoint that it went on from; 0 for none. No later one of earlier runs was committed."""
    origin_path: str = ""
    """Of that checkpoint's metadata, with its root; or of the savepoint."""
    newest_id: CheckpointId = CheckpointId(0)
    """The newest checkpoint of its own that it is known to have completed; 0 for none."""
    outcome: RunOutcome = RunOutcome.NONE
    counted_anyway: str = ""
    """The savepoint that it was to go back to, as whoever submitted it wrote it; empty for none."""
    ids_from: CheckpointId = CheckpointId(0)
    """No checkpoint of its own has a lower id. Those between `origin_id` and this one are of an earlier leader of the
    same job: they were stored, and never committed.
    """


@dataclass(slots=True)
class Claimant:
    """The process that claims names, and how it sees others. One per cluster."""

    owner: RunOwner
    is_gone: Callable[[RunOwner], bool]
    """Whether that process is known to be dead; False when nobody can tell."""
    wall_ms: Callable[[], int]
    lease_ms: int = LEASE_MS
    claims: list[RunClaim] = field(default_factory=list)
    """Those that were made, and not given up yet."""

    def close(self) -> None:
        """Give up what is left, once nothing of it runs any more: the JobManager was stopped before it came to that."""
        for claim in self.claims.copy():
            try:
                claim.end(RunOutcome.CANCELED if claim.ending is None else claim.ending)
            except (OSError, LostOwnership):
                self.claims.remove(claim)  # it ends by itself when it is not renewed


class JobRuns:
    """The runs of one name in one checkpoint directory."""

    def __init__(self, storage: CheckpointStorage, name: str, claimant: Claimant) -> None:
        self.name = name
        self.storage = storage
        self._claimant = claimant
        self._folder = f"{FOLDER}/{_folder_of(name)}"

    @property
    def place(self) -> str:
        """Where their files are."""
        return self.storage.location(self._folder)

    def claim(self, job_id: JobId) -> RunClaim:
        """Take the name for a new run, with all earlier ones. Raises AlreadyRunning, AlreadyFinished; CorruptState when
        the newest run cannot be read, and so nobody knows about it; OSError.
        """
        for own in self._claimant.claims.copy():
            if own.ending is not None and own.runs.place == self.place:
                own.end(own.ending)  # its JobManager is about to
        earlier = list(self._read())
        if earlier and not (earlier[0][1].job_id == job_id and earlier[0][1].outcome is RunOutcome.NONE):
            self._check_over(*earlier[0])  # the same job's leader has another successor: this one
        number = earlier[0][0] + 1 if earlier else 1
        now_ms, claimant = self._claimant.wall_ms(), self._claimant
        run = JobRun(VERSION, job_id, claimant.owner, now_ms, now_ms, claimant.lease_ms)
        try:
            self.storage.create_sealed(self._path(number), encode(run))
        except FileExistsError:
            self._check_over(number, self._run(number))
            raise AlreadyRunning(f"job {self.name!r}: another process is just starting it", "", 0) from None
        claim = RunClaim(self, number, run, tuple(run for _, run in earlier), claimant)
        claimant.claims.append(claim)
        return claim

    def check_unfinished(self, job_id: JobId) -> None:
        """Raises AlreadyFinished if the newest run was this job, and has finished; CorruptState, OSError.

        Other ends say less: a JobManager that is stopped gives up the names of jobs that its successor goes on with.
        """
        newest = next(self._read(), None)
        if newest is not None and newest[1].job_id == job_id and newest[1].outcome is RunOutcome.FINISHED:
            self._check_over(*newest)

    def write(self, number: int, run: JobRun) -> None:
        self.storage.write_sealed(self._path(number), encode(run))

    def confirm(self, number: int) -> None:
        """That this run owns the name still. Raises LostOwnership; UnreachableRoot where nobody can say."""
        newest = max(self._numbers(), default=0)
        if newest == number:
            return
        where = self.place
        if newest < number:
            self.storage.mark.confirm()
            raise LostOwnership(
                f"job {self.name!r}: the file by which this run owned its name is gone from {where}, so another "
                "process may run the job: this run ends, and commits nothing more. Leave that folder alone while a job "
                "runs"
            )
        other = self._run(newest)
        raise LostOwnership(
            f"job {self.name!r} was taken over by {_who(other.owner)} at {_at(other.since_ms)}, as {other.job_id}: "
            "by the clock there, this process had not renewed its claim for longer than "
            f"{other.lease_ms / 1000:.0f} s. This run ends, and commits nothing more"
        )

    def forget(self, number: int) -> None:
        """A run of which nothing is left."""
        self.storage.delete(self._path(number))

    # -- inside

    def _check_over(self, number: int, run: JobRun) -> None:
        """Raises AlreadyRunning, AlreadyFinished."""
        if run.outcome is RunOutcome.FINISHED:
            raise AlreadyFinished(
                f"job {self.name!r} has finished ({run.job_id}, started at {_at(run.since_ms)}): there is nothing to "
                "resume. To process its data again, give the job another name, or submit it without `resume`; to "
                f"forget that it has finished, remove {self.place}. A job that is to go on later is ended with "
                "stop_with_savepoint(), which keeps its state for `resume`"
            )
        now_ms = self._claimant.wall_ms()
        is_silent = now_ms - run.renewed_ms > run.lease_ms
        if run.outcome is RunOutcome.NONE and not is_silent and not self._claimant.is_gone(run.owner):
            raise AlreadyRunning(
                f"job {self.name!r} runs already, as {run.job_id}: {_who(run.owner)} owns this name since "
                f"{_at(run.since_ms)}, and {_renewed(run, now_ms)}. A job that is to run beside it needs another name",
                run.owner.host,
                run.owner.pid,
            )

    def _read(self) -> Iterator[tuple[int, JobRun]]:
        """Newest first."""
        for number in sorted(self._numbers(), reverse=True):
            yield number, self._run(number)

    def _numbers(self) -> Iterator[int]:
        for path in self.storage.list_files(self._folder):
            if (name := path.rpartition("/")[2]).isdecimal():
                yield int(name)

    def _run(self, number: int) -> JobRun:
        path = self._path(number)
        try:
            found = decode(self.storage.read_sealed(path))
        except MalformedMessage as error:
            raise self._spoilt(path, str(error)) from error
        except CorruptState as error:
            raise self._spoilt(path, error.found) from error
        if not isinstance(found, JobRun) or found.format_version != VERSION:
            raise self._spoilt(path, f"{found!r:.80}")
        return found

    def _spoilt(self, path: str, found: str) -> CorruptState:
        return CorruptState(
            path,
            f"a run of job {self.name!r}, in format {VERSION}",
            f"{found}. Nobody knows who runs the job, nor what it goes on from. Put the file back as it was; or, if no "
            f"process runs the job, remove {self.place}, and start it once with from_savepoint=, its newest checkpoint "
            "or savepoint, beside `resume`: without that it would begin from the beginning",
        )

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:08d}"


class RunClaim:
    """One run's claim to its name. `renew`, `start` and `end` write: one of them at a time."""

    def __init__(
        self, runs: JobRuns, number: int, run: JobRun, earlier: tuple[JobRun, ...], claimant: Claimant
    ) -> None:
        self.runs = runs
        self.earlier = earlier
        """The runs before it, the newest first."""
        self.run = run
        self.newest_id = CheckpointId(0)
        """For the next renewal."""
        self.ending: RunOutcome | None = None
        """How it has ended, though that may not be written yet."""
        self._number = number
        self._claimant = claimant

    @property
    def name(self) -> str:
        return self.runs.name

    def confirm(self) -> None:
        """Raises LostOwnership when another run has begun."""
        self.runs.confirm(self._number)

    def start(
        self,
        origin_id: CheckpointId = _NONE_YET,
        origin_path: str = "",
        *,
        counted_anyway: str = "",
        ids_from: CheckpointId = _NONE_YET,
    ) -> None:
        """Its tasks are about to be started, from this checkpoint if there is one."""
        self._write(
            replace(
                self.run,
                has_started=True,
                origin_id=origin_id,
                origin_path=origin_path,
                counted_anyway=counted_anyway,
                ids_from=ids_from,
            )
        )

    def renew(self) -> None:
        """Raises LostOwnership."""
        self._write(self.run)

    def end(self, outcome: RunOutcome) -> None:
        """The name is free. Again, it does nothing. Raises LostOwnership."""
        self.ending = outcome
        try:
            self._write(replace(self.run, outcome=outcome))
        except LostOwnership:
            if self.run.outcome is RunOutcome.NONE:
                raise
        finally:
            if self.run.outcome is not RunOutcome.NONE and self in self._claimant.claims:
                self._claimant.claims.remove(self)

    def _write(self, run: JobRun) -> None:
        self.confirm()
        run = replace(run, renewed_ms=self._claimant.wall_ms(), newest_id=max(run.newest_id, self.newest_id))
        self.runs.write(self._number, run)
        self.run = run


def _folder_of(name: str) -> str:
    """One for each name, of at most 255 characters. A quoted name has no `%` in front of a dash."""
    quoted = quote(name, safe="", errors="surrogatepass").replace(".", "%2E") or "%"
    if len(quoted) <= _LONGEST:
        return quoted
    return f"{quoted[:_HEAD]}%-{hashlib.blake2b(name.encode(errors='surrogatepass'), digest_size=16).hexdigest()}"


def _who(owner: RunOwner) -> str:
    return f"process {owner.pid} ({owner.program}) on {owner.host}"


def _renewed(run: JobRun, now_ms: int) -> str:
    """When, as far as the clock here says it, and when the claim ends."""
    ago_s, lease_s = (now_ms - run.renewed_ms) / 1000, run.lease_ms / 1000
    if ago_s >= -_CLOCKS_AGREE_S:
        return (
            f"renewed its claim {max(0, ago_s):.1f} s ago. Stop it first. If its process is dead, wait: the claim ends "
            f"{lease_s:.0f} s after it was last renewed"
        )
    return (
        f"renewed its claim at {_at(run.renewed_ms)} by its own clock, {-ago_s:.0f} s ahead of the clock here. Stop it "
        f"first. If its process is dead, and the clock here is wrong, correct it; else wait: the claim ends in "
        f"{lease_s - ago_s:.0f} s"
    )


def _at(wall_ms: int) -> str:
    return f"{datetime.fromtimestamp(wall_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
