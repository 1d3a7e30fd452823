"""Checkpoints that earlier runs have left, and that a job does not go on from, as nobody asked for it: its log says so.

Elsewhere a program that is started again goes on where it was; here, as in Flink, only one that says so.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection, Iterator

from ...messages import JobGraph, JobId, OperatorId
from ...state import CheckpointStorage, StateError
from ...state.checkpoint_folders import is_checkpoint_folder, job_directory
from ...state.checkpoints.checkpoint_metadata import read_checkpoint
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ...state.checkpoints.savepoints import METADATA
from ...state.file_locations import is_url

log = logging.getLogger("understudy.job")

LOOKED_AT = 3
"""Of the newest: metadata may hold state, megabytes of it."""


def warn_of_earlier_checkpoints(graph: JobGraph, storage: CheckpointStorage, jobs_here: Collection[JobId] = ()) -> None:
    """Of the newest one whose operators this job has, where they lie in a file system: an object store would have to
    list all that it holds. `jobs_here`: what this cluster runs, or has run. Never raises for what is there.
    """
    root = storage.location()
    if is_url(root):
        return
    own = {each.operator_id for vertex in graph.vertices for each in vertex.operators}
    folders = {job_directory(each) for each in (*jobs_here, graph.job_id)}
    for path in sorted(_metadata_below(root, folders), key=_changed_at, reverse=True)[:LOOKED_AT]:
        try:
            found = read_checkpoint(storage, path.removeprefix(f"{root}/"))
        except (StateError, OSError):
            continue  # it may go at this moment, or be of another release or key
        if own >= _operators_of(found) != set():
            age_s = max(0.0, time.time() - found.timestamp_ms / 1000)
            log.warning(
                "job %r starts from the beginning, and %s has a checkpoint with the same operators, taken %.0f s ago "
                'by %s. To go on where the last run was, submit with resume="latest" (--resume latest), from the first '
                "run on; to go on from this one, with from_savepoint=%r (--from-savepoint)",
                graph.name,
                root,
                age_s,
                found.job_id,
                path,
            )
            return


def _metadata_below(root: str, but: Collection[str]) -> Iterator[str]:
    """Of complete checkpoints in other folders than these."""
    for job in _folders_in(root):
        if job.startswith("job-") and job not in but:
            for checkpoint in filter(is_checkpoint_folder, _folders_in(f"{root}/{job}")):
                path = f"{root}/{job}/{checkpoint}/{METADATA}"
                if os.path.exists(path):
                    yield path


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as found:
            return [each.name for each in found if each.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _changed_at(path: str) -> float:
    try:
        return os.path.getmtime(path)
    except OSError:  # its job runs, and has just removed it
        return 0.0


def _operators_of(checkpoint: CompletedCheckpoint) -> set[OperatorId]:
    return {each.operator_id for vertex in checkpoint.vertices.values() for each in vertex.operators}
