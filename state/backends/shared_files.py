"""UploadedFiles: which files of one subtask's state are stored already, so that a snapshot may name them again.

For backends whose state consists of files that never change. Only files of checkpoints of this very job that have
completed may be named again: a pending checkpoint may still go, with its files (SnapshotTarget). A new snapshot's files
are noted on the thread that writes it, and count from the time that the task learns that its checkpoint is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from ...messages import CheckpointId, SharedFileId, SharedStateHandle
from ..storage import shared_directory
from .backend import SnapshotTarget


class UploadedFiles:
    """Those of one backend, by the name that it gives them."""

    def __init__(self) -> None:
        self._completed: dict[SharedFileId, SharedStateHandle] = {}
        self._pending: dict[CheckpointId, dict[SharedFileId, SharedStateHandle]] = {}

    def restored(self, handles: Iterable[SharedStateHandle]) -> None:
        """These files make the state that the backend begins with."""
        self._completed = {handle.file_id: handle for handle in handles}

    def completed(self) -> Mapping[SharedFileId, SharedStateHandle]:
        """Those that a snapshot of now may name; a copy."""
        return dict(self._completed)

    def written(self, checkpoint_id: CheckpointId, handles: Iterable[SharedStateHandle]) -> None:
        """The snapshot of this checkpoint names these."""
        self._pending[checkpoint_id] = {handle.file_id: handle for handle in handles}

    def complete(self, checkpoint_id: CheckpointId) -> None:
        """This checkpoint is: its files may be named from now on, and those of older ones no longer."""
        found = self._pending.pop(checkpoint_id, None)
        if found is not None:
            self._completed = found
        for older in [each for each in self._pending if each < checkpoint_id]:
            del self._pending[older]


def store_shared(
    files: Iterable[SharedFileId],
    known: Mapping[SharedFileId, SharedStateHandle],
    target: SnapshotTarget,
    read: Callable[[SharedFileId], bytes],
    source: Callable[[SharedFileId], str | None] = lambda _: None,
) -> list[SharedStateHandle]:
    """Where each of these files lies: those that are not known in this job's folder are written. Blocks.

    `source`: where this machine has the same bytes in a file that never changes. When it raises, it has removed what it
    wrote.
    """
    own_folder = f"{shared_directory(target.job_id)}/"
    handles: list[SharedStateHandle] = []
    try:
        for file_id in files:
            stored = known.get(file_id)
            if stored is None or not (stored.handle.path or "").startswith(own_folder):
                file = target.write(target.shared_path(file_id), read(file_id), source=source(file_id))
                stored = SharedStateHandle(file_id, file)
            handles.append(stored)
    except BaseException:
        remove_new(handles, target)
        raise
    return handles


def remove_new(handles: Iterable[SharedStateHandle], target: SnapshotTarget) -> None:
    """Those files that this snapshot has written; what cannot be removed goes when the job ends."""
    for each in handles:
        if target.storage is not None and each.handle.path is not None and target.wrote(each.handle.path):
            with suppress(OSError):
                target.storage.delete(each.handle.path)
