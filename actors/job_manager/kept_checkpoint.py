"""KeptCheckpoint: whether the checkpoint that a job leaves is still there, looked at once, when the job has ended.

Who asks for the job's details meanwhile waits for that, but not for storage that does not answer. A ManagedJob's part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pykka

from ...messages import JobDetails, JobId
from ...state import CheckpointStorage
from ..context import ActorContext, Timer
from .storage_answers import ForJob

LOOK_MS = 2_000
"""How long who asks waits for storage."""


@dataclass(frozen=True, slots=True)
class CheckpointSeen:
    """What storage says; `is_there` is true as well where it says nothing."""

    is_there: bool


class KeptCheckpoint:
    """Of one job."""

    def __init__(self, context: ActorContext, job_id: JobId, storage: CheckpointStorage) -> None:
        self._context, self._job_id, self._storage = context, job_id, storage
        self._timer: Timer | None = None
        """While it is looked for."""
        self._waiting: list[tuple[pykka.Future[Any], Callable[[], JobDetails]]] = []

    def look(self, metadata_path: str) -> None:
        """Answered by ForJob(CheckpointSeen)."""
        self._timer = self._context.schedule(LOOK_MS, ForJob(self._job_id, CheckpointSeen(True)))
        self._context.pipe_to_self(
            self._context.run_blocking(self._storage.exists, metadata_path),
            lambda is_there: ForJob(self._job_id, CheckpointSeen(is_there)),
            lambda _: ForJob(self._job_id, CheckpointSeen(True)),
        )

    def answer(self, details: Callable[[], JobDetails]) -> JobDetails | pykka.Future[Any]:
        """What `details` says, or the promise of what it will say when one knows."""
        if self._timer is None:
            return details()
        promise = self._context.promise()
        self._waiting.append((promise, details))
        return promise

    def seen(self) -> None:
        """It is known, or nobody waits for it any more."""
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._timer, self._waiting = self._waiting, None, []
        for promise, details in waiting:
            promise.set(details())
