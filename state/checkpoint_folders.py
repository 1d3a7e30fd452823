"""What the folders and files below the root of checkpoints are called.

    <root>/<job_id>/chk-<checkpoint_id>/<vertex>-<subtask>-<attempt>     a subtask's state
    <root>/<job_id>/chk-<checkpoint_id>/_metadata                        the completed checkpoint
    <root>/<job_id>/inlets/<operator>/<subtask>/<segment>                logs of inlets, see record_log
    <root>/<job_id>/shared/<checkpoint_id>-<vertex>-<subtask>-<attempt>-<file_id>   what later checkpoints may hold too
    <root>/names/<name>/<number>     who runs, or has run, the job of a name that is to be resumed: checkpoints/job_runs

Paths are relative to the root.
"""

from __future__ import annotations

import posixpath
from functools import lru_cache
from urllib.parse import quote

from ..messages import CheckpointId, JobId

_CHECKPOINT = "chk-"


@lru_cache(maxsize=1024)
def job_directory(job_id: JobId) -> str:
    return quote(job_id, safe="")


def checkpoint_directory(job_id: JobId, checkpoint_id: CheckpointId) -> str:
    return f"{job_directory(job_id)}/{_CHECKPOINT}{checkpoint_id}"


def shared_directory(job_id: JobId) -> str:
    return f"{job_directory(job_id)}/shared"


def is_shared(path: str) -> bool:
    """Whether a file is one that several checkpoints may hold."""
    return posixpath.basename(posixpath.dirname(path)) == "shared"


def inlets_directory(job_id: JobId) -> str:
    """Where the inlets of a job have their logs, in a folder each."""
    return f"{job_directory(job_id)}/inlets"


def is_checkpoint_folder(name: str) -> bool:
    """Whether a folder of this name may hold a checkpoint."""
    return name.startswith(_CHECKPOINT) and name.removeprefix(_CHECKPOINT).isdecimal()


def is_called_after(metadata_path: str, job_id: JobId, checkpoint_id: CheckpointId) -> bool:
    """Whether the folders in which metadata lie are this checkpoint's, by their names; True if they name none."""
    *_, of_job, of_checkpoint, _ = ("", "", *metadata_path.split("/"))
    if not is_checkpoint_folder(of_checkpoint) or not of_job.startswith("job-"):
        return True
    return f"{of_job}/{of_checkpoint}" == checkpoint_directory(job_id, checkpoint_id)
