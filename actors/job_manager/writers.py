"""Writers: do a job's tasks write where this JobManager reads, and is there still what they have written before?

Hosts may have folders of their own under one path. Then each checkpoint would look complete, and the first host that is
lost would show that no other one has its state. So the first file of each attempt is looked for before the metadata of
its checkpoint are written.

An increment goes on using files of earlier checkpoints. Should somebody have removed these, no failure would show it
but the one that needs them: so before such metadata are written, the folder that has these files is listed, once.
"""

from __future__ import annotations

import posixpath

from ...messages import StateHandle
from ...state import CheckpointStorage, state_handles
from ...state.checkpoint_folders import is_shared, job_directory, shared_directory
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ...state.errors import EarlierFilesGone, MissingState, NotShared


class Writers:
    """Those of one job. Safe from any thread: what two of them look for at the same time is looked for twice."""

    def __init__(self) -> None:
        self._seen: frozenset[str] = frozenset()

    def check(self, storage: CheckpointStorage, draft: CompletedCheckpoint) -> None:
        """Blocks. Raises NotShared, EarlierFilesGone, and what the storage raises."""
        first = _first_files(draft)
        for writer, handle in first.items():
            if writer not in self._seen:
                try:
                    storage.check_there(handle)
                except MissingState as error:
                    raise NotShared(handle.path or "", storage.location(), never_was=not self._seen) from error
        self._seen = frozenset(first)
        _check_earlier_files(storage, draft)


def _check_earlier_files(storage: CheckpointStorage, draft: CompletedCheckpoint) -> None:
    folder = shared_directory(draft.job_id)
    new = f"{folder}/{draft.checkpoint_id}-"
    handles = (handle for state in draft.states() for handle in state_handles(state))
    paths = {handle.path for handle in handles if handle.path is not None}
    earlier = {path for path in paths if path.startswith(f"{folder}/") and not path.startswith(new)}
    if earlier and (gone := sorted(earlier.difference(storage.list_files(folder)))):
        raise EarlierFilesGone(gone[0], draft.checkpoint_id, len(gone), storage.location(folder))


def _first_files(draft: CompletedCheckpoint) -> dict[str, StateHandle]:
    """By the attempt that has written it, as files are called after it; of the job's own files."""
    found: dict[str, StateHandle] = {}
    own = f"{job_directory(draft.job_id)}/"
    for state in draft.states():
        for handle in state_handles(state):
            if handle.path is not None and handle.path.startswith(own):
                found.setdefault(_writer(handle.path), handle)
    return found


def _writer(path: str) -> str:
    """`<vertex>-<subtask>-<attempt>`; a shared file has its checkpoint before that, and its own id behind it."""
    name = posixpath.basename(path)
    return name.partition("-")[2].rpartition("-")[0] if is_shared(path) else name
