"""KeptJobs: in which order what it keeps comes and goes, for a leader that may end between any two acts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from understudy.messages import JobId, JobStatus, LeaderSessionId
from understudy.runtime.high_availability.kept_jobs import KeptJobs
from understudy.runtime.high_availability.submissions import Submissions
from understudy.state import CheckpointStorage
from understudy.state.errors import LostLeadership

from ...contracts.high_availability import submitted


class EndingLeadership:
    """Its records are in memory; once it is over nobody may change them."""

    session = LeaderSessionId("one")

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}
        self.is_sure = True

    def publish(self, address: str) -> None: ...

    def on_lost(self, callback: Callable[[str], None]) -> None: ...

    def resign(self) -> None: ...

    def read(self) -> Mapping[str, bytes]:
        return dict(self.records)

    def write(self, name: str, data: bytes) -> None:
        self._check()
        self.records[name] = data

    def remove(self, name: str) -> None:
        self._check()
        self.records.pop(name, None)

    def place(self, name: str) -> str:
        return name

    def _check(self) -> None:
        if not self.is_sure:
            raise LostLeadership(self.session)


def test_whatever_a_successor_finds_in_a_record_is_there(tmp_path: Path) -> None:
    """The submission comes before its record, and goes after it."""
    leadership, storage = EndingLeadership(), CheckpointStorage(str(tmp_path))
    submissions = Submissions(storage, b"key")
    kept = KeptJobs(leadership, submissions, CheckpointStorage)
    kept.add_job(submitted())

    leadership.is_sure = False
    with pytest.raises(LostLeadership):
        kept.add_job(submitted("another"))
    assert submissions.load(JobId("another"))[0] == submitted("another")
    with pytest.raises(LostLeadership):
        kept.remove_job(JobId("job"), JobStatus.FINISHED)
    assert list(leadership.records)
    assert submissions.load(JobId("job"))[0] == submitted()

    leadership.is_sure = True
    kept.remove_job(JobId("job"), JobStatus.FINISHED)
    assert not leadership.records
