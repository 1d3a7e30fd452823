"""FoundOrigin: the checkpoint or savepoint that a job is to be started from, read and held against the program.

Which one it is, is said by a user's path, or found by `resumption.py`. Flink: SavepointRestoreSettings.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...messages import CheckpointId, JobId, JobSubmitted, RestoredFrom, SubmitJob
from ...messages.shown_url import path_shown
from ...state import CheckpointStorage, OutsideRoot, StateError, state_handles
from ...state.checkpoint_folders import is_checkpoint_folder
from ...state.checkpoints.checkpoint_metadata import read_checkpoint
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ...state.checkpoints.savepoint_stores import candidates
from ...state.checkpoints.savepoints import METADATA, Savepoints, metadata_path
from ...state.errors import CorruptState, MissingState, WrongSavepointStore
from ..errors import CannotRestore
from .in_its_place import NOT_WHOLE, in_its_place
from .restore_check import RestoreReport, check_restore
from .restore_points import Origin

NAMED_AT_MOST = 8


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
        """The answer to whoever submits a job that starts here."""
        checkpoint = self.checkpoint
        path = self.savepoint_path or self.storage.location(checkpoint.metadata_path)
        return JobSubmitted(
            job_id,
            checkpoint.checkpoint_id,
            self.report.matched,
            tuple(map(str, self.report.left_behind)),
            self.origin.predecessors,
            RestoredFrom(checkpoint.job_id, checkpoint.checkpoint_id, path, checkpoint.timestamp_ms),
            self.report.states,
            restore_notes=self.report.notes,
        )


def find_origin(wanted: SubmitJob, savepoints: Savepoints, *, every_byte: bool = False) -> FoundOrigin:
    """Read what the job is to be started from, and see whether it fits. Raises CannotRestore, with `every_byte` also
    for a file whose bytes have changed. Blocks, and then for as long as it takes to read all state.
    """
    assert wanted.restore_from is not None, "nothing to restore from"
    try:
        storage, checkpoint, path = _read(wanted.restore_from, wanted, savepoints)
    except (MissingState, OutsideRoot, WrongSavepointStore) as error:
        raise cannot_restore(wanted, error, _what_is_there(wanted, savepoints)) from error
    except CorruptState as error:
        raise cannot_restore(wanted, error, _in_its_place(wanted, savepoints)) from error
    except (StateError, OSError) as error:
        raise cannot_restore(wanted, error) from error
    try:
        for state in checkpoint.states():
            for handle in state_handles(state):
                storage.verify(handle) if every_byte else storage.check_there(handle)
    except (MissingState, CorruptState) as error:
        raise cannot_restore(wanted, error, _in_its_place(wanted, savepoints)) from error
    except (StateError, OSError) as error:
        raise cannot_restore(wanted, error) from error
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
    return storage, read_checkpoint(storage, relative), ""


def _there(storage: CheckpointStorage, path: str) -> str:
    """The path relative to the root; empty if it is not below it, or no file is there."""
    try:
        relative = storage.resolve(path)
    except OutsideRoot:
        return ""
    return relative if storage.exists(relative) else ""


def _what_is_there(wanted: SubmitJob, savepoints: Savepoints) -> str:
    """The end of a text about a path at which there is none: the savepoints and checkpoints in this folder; of one that
    is there, and leads to what is not, what to do.
    """
    assert wanted.restore_from is not None
    storage = savepoints.open_storage(wanted.graph.checkpoints.directory)
    for candidate in candidates(wanted.restore_from, wanted.working_directory):
        found = [*savepoints.below(candidate, storage), *_checkpoints_below(storage, candidate)]
        if found == [candidate]:
            return _in_its_place(wanted, savepoints)
        if found:
            more = f", and {len(found) - NAMED_AT_MOST} more" if len(found) > NAMED_AT_MOST else ""
            return f"; name one of those in this folder: {', '.join(found[:NAMED_AT_MOST])}{more}"
    return _in_its_place(wanted, savepoints) if metadata_path(wanted.restore_from) else ""


def _in_its_place(wanted: SubmitJob, savepoints: Savepoints) -> str:
    """Where the newest is looked for, one after the other, none is named."""
    assert wanted.restore_from is not None
    if wanted.resume and not wanted.restore_anyway:
        return NOT_WHOLE
    return in_its_place(savepoints.open_storage(wanted.graph.checkpoints.directory), wanted.restore_from)


def _checkpoints_below(storage: CheckpointStorage, path: str) -> list[str]:
    """The folders of checkpoints in this one, the newest of each job first."""
    try:
        found = storage.list_files(storage.resolve(path))
    except (StateError, OSError):
        return []
    folders = [folder for each in found if (folder := each.removesuffix(f"/{METADATA}")) != each]
    folders = [each for each in folders if is_checkpoint_folder(each.rpartition("/")[2])]
    folders.sort(key=lambda each: (each.rpartition("/")[0], -int(each.rpartition("-")[2])))
    return [storage.location(each) for each in folders]


def cannot_restore(wanted: SubmitJob, error: BaseException, more: str = "") -> CannotRestore:
    told = f"{path_shown(wanted.restore_from or '')}: "
    what = str(error).removeprefix(told)  # most errors begin with the path themselves
    return CannotRestore(f"job {wanted.graph.name!r} cannot be started from {told}{what}{more}")
