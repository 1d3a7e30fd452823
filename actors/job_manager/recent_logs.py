"""RecentLogs: the last records that a job's TaskManagers have logged, and the JobManager about it, for those who ask
later. Bounded, in memory.
"""

from __future__ import annotations

from collections import deque

from ...messages import JobId, JobLogs, LoggedRecord, LogRecords, TaskManagerId

KEPT_RECORDS = 2_000
"""And what came with the oldest of them. TaskManagers have limited each record's text already."""

JOB_MANAGER = TaskManagerId("jobmanager")
"""In place of a TaskManager, of what its own process has logged."""


class RecentLogs:
    """One job's, on its JobManager's dispatcher."""

    def __init__(self, job_id: JobId, job_name: str) -> None:
        self._job_id = job_id
        self._job_name = job_name
        self._kept: deque[LogRecords] = deque()
        self._records = 0
        self._end = 0
        """How many messages there have been."""

    def add(self, message: LogRecords) -> None:
        self._kept.append(message)
        self._end += 1
        self._records += len(message.records)
        while self._records - len(self._kept[0].records) >= KEPT_RECORDS:
            self._records -= len(self._kept.popleft().records)

    def note(self, logger: str, level: int, text: str, wall_ms: int) -> None:
        """What the JobManager itself has logged about the job."""
        record = LoggedRecord(logger, level, wall_ms / 1000, text)
        self.add(LogRecords(JOB_MANAGER, self._job_id, self._job_name, 0, (record,)))

    def read(self, after: int) -> JobLogs:
        """All that came behind the first `after` messages."""
        begin = self._end - len(self._kept)
        chosen = tuple(self._kept)[max(0, after - begin) :]
        return JobLogs(self._job_id, chosen, self._end, max(0, begin - after))
