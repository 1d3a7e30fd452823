"""JobSubmissions: jobs that are to be started from a savepoint or a retained checkpoint, until it has been read.

A part of the JobManager. Reading and checking block, so they happen off its thread, before anything is made of the
job: whatever is wrong is the answer to the client, and touches nothing that runs. Flink: SavepointRestoreSettings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pykka

from ...messages import CheckpointId, JobId, JobSubmitted, SubmitJob
from ...state import CheckpointStorage, OutsideRoot, StateError
from ...state.checkpoints.checkpoint_metadata import decode_metadata
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
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
        return Origin(self.checkpoint, self.storage.location())

    @property
    def next_checkpoint_id(self) -> CheckpointId:
        return CheckpointId(self.checkpoint.checkpoint_id + 1)

    def submitted(self, job_id: JobId) -> JobSubmitted:
        left_behind = tuple(map(str, self.report.left_behind))
        return JobSubmitted(
            job_id, self.checkpoint.checkpoint_id, self.report.matched, left_behind, self.origin.predecessors
        )


@dataclass(frozen=True, slots=True)
class OriginRead:
    """To the JobManager, once per `read`: `origin`, or else `error`."""

    wanted: SubmitJob
    origin: FoundOrigin | None
    error: BaseException | None = None


class JobSubmissions:
    """One JobManager's."""

    def __init__(self, context: ActorContext, savepoints: Savepoints) -> None:
        self._context = context
        self._savepoints = savepoints
        self._promises: dict[JobId, pykka.Future[Any]] = {}

    def read(self, wanted: SubmitJob) -> pykka.Future[Any]:
        """The promise of the answer; OriginRead follows. The same job twice is the same promise."""
        job_id = wanted.graph.job_id
        if job_id not in self._promises:
            self._promises[job_id] = self._context.promise()
            self._context.pipe_to_self(
                self._context.run_blocking(find_origin, wanted, self._savepoints),
                lambda origin: OriginRead(wanted, origin),
                lambda error: OriginRead(wanted, None, error),
            )
        return self._promises[job_id]

    def settle(self, read: OriginRead, start: Callable[[SubmitJob, FoundOrigin], JobSubmitted]) -> bool:
        """Start the job, or tell the client what is wrong; returns whether it was started."""
        promise = self._promises.pop(read.wanted.graph.job_id)
        try:
            if read.error is not None:
                raise read.error
            assert read.origin is not None, "neither an origin nor an error"
            submitted = start(read.wanted, read.origin)
        except StateError as error:  # it was disposed of meanwhile
            refusal: BaseException = _cannot(read.wanted, error)
        except Exception as error:  # noqa: BLE001 - supervision boundary: the client gets the error
            refusal = error
        else:
            promise.set(submitted)
            return True
        promise.set_exception((type(refusal), refusal, refusal.__traceback__))
        return False


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
