"""Savepoints: a cluster's savepoints, from their paths down to the state. Flink: SavepointV1, Savepoints.

It joins the store of pointers with the storages that the pointers lead to. All of it may block, and may be called from
any thread. What a pointer says is believed only as far as the checkpoint that it leads to bears it out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from ..messages import JobId
from .checkpoint_metadata import decode_metadata
from .completed_checkpoints import CompletedCheckpoint
from .errors import CorruptState, ForgedPointer, MissingState
from .savepoint_store import POINTER_VERSION, SavepointPointer, SavepointStore
from .shared_state import StateFile
from .snapshot_file import state_handles
from .storage import CheckpointStorage, checkpoint_directory, job_directory

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
    """One per cluster. `temporary`: a URL below which everything is lost with the cluster."""

    def __init__(
        self, store: SavepointStore, open_storage: Callable[[str], CheckpointStorage], temporary: str | None = None
    ) -> None:
        self.open_storage = open_storage
        self._store = store
        self._temporary = open_storage(temporary).location() if temporary else None

    # -- taking

    def check_target(self, target_directory: str | None) -> None:
        """Before a savepoint is taken. Raises as SavepointStore.target."""
        self._store.target(target_directory)

    def refusal(self, checkpoint_root: str) -> str | None:
        """Why no savepoint can be taken of a job with this checkpoint `location()`; does not block."""
        is_temporary = self._temporary is not None and f"{checkpoint_root}/".startswith(f"{self._temporary}/")
        if not (is_temporary and self._store.outlives_cluster):
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
        return self._store.store(pointer, target_directory)

    # -- using

    def load(self, path: str) -> Savepoint:
        """The savepoint at a path from outside. Raises as SavepointStore.load; MissingState or CorruptState when its
        metadata is not there, or not whole; ForgedPointer.
        """
        return self._follow(self._store.canonical(path), self._store.load(path))

    def remove(self, path: str) -> RemovedSavepoint:
        """Remove the pointer of a savepoint; what it leads to is left to the caller. Raises as `load`, but for metadata
        that is missing or broken: then nobody can say which files are its, and they stay.
        """
        canonical, pointer = self._store.canonical(path), self._store.load(path)
        self._storage_of(pointer, canonical)  # what cannot be opened here may be whole elsewhere: its pointer stays
        try:
            files = self._follow(canonical, pointer).files()
        except (MissingState, CorruptState) as error:
            log.warning("savepoint %s is disposed of, but its state cannot be found: %s", canonical, error)
            files = ()
        self._store.dispose(path)
        return RemovedSavepoint(canonical, pointer.job_id, files)

    def forget(self, path: str) -> None:
        """Remove the pointer, and nothing else. Raises as SavepointStore.dispose."""
        self._store.dispose(path)

    def close(self) -> None:
        self._store.close()

    def _follow(self, path: str, pointer: SavepointPointer) -> Savepoint:
        storage = self._storage_of(pointer, path)
        expected = f"{checkpoint_directory(pointer.job_id, pointer.checkpoint_id)}/{METADATA}"
        if pointer.metadata_path != expected or storage.resolve(expected) != expected:
            raise ForgedPointer(path, f"leads to {pointer.metadata_path}; wanted {expected}")
        completed = decode_metadata(storage.read_sealed(expected), expected)
        if (completed.job_id, completed.checkpoint_id) != (pointer.job_id, pointer.checkpoint_id):
            found = f"checkpoint {completed.checkpoint_id} of {completed.job_id}"
            raise ForgedPointer(path, f"leads to {found}; wanted {pointer.checkpoint_id} of {pointer.job_id}")
        return Savepoint(path, pointer, storage, completed)

    def _storage_of(self, pointer: SavepointPointer, path: str) -> CheckpointStorage:
        try:
            return self.open_storage(pointer.checkpoint_root)
        except (ValueError, ImportError) as error:
            found = f"{pointer.checkpoint_root!r}: {error}"
            raise CorruptState(path, "the URL of a checkpoint directory", found) from error


def checkpoint_files(root: str, completed: CompletedCheckpoint) -> tuple[StateFile, ...]:
    """All files of a checkpoint whose storage is at `root`, once each: first its metadata, if that is stored."""
    paths = [completed.metadata_path] if completed.metadata_path else []
    handles = (handle for state in completed.states() for handle in state_handles(state))
    paths += [handle.path for handle in handles if handle.path is not None]
    return tuple(StateFile(root, path) for path in dict.fromkeys(paths))
