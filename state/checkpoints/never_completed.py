"""What checkpoints that never completed have left in the folder of a job that goes on: a task was killed while it
wrote, or before it could say so, and nobody heard of the file.

What is written once a job has ended goes with all of it: `CheckpointStorage.delete_job`. Files in `shared` stay until
then.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Collection

from ...messages import CheckpointId, JobId
from ..checkpoint_folders import is_checkpoint_folder, job_directory
from ..storage import CheckpointStorage
from .savepoints import METADATA


def delete_never_completed(
    storage: CheckpointStorage, job_id: JobId, below: CheckpointId, needed: Collection[str]
) -> None:
    """Delete the folders of a job's checkpoints before `below` that have no metadata, but for files that are `needed`.
    Blocks.

    No checkpoint before `below` may be under way: a task that is about to acknowledge one has written files of it.
    """
    folders: dict[str, list[str]] = defaultdict(list)
    for path in storage.list_files(job_directory(job_id)):
        folders[posixpath.dirname(path)].append(path)
    gone = [
        path
        for folder, paths in folders.items()
        if _is_before(below, posixpath.basename(folder)) and f"{folder}/{METADATA}" not in paths
        for path in paths
        if path not in needed
    ]
    for path in gone:
        storage.delete(path)
    storage.make_deletions_last(gone)


def _is_before(below: CheckpointId, folder: str) -> bool:
    return is_checkpoint_folder(folder) and int(folder.rpartition("-")[2]) < below
