"""Savepoints: a cluster's savepoints, from their paths down to the state. Flink: SavepointV1, Savepoints.

It joins the store of pointers with the storages that the pointers lead to. All of it may block, and may be called from
any thread. A pointer's content is trusted only as far as it agrees with the checkpoint that it leads to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...messages import JobId
from ..checkpoint_folders import checkpoint_directory, is_checkpoint_folder, job_directory
from ..errors import CorruptState, ForgedPointer, MissingState
from ..storage import CheckpointStorage
from .checkpoint_metadata import decode_metadata
from .completed_checkpoints import CompletedCheckpoint
from .savepoint_store import POINTER_VERSION, SavepointPointer, SavepointStore, checkpoints_of
from .savepoint_stores import FoundPointer, SavepointStores
from .shared_state import StateFile
from .snapshot_file import state_handles

log = logging.getLogger(__name__)

METADATA = "_metadata"


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint that has been read, but for its state. `storage` is the one that its handles' paths belong to."""

    path: str
    """As the store wrote it, however it was written by whoever asked for it."""
    pointer: SavepointPointer
    storage: CheckpointStorage
    checkpoint: CompletedCheckpoint

    def files(self) -> tuple[StateFile, ...]:
        """The metadata first, then the state; only what lies in its job's own folder is its."""
        root, own = self.storage.location(), f"{job_directory(self.pointer.job_id)}/"
        return tuple(
            file
            for file in checkpoint_files(root, self.checkpoint)
            if self.storage.resolve(file.path) == file.path and file.path.startswith(own)
        )


@dataclass(frozen=True, slots=True)
class RemovedSavepoint:
    """A savepoint whose pointer is gone, and the files that it led to."""

    path: str
    job_id: JobId
    files: tuple[StateFile, ...]


class Savepoints:
    """One per cluster. `store`: that of all jobs; None: each job's own, as SavepointStores says.

    `temporary`: a URL below which everything is lost with the cluster.
    """

    def __init__(
        self,
        store: SavepointStore | None,
        open_storage: Callable[[str], CheckpointStorage],
        temporary: str | None = None,
        **options: Any,
    ) -> None:
        self.open_storage = open_storage
        location = open_storage(temporary).location() if temporary else None
        self._configured = store
        self._stores = SavepointStores(store, location, **options)

    # -- jobs

    def job_begins(self, job_id: JobId, storage: CheckpointStorage) -> None:
        """Its savepoints may be asked for, and those below its checkpoint directory be used; does not block."""
        self._stores.add(job_id, storage)

    def job_is_over(self, job_id: JobId) -> None:
        """What is there of its savepoints can be used as before."""
        self._stores.remove(job_id)

    # -- taking

    def check_target(self, job_id: JobId, target_directory: str | None) -> None:
        """Before a savepoint of a job that runs here is taken. Raises as SavepointStore.target."""
        if (store := self._stores.of_job(job_id)) is not None:
            store.target(target_directory)

    def refusal(self, checkpoint_root: str) -> str | None:
        """Why no savepoint can be taken of a job with this checkpoint `location()`; does not block."""
        lasts = self._configured is not None and self._configured.outlives_cluster
        if not (lasts and self._stores.is_temporary(checkpoint_root)):
            return None
        return (
            "savepoints are kept in files (savepoints.state.backend), but the job's checkpoints, which they point to, "
            f"are in the cluster's temporary folder {checkpoint_root}, which goes when the cluster closes: set "
            "checkpoint_dir on the StreamEnvironment"
        )

    def store(self, completed: CompletedCheckpoint, storage: CheckpointStorage, target_directory: str | None) -> str:
        """Keep a pointer to a checkpoint whose metadata is stored; returns its path. Raises as SavepointStore.store."""
        pointer = SavepointPointer(
            POINTER_VERSION,
            completed.job_id,
            completed.checkpoint_id,
            storage.location(),
            completed.metadata_path,
            completed.timestamp_ms,
        )
        return self._stores.of(storage).store(pointer, target_directory)

    # -- using

    def load(self, path: str, working_directory: str = "", checkpoints: CheckpointStorage | None = None) -> Savepoint:
        """The savepoint at a path from outside. Raises as SavepointStores.find; MissingState or CorruptState when its
        metadata is not there, or not whole; ForgedPointer.
        """
        return self._follow(self._stores.find(path, working_directory, checkpoints))

    def below(self, path: str, checkpoints: CheckpointStorage | None = None) -> tuple[str, ...]:
        """The paths of savepoints in a folder, where a savepoint's path was wanted; looked for as by `load`."""
        return self._stores.below(path, checkpoints)

    def remove(self, path: str, working_directory: str = "") -> RemovedSavepoint:
        """Remove the pointer of a savepoint; what it leads to is left to the caller. Raises as `load`, but for metadata
        that is missing or broken: then nobody can say which files are its, and they stay.
        """
        found = self._stores.find(path, working_directory)
        self._storage_of(found)  # what cannot be opened here may be whole elsewhere: its pointer stays
        try:
            files = self._follow(found).files()
        except (MissingState, CorruptState) as error:
            log.warning("savepoint %s is disposed of, but its state cannot be found: %s", found.path, error)
            files = ()
        found.store.dispose(found.path)
        return RemovedSavepoint(found.path, found.pointer.job_id, files)

    def forget(self, path: str) -> None:
        """Remove the pointer, and nothing else. Raises as SavepointStore.dispose."""
        found = self._stores.find(path)
        found.store.dispose(found.path)

    def close(self) -> None:
        self._stores.close()

    def _follow(self, found: FoundPointer) -> Savepoint:
        storage, path, pointer = self._storage_of(found), found.path, found.pointer
        expected = f"{checkpoint_directory(pointer.job_id, pointer.checkpoint_id)}/{METADATA}"
        if pointer.metadata_path != expected or storage.resolve(expected) != expected:
            raise ForgedPointer(path, f"leads to {pointer.metadata_path}; wanted {expected}")
        completed = decode_metadata(storage.read_sealed(expected), expected)
        if (completed.job_id, completed.checkpoint_id) != (pointer.job_id, pointer.checkpoint_id):
            other = f"checkpoint {completed.checkpoint_id} of {completed.job_id}"
            raise ForgedPointer(path, f"leads to {other}; wanted {pointer.checkpoint_id} of {pointer.job_id}")
        return Savepoint(path, pointer, storage, completed)

    def _storage_of(self, found: FoundPointer) -> CheckpointStorage:
        if found.store.checkpoints is not None:
            return found.store.checkpoints
        return checkpoints_of(found.pointer, found.path, self.open_storage)


def metadata_path(path: str) -> str | None:
    """That of the checkpoint whose metadata or folder is at this path; None for a path of another kind."""
    trimmed = path.rstrip("/")
    name = trimmed.rpartition("/")[2]
    if name == METADATA:
        return path
    return f"{trimmed}/{METADATA}" if is_checkpoint_folder(name) else None


def checkpoint_files(root: str, completed: CompletedCheckpoint) -> tuple[StateFile, ...]:
    """All files of a checkpoint whose storage is at `root`, once each: first its metadata, if that is stored."""
    paths = [completed.metadata_path] if completed.metadata_path else []
    handles = (handle for state in completed.states() for handle in state_handles(state))
    paths += [handle.path for handle in handles if handle.path is not None]
    return tuple(StateFile(root, path) for path in dict.fromkeys(paths))
