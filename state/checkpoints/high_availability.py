"""HighAvailability: what of a JobManager and its jobs survives it, and that it leads. Flink: HighAvailabilityServices.

Handed to a JobManager by whoever starts it. A JobManager is there only while it leads: who elects leaders starts one
with the HighAvailability of its new session, and stops it when the session ends. Services that do I/O have their home
in runtime/. What an implementation must pass: tests/contracts/high_availability.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ...messages import CheckpointId, JobId, JobStatus, LeaderSessionId, SubmitJob
from .attempt_numbers import AttemptNumbers, StandaloneAttemptNumbers
from .checkpoint_ids import FIRST_CHECKPOINT_ID, CheckpointIdCounter, StandaloneCheckpointIdCounter
from .completed_checkpoints import CompletedCheckpoint, CompletedCheckpointStore, StandaloneCompletedCheckpointStore


class CheckpointPointers(Protocol):
    """Where a successor finds the checkpoints of one job. From any thread; may block, and goes on trying while nobody
    answers. Raises LostLeadership: the checkpoint is not to be announced, and no file of it to be deleted.
    """

    def add(self, completed: CompletedCheckpoint, savepoints: tuple[str, ...] = ()) -> None:
        """It is stored, with its metadata. When this returns, a successor goes on from it, or from a later one.

        `savepoints`: the paths of those that it is to be.
        """
        ...

    def remove(self, metadata_path: str) -> None:
        """It is about to be deleted: no successor looks for it. One that has no pointer is fine."""
        ...


class NoPointers:
    """There is no successor."""

    def add(self, completed: CompletedCheckpoint, savepoints: tuple[str, ...] = ()) -> None:
        """Nothing to write."""

    def remove(self, metadata_path: str) -> None:
        """The same."""


@dataclass(frozen=True, slots=True)
class KeptJob:
    """What is kept of one job. Ids, checkpoints and attempt numbers are open, and belong to the JobManager's thread:
    none of them blocks.
    """

    checkpoint_ids: CheckpointIdCounter
    checkpoints: CompletedCheckpointStore
    """Data lies in the checkpoint storage; only pointers are kept beside it. A checkpoint is stored (metadata, then
    pointer), and then added; what `add` pushes out loses its pointer first, and then its files: no pointer ever leads
    to a file that was deleted on purpose.
    """
    pointers: CheckpointPointers = field(default_factory=NoPointers)
    savepoints: Mapping[str, CompletedCheckpoint] = field(default_factory=dict)
    """Those that users have of it since earlier sessions, by path: their files are not to be deleted."""
    attempt_numbers: AttemptNumbers = field(default_factory=StandaloneAttemptNumbers)


class HighAvailability(Protocol):
    """Of one leader session.

    `add_job` and `remove_job` may be called from any thread, several at a time, and may be repeated. They raise OSError
    when what they keep cannot be reached, and LostLeadership once another session has begun, having changed nothing:
    what a deposed leader writes is refused, whatever it thinks.
    """

    may_block: bool
    """Whether `add_job` and `remove_job` may block: then no actor calls them on its own thread. Nor is a file of a job
    that has ended deleted before `remove_job` has returned: a successor that knows of no end starts the job again.
    """

    @property
    def session(self) -> LeaderSessionId:
        """That of this leader: no other has had it. Every message that directs state carries it."""
        ...

    @property
    def is_sure(self) -> bool:
        """Whether nobody else can lead now, going by what was heard and by the clock. From any thread; does not
        block.
        """
        ...

    def is_kept(self, job_id: JobId) -> bool:
        """Whether this job is kept now, by this leader or by an earlier one. Does not block."""
        ...

    def add_job(self, submitted: SubmitJob, first_id: CheckpointId = FIRST_CHECKPOINT_ID) -> KeptJob:
        """A job is about to be started. When this returns, the job is kept for a successor, and the client is answered.

        Its checkpoint ids begin at `first_id`, or after all that it has ever drawn, in other sessions too, and so do
        the numbers of its attempts. A job that is kept already is opened again, with its completed checkpoints. Raises
        CorruptState or MissingState when it has some, and none can be read: it is never started from the beginning
        without a word.
        """
        ...

    def remove_job(self, job_id: JobId, status: JobStatus) -> None:
        """It has ended so, or was not started in the end: no successor starts it again. Its ids and pointers go; its
        files are the JobManager's to delete. A job that is not kept is fine.
        """
        ...

    def close(self) -> None:
        """The JobManager stops. What is kept stays for a successor. Does not block."""
        ...


class StandaloneHighAvailability:
    """Nothing survives the JobManager, which leads as long as it lives. Flink: StandaloneHaServices."""

    may_block = False

    def __init__(self, session: LeaderSessionId) -> None:
        self._session = session
        self._jobs: dict[JobId, KeptJob] = {}

    @property
    def session(self) -> LeaderSessionId:
        return self._session

    @property
    def is_sure(self) -> bool:
        return True

    def is_kept(self, job_id: JobId) -> bool:
        return job_id in self._jobs

    def add_job(self, submitted: SubmitJob, first_id: CheckpointId = FIRST_CHECKPOINT_ID) -> KeptJob:
        config, job_id = submitted.graph.checkpoints, submitted.graph.job_id
        if job_id not in self._jobs:
            store = StandaloneCompletedCheckpointStore(config.retained, config.retention)
            self._jobs[job_id] = KeptJob(StandaloneCheckpointIdCounter(), store)
        kept = self._jobs[job_id]
        kept.checkpoint_ids.set_count(first_id)
        return kept

    def remove_job(self, job_id: JobId, status: JobStatus) -> None:
        self._jobs.pop(job_id, None)

    def close(self) -> None:
        self._jobs.clear()
