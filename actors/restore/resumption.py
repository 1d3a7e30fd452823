"""Resumption: what the next run of a named job goes on from: the newest checkpoint of its runs that is whole.

Savepoints count too: what a job was stopped with is its newest cut. A checkpoint that is not complete, without its
metadata, is none. One that is spoilt is passed over for the next older one, with a warning; if all are, the job is not
started: it never starts from the beginning without a word. All of it blocks.

A run that has started and has no checkpoint of its own says which one it was started from: newer ones of earlier runs
were never committed, and it may have removed what sinks had prepared for them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...messages import CheckpointId, JobId, JobSubmitted, SubmitJob
from ...state import CheckpointStorage, CorruptState, MissingState, job_directory
from ...state.checkpoint_folders import checkpoint_directory, inlets_directory, is_checkpoint_folder
from ...state.checkpoints.job_runs import FOLDER, JobRun, RunClaim
from ...state.checkpoints.savepoints import METADATA, Savepoints
from ...state.file_locations import is_url
from ..errors import CannotRestore, NoReadableCheckpoint, StateDoesNotFit
from .found_origin import FoundOrigin, find_origin

log = logging.getLogger("understudy.job")

SHOWN = 3
"""Of the folders that stay behind."""


class Resumption:
    """One search, for a run that owns its name."""

    def __init__(self, wanted: SubmitJob, savepoints: Savepoints, claim: RunClaim) -> None:
        self._wanted = wanted
        self._savepoints = savepoints
        self._runs = [run for run in claim.earlier if run.has_started]
        self._storage = claim.runs.storage
        self._job = f"job {claim.name!r}"
        self._tried: set[str] = set()
        self._problems: list[str] = []

    def origin(self) -> FoundOrigin | None:
        """None for a fresh start. Raises NoReadableCheckpoint; StateDoesNotFit for the newest that can be read; and
        CannotRestore when storage does not answer, or what counts anyway cannot be used.
        """
        if self._goes_back:
            back = find_origin(self._wanted, self._savepoints)
            self._warn_of_inlets(back)
            return back
        for path in self._paths():
            if path not in self._tried and (found := self._at(path)) is not None:
                self._warn_of_unused(found)
                return found
        if self._problems:
            raise NoReadableCheckpoint(
                f"{self._job} has checkpoints, and none can be read: {'; '.join(self._problems)}. It would start from "
                "the beginning, so it is not started. Put the files back; or start it without `resume`, or "
                f"under another name, from a savepoint or the beginning; the runs "
                f"so far are listed in {self._storage.location(FOLDER)}"
            )
        return None if self._wanted.restore_from is None else find_origin(self._wanted, self._savepoints)

    def inlets_since(self, found: FoundOrigin | None) -> tuple[str, ...]:
        """The folders of logs of inlets that runs after this checkpoint have written, oldest first. The records in them
        were acknowledged, and may be in no checkpoint. Whoever goes back leaves them: they came after what it goes back
        to, and others may have counted them.
        """
        return () if self._goes_back else self._inlets_since(found)

    def _inlets_since(self, found: FoundOrigin | None, *, its_own: bool = False) -> tuple[str, ...]:
        """`its_own`: with those of the run that has stored this checkpoint."""
        folders: list[str] = []
        for place, run in enumerate(self._runs):
            is_its = found is not None and run.job_id == found.checkpoint.job_id
            if is_its and not its_own:
                break
            stored = self._storage.list_files(inlets_directory(run.job_id))
            folders = [*sorted({path.rpartition("/")[0] for path in stored}), *folders]
            if is_its or self._went_back(place):
                break
        return tuple(folders)

    def _paths(self) -> Iterator[str]:
        """Of metadata, or of a savepoint; what is to be tried first comes first."""
        newest_useful: int | None = None
        for run in self._runs:
            ids = sorted(self._stored(run.job_id), reverse=True)
            useful = [
                each
                for each in ids
                if (newest_useful is None or each <= newest_useful) and not self._was_given_up(run.job_id, each)
            ]
            if self._is_gone(run, ids, newest_useful):
                self._is_unusable(checkpoint_directory(run.job_id, run.newest_id), "it was complete, and is gone")
            yield from (f"{checkpoint_directory(run.job_id, CheckpointId(each))}/{METADATA}" for each in useful)
            if run.origin_path:
                yield run.origin_path
                newest_useful = int(run.origin_id)

    def _is_gone(self, run: JobRun, stored: Sequence[int], newest_useful: int | None) -> bool:
        """Whether the newest that this run has completed is not stored any more, as `stored` has its older ones only:
        while it runs, one goes when a newer one is there.
        """
        if run.newest_id <= max(stored, default=0):
            return False
        is_useful = newest_useful is None or run.newest_id <= newest_useful
        return not stored or (is_useful and not self._was_given_up(run.job_id, run.newest_id))

    def _was_given_up(self, job_id: JobId, checkpoint_id: int) -> bool:
        """Whether a leader of this job has stored it, whose successor went on from an earlier one."""
        of_job = (run for run in self._runs if run.job_id == job_id)
        return any(run.origin_id < checkpoint_id < run.ids_from for run in of_job)

    def _stored(self, job_id: JobId) -> Iterator[int]:
        """The ids of a job's complete checkpoints."""
        unfinished: set[str] = set()
        complete: set[str] = set()
        for path in self._storage.list_files(job_directory(job_id)):
            folder, _, name = path.rpartition("/")
            if is_checkpoint_folder(folder.rpartition("/")[2]):
                (complete if name == METADATA else unfinished).add(folder)
        for folder in sorted(unfinished - complete):
            log.info("%s: %s is not complete, and passed over", self._job, self._storage.location(folder))
        yield from (int(folder.rpartition("-")[2]) for folder in complete)

    def _at(self, path: str) -> FoundOrigin | None:
        self._tried.add(path)
        named = replace(self._wanted, restore_from=path, working_directory="")
        try:
            return find_origin(named, self._savepoints)
        except StateDoesNotFit:
            raise
        except CannotRestore as error:
            if not isinstance(error.__cause__, CorruptState | MissingState):
                raise  # storage does not answer: it may be whole
            self._is_unusable(path, str(error.__cause__))
            return None

    @property
    def _goes_back(self) -> bool:
        """To a savepoint, whatever there is. Not if the run before did: who starts a service again writes the same."""
        has_counted = bool(self._runs) and self._runs[0].counted_anyway == self._wanted.restore_from
        return self._wanted.restore_anyway and not has_counted

    def _went_back(self, place: int) -> bool:
        """Whether the run at this place of `_runs` did."""
        to = self._runs[place].counted_anyway
        return to != "" and to != (self._runs[place + 1].counted_anyway if place + 1 < len(self._runs) else "")

    def _warn_of_inlets(self, found: FoundOrigin) -> None:
        if left := self._inlets_since(found, its_own=True):
            more = f" and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
            log.warning(
                "%s: what its inlets took after %s is not processed again: it stays in %s%s",
                self._job,
                self._wanted.restore_from,
                ", ".join(map(self._storage.location, left[:SHOWN])),
                more,
            )

    def _warn_of_unused(self, found: FoundOrigin) -> None:
        """Of a savepoint that was named, and from which the job does not start."""
        if self._wanted.restore_from is None:
            return
        try:
            named = find_origin(self._wanted, self._savepoints)
        except CannotRestore:
            return  # it is gone, as one that has counted may be
        if _cut(named) == _cut(found):
            return
        goes_on = found.savepoint_path or self._storage.location(found.checkpoint.metadata_path)
        if self._wanted.restore_anyway:
            log.warning(
                '%s: %s has counted already: the run before was started with it and resume="savepoint", too. The job '
                'goes on from %s. Write resume="latest" from now on; to go back once more, start the job with that '
                "first, and stop it",
                self._job,
                self._wanted.restore_from,
                goes_on,
            )
        elif path_to_keep(named) not in [run.origin_path for run in self._runs]:
            log.warning(
                "%s: %s is not used: there are checkpoints of this name, and the job goes on from %s. To go on from "
                'that one, stop the job, and start it once with resume="savepoint" in place of "latest"',
                self._job,
                self._wanted.restore_from,
                goes_on,
            )

    def _is_unusable(self, path: str, why: str) -> None:
        self._problems.append(f"{path}: {why.removeprefix(f'{path}: ')}")
        log.warning(
            "%s: checkpoint %s cannot be used: %s. Trying the next older one; results that were committed since then "
            "are processed, and may be committed, again",
            self._job,
            path if is_url(path) else self._storage.location(path),
            why,
        )


def say_what_is_resumed(name: str, submitted: JobSubmitted, storage: CheckpointStorage, wall_ms: int) -> None:
    """On the logger `understudy.job`."""
    found = submitted.restored_from
    if found is None:
        log.info(
            "job %r (%s) starts from the beginning: no checkpoint of it is in %s",
            name,
            submitted.job_id,
            storage.location(),
        )
        return
    log.info(
        "job %r (%s) goes on from checkpoint %d of %s, taken %.1f s ago: %s",
        name,
        submitted.job_id,
        found.checkpoint_id,
        found.job_id,
        max(0, wall_ms - found.timestamp_ms) / 1000,
        found.path,
    )


def _cut(found: FoundOrigin) -> tuple[JobId, CheckpointId]:
    """A savepoint and the checkpoint that it points to are the same one."""
    return found.checkpoint.job_id, found.checkpoint.checkpoint_id


def path_to_keep(found: FoundOrigin) -> str:
    """How a run's file names what it was started from: a checkpoint within its own directory, that may be moved."""
    return found.savepoint_path or found.checkpoint.metadata_path
