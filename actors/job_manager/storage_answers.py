"""What storage answers for one job, to the JobManager, which hands it to the ManagedJob."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...messages import JobId


@dataclass(frozen=True, slots=True)
class LeaseTold:
    """What came of a write of the job's lease; or LostOwnership, which storing a checkpoint may find out too."""

    error: BaseException | None


@dataclass(frozen=True, slots=True)
class Deposed:
    """Another JobManager leads: this one stops, and deletes nothing."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class PointerGone:
    """No successor looks for the checkpoint with this metadata any more."""

    metadata_path: str


@dataclass(frozen=True, slots=True)
class ForJob:
    """An answer of storage, or a timer, for one job."""

    job_id: JobId
    event: Any
    """Deposed is for the JobManager itself; all others are those of ManagedJob.on."""
