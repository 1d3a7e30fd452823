"""What clients say about savepoints, and about checkpoints that they want now; and the answers. The names and
meanings are Flink's, where it has them as messages.
"""

from __future__ import annotations

from .ids import CheckpointId, JobId
from .registry import message


@message
class TriggerSavepoint:
    """Client -> JobManager. Answered with TriggerSavepointSuccess or TriggerSavepointFailure.

    `target_directory`: a folder below the configured root of savepoints; None: the root itself.
    """

    job_id: JobId
    target_directory: str | None = None


@message
class StopWithSavepoint:
    """Client -> JobManager: take a savepoint that is the last thing the job does, and finish. Answered as
    TriggerSavepoint, once the savepoint is stored; when it fails the job goes on.

    Without `drain` sources stop at its barrier, and the job can go on from it; with `drain` the data is ended first, so
    that operators emit their final results, and nothing comes after it. Flink: stop-with-savepoint.
    """

    job_id: JobId
    target_directory: str | None = None
    drain: bool = False


@message
class CancelWithSavepoint:
    """Client -> JobManager: take a savepoint and then cancel the job; when the savepoint fails the job goes on.

    Answered as TriggerSavepoint. Flink: CancelJobWithSavepoint.
    """

    job_id: JobId
    target_directory: str | None = None


@message
class TriggerSavepointSuccess:
    job_id: JobId
    savepoint_path: str


@message
class TriggerSavepointFailure:
    job_id: JobId
    cause: str


@message
class RestartJob:
    """Client -> JobManager: start a job again from a savepoint, with the graph and the program that it was submitted
    with. Answered with the JobSubmitted of the new job, or fails with why it is not started.

    The savepoint is read, and held against the program, before anything else happens.
    """

    job_id: JobId
    savepoint_path: str
    allow_non_restored_state: bool = False
    cancel: bool = False
    """Whether the job is cancelled first, if it still runs; without, such a job is refused."""


@message
class DisposeSavepoint:
    """Client -> JobManager. Answered with DisposeSavepointSuccess or DisposeSavepointFailure.

    Nobody can restore from it any more. Its files go as soon as no running job needs them to recover.
    """

    savepoint_path: str
    working_directory: str = ""
    """The client's, for a relative path, which is looked for there first; empty: only below the savepoints' root."""


@message
class DisposeSavepointSuccess:
    savepoint_path: str


@message
class DisposeSavepointFailure:
    cause: str


@message
class RequestCheckpoint:
    """Client -> JobManager: take a checkpoint now, beside those that are taken at their interval. Answered with
    CheckpointTaken or CheckpointNotTaken.

    While as many are under way as are allowed at once it waits for one of them to end; the minimum pause does not hold
    for it. Requests that wait at the same time get the same checkpoint. `full`: nothing in it lies in files of earlier
    checkpoints. Flink: JobMasterGateway.triggerCheckpoint.
    """

    job_id: JobId
    full: bool = False


@message
class CheckpointTaken:
    """`path`: the checkpoint's folder, with `_metadata` in it."""

    job_id: JobId
    checkpoint_id: CheckpointId
    path: str


@message
class CheckpointNotTaken:
    job_id: JobId
    cause: str
