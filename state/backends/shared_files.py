"""UploadedFiles: which files of one subtask's state are stored already, so that a snapshot may name them again.

For backends whose state consists of files that never change. A snapshot may name a file again if a completed checkpoint
of this very job has it, and each checkpoint between the two, which is still pending, names it too: as soon as one of
those completes, the older one goes, with all files that nobody has acknowledged since. A pending checkpoint's own new
files may go with it (SnapshotTarget), so they count from the time that the task learns that it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from ...messages import CheckpointId, SharedFileId, SharedStateHandle
from ..checkpoint_folders import shared_directory
from .backend import SnapshotTarget


class UploadedFiles:
    """Those of one backend, by the name that it gives them."""

    def __init__(self) -> None:
        self._completed: dict[SharedFileId, SharedStateHandle] = {}
        self._named: dict[CheckpointId, Collection[SharedFileId]] = {}
        """By checkpoint after the completed one, the completed one's files that it names."""
        self._written: dict[CheckpointId, dict[SharedFileId, SharedStateHandle]] = {}

    def restored(self, handles: Iterable[SharedStateHandle]) -> None:
        """These files make the state that the backend begins with."""
        self._completed = {handle.file_id: handle for handle in handles}

    def begin(
        self, checkpoint_id: CheckpointId, files: Iterable[SharedFileId], *, whole: bool = False
    ) -> dict[SharedFileId, SharedStateHandle]:
        """Of the files of the snapshot that is taken now those that it names again, and where they lie; none of them,
        if it is to be `whole`.
        """
        known = {
            file: self._completed[file]
            for file in files
            if not whole and file in self._completed and all(file in named for named in self._named.values())
        }
        self._named[checkpoint_id] = known.keys()
        return known

    def written(self, checkpoint_id: CheckpointId, handles: Iterable[SharedStateHandle]) -> None:
        """The snapshot of this checkpoint consists of these. On any thread."""
        self._written[checkpoint_id] = {handle.file_id: handle for handle in handles}

    def complete(self, checkpoint_id: CheckpointId) -> None:
        """This checkpoint is: its files may be named from now on, and those of older ones no longer."""
        found = self._written.pop(checkpoint_id, None)
        if found is None:  # an attempt before this one took the snapshot
            return
        before, self._completed = self._completed, found
        for pending in (self._named, self._written):
            for older in [each for each in pending if each <= checkpoint_id]:
                del pending[older]
        for newer, named in self._named.items():
            self._named[newer] = {file for file in named if found.get(file) == before[file]}


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
