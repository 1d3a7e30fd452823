"""JobSubmissions: jobs that are to be started, until what they start from has been read, and they are kept.

A part of the JobManager. Reading, checking and keeping block, so they happen off its thread, before anything is made
of the job: whatever is wrong is the answer to the client, and touches nothing that runs.

Flink: SavepointRestoreSettings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pykka

from ...messages import CheckpointId, JobId, JobSubmitted, SubmitJob
from ...state import CheckpointStorage, OutsideRoot, StateError
from ...state.checkpoints.checkpoint_ids import FIRST_CHECKPOINT_ID
from ...state.checkpoints.checkpoint_metadata import decode_metadata
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ...state.checkpoints.high_availability import HighAvailability, KeptJob
from ...state.checkpoints.savepoint_stores import candidates
from ...state.checkpoints.savepoints import Savepoints, metadata_path
from ...state.checkpoints.snapshot_file import state_handles
from ..context import ActorContext
from ..errors import CannotRestore
from .restore_check import RestoreReport, check_restore
from .restore_points import Origin


@dataclass(frozen=True, slots=True)
class FoundOrigin:
    """The checkpoint a job is to be started from. It is whole, as far as its files tell, and fits the program."""

    storage: CheckpointStorage
    checkpoint: CompletedCheckpoint
    savepoint_path: str
    """Empty for a checkpoint that was named itself."""
    report: RestoreReport

    @property
    def origin(self) -> Origin:
        return Origin(self.checkpoint, self.storage.location(), bool(self.savepoint_path))

    @property
    def next_checkpoint_id(self) -> CheckpointId:
        return CheckpointId(self.checkpoint.checkpoint_id + 1)

    def submitted(self, job_id: JobId) -> JobSubmitted:
        left_behind = tuple(map(str, self.report.left_behind))
        return JobSubmitted(
            job_id, self.checkpoint.checkpoint_id, self.report.matched, left_behind, self.origin.predecessors
        )


@dataclass(frozen=True, slots=True)
class JobKept:
    """Of one submission: a job is kept, and may be started, from `origin` if there is one."""

    job: KeptJob
    origin: FoundOrigin | None


@dataclass(frozen=True, slots=True)
class SubmissionRead:
    """To the JobManager, once per submission that blocks: what came of it, or why nothing."""

    wanted: SubmitJob
    result: JobKept | BaseException


Start: TypeAlias = Callable[[SubmitJob, JobKept], JobSubmitted]
"""Makes the job; raises when that cannot be."""


class JobSubmissions:
    """One JobManager's."""

    def __init__(self, context: ActorContext, savepoints: Savepoints, high_availability: HighAvailability) -> None:
        self._context = context
        self._savepoints = savepoints
        self._high_availability = high_availability
        self._promises: dict[JobId, pykka.Future[Any]] = {}

    def submit(self, wanted: SubmitJob, start: Start) -> JobSubmitted | pykka.Future[Any]:
        """Start the job at once where nothing blocks, and raise what is wrong; else the promise of the answer, and
        SubmissionRead follows. The same job twice is the same promise.
        """
        job_id = wanted.graph.job_id
        if wanted.restore_from is None and not self._high_availability.may_block:
            return start(wanted, JobKept(self._high_availability.add_job(wanted), None))
        if job_id not in self._promises:
            self._promises[job_id] = self._context.promise()
            self._context.pipe_to_self(
                self._context.run_blocking(_keep, wanted, self._savepoints, self._high_availability),
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
            promise.set(_started(read.wanted, read.result, start))
        except Exception as error:  # noqa: BLE001 - supervision boundary: whoever asked gets it
            promise.set_exception((type(error), error, error.__traceback__))
            return False
        return True


def _started(wanted: SubmitJob, kept: JobKept, start: Start) -> JobSubmitted:
    try:
        return start(wanted, kept)
    except StateError as error:
        if kept.origin is None:
            raise
        raise _cannot(wanted, error) from error  # it was disposed of meanwhile


def _keep(wanted: SubmitJob, savepoints: Savepoints, high_availability: HighAvailability) -> JobKept:
    """Find what the job starts from, and have it kept. Raises CannotRestore, or as HighAvailability.add_job. Blocks."""
    origin = None if wanted.restore_from is None else find_origin(wanted, savepoints)
    first_id = FIRST_CHECKPOINT_ID if origin is None else origin.next_checkpoint_id
    return JobKept(high_availability.add_job(wanted, first_id), origin)


def find_origin(wanted: SubmitJob, savepoints: Savepoints) -> FoundOrigin:
    """Read what the job is to be started from, and see whether it fits. Raises CannotRestore. Blocks."""
    assert wanted.restore_from is not None, "nothing to restore from"
    try:
        storage, checkpoint, path = _read(wanted.restore_from, wanted, savepoints)
        for state in checkpoint.states():
            for handle in state_handles(state):
                storage.check_there(handle)
    except (StateError, OSError) as error:
        raise _cannot(wanted, error) from error
    report = check_restore(checkpoint, wanted.graph, allow_non_restored_state=wanted.allow_non_restored_state)
    return FoundOrigin(storage, checkpoint, path, report)


def _read(path: str, wanted: SubmitJob, savepoints: Savepoints) -> tuple[CheckpointStorage, CompletedCheckpoint, str]:
    """The path of a checkpoint's folder or metadata is one below the job's checkpoint directory; else a savepoint's."""
    storage = savepoints.open_storage(wanted.graph.checkpoints.directory)
    if (metadata := metadata_path(path)) is None:
        savepoint = savepoints.load(path, wanted.working_directory, storage)
        return savepoint.storage, savepoint.checkpoint, savepoint.path
    *earlier, last = candidates(metadata, wanted.working_directory)
    relative = next(filter(None, (_there(storage, each) for each in earlier)), None) or storage.resolve(last)
    return storage, decode_metadata(storage.read_sealed(relative), relative), ""


def _there(storage: CheckpointStorage, path: str) -> str:
    """The path relative to the root; empty if it is not below it, or no file is there."""
    try:
        relative = storage.resolve(path)
    except OutsideRoot:
        return ""
    return relative if storage.exists(relative) else ""


def _cannot(wanted: SubmitJob, error: BaseException) -> CannotRestore:
    told = f"{wanted.restore_from}: "
    what = str(error).removeprefix(told)  # most errors begin with the path themselves
    return CannotRestore(f"job {wanted.graph.name!r} cannot be started from {told}{what}")
