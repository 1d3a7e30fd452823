"""InItsPlace: which checkpoint can be used where the one that was named is damaged or gone. All of it blocks."""

from __future__ import annotations

from contextlib import suppress

from ...state import CheckpointStorage, StateError, state_handles
from ...state.checkpoint_folders import is_checkpoint_folder
from ...state.checkpoints.checkpoint_metadata import read_checkpoint
from ...state.checkpoints.savepoint_store import job_named_by
from ...state.checkpoints.savepoints import METADATA, metadata_path

NOT_WHOLE = (
    "; bring that file back from a backup, or start from another savepoint or checkpoint (`understudy state verify "
    "PATH` says whether one is whole)"
)
"""The end of a text about a file of what was named, where no other is known."""
_TRIED_AT_MOST = 50


def in_its_place(storage: CheckpointStorage, path: str) -> str:
    """The end of a text about the checkpoint or savepoint at `path`: what to do, with the newest checkpoint of the same
    job below `storage` that can be read.
    """
    is_older = False
    named = _number((metadata_path(path) or "").rpartition("/")[0])
    for folder in _newest_first(storage, path)[:_TRIED_AT_MOST]:
        is_older = is_older or _number(folder) < named
        if _is_whole(storage, f"{folder}/{METADATA}"):
            place = storage.location(folder)
            again = ". What its sinks have committed since then comes again" if is_older else ""
            return (
                "; bring that file back from a backup, or start from the newest checkpoint of that job that can be "
                f"read: --from-savepoint {place} (from_savepoint= in Python){again}"
            )
        is_older = True
    return NOT_WHOLE


def _newest_first(storage: CheckpointStorage, path: str) -> list[str]:
    """The folders of all checkpoints of the job whose checkpoint or savepoint this path names."""
    found: list[str] = []
    with suppress(StateError, OSError):
        for file in storage.list_files():
            folder, _, name = file.rpartition("/")
            job, _, checkpoint = folder.rpartition("/")
            if name == METADATA and is_checkpoint_folder(checkpoint) and _is_of(job, path):
                found.append(folder)
    return sorted(found, key=_number, reverse=True)


def _number(folder: str) -> int:
    """That of the checkpoint in it; 0 for none."""
    number = folder.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _is_of(job: str, path: str) -> bool:
    metadata = metadata_path(path)
    if metadata is not None:
        return metadata.split("/")[-3:-2] == [job]
    begin = job_named_by(path)
    return bool(begin) and job.startswith(begin)


def _is_whole(storage: CheckpointStorage, metadata: str) -> bool:
    """As far as its metadata and the lengths of its files tell."""
    try:
        for state in read_checkpoint(storage, metadata).states():
            for handle in state_handles(state):
                storage.check_there(handle)
    except (StateError, OSError):
        return False
    return True
