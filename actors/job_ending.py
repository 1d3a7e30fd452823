"""JobEnding: how far a job is on its way to its end. A value machine of the JobMaster.

    data ends in every task -> final checkpoint -> its completion is told, again and again -> every task has finished

The last word must not be lost: a task that does not hear that the final checkpoint is complete would wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..messages import CheckpointId, ExecutionAttemptId, JobId, NotifyCheckpointComplete
from .execution_graph import Region


class JobEnding:
    """Which attempts' data has ended, and who has yet to finish after the final checkpoint."""

    def __init__(self, job_id: JobId) -> None:
        self._job_id = job_id
        self._data_ended: set[ExecutionAttemptId] = set()
        self._notices: dict[ExecutionAttemptId, NotifyCheckpointComplete] = {}
        self._restored: dict[Region, CheckpointId] = {}

    def data_ended(self, attempt_id: ExecutionAttemptId, of_all: Iterable[ExecutionAttemptId]) -> bool:
        """This attempt has taken all its input; returns whether all of them have."""
        self._data_ended.add(attempt_id)
        return self._data_ended.issuperset(of_all)

    def attempt_over(self, attempt_id: ExecutionAttemptId) -> None:
        self._data_ended.discard(attempt_id)
        self._notices.pop(attempt_id, None)

    def region_restored(self, region: Region, final: CheckpointId | None) -> None:
        """A region is deployed; `final` is the final checkpoint it was restored from, if it was that one."""
        if final is None:
            self._restored.pop(region, None)
        else:
            self._restored[region] = final

    def notices_for(
        self, region: Region, attempts: Iterable[ExecutionAttemptId], wall_ms: int
    ) -> list[NotifyCheckpointComplete]:
        """All tasks of a region run. One that was restored from the final checkpoint has only to commit it and
        finish.
        """
        final = self._restored.get(region)
        if final is None:
            return []
        return [NotifyCheckpointComplete(self._job_id, one, final, wall_ms, final=True) for one in attempts]

    def told(self, message: NotifyCheckpointComplete) -> bool:
        """A final notice was sent; returns whether it is the first that waits for its task, so that a timer is due."""
        is_first = not self._notices
        self._notices[message.attempt_id] = message
        return is_first

    def unheard(self) -> tuple[NotifyCheckpointComplete, ...]:
        """The notices whose tasks have not finished yet."""
        return tuple(self._notices.values())
