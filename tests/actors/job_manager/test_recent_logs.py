"""RecentLogs: bounded, and read from where somebody was."""

from __future__ import annotations

import pytest

from understudy.actors.job_manager import recent_logs
from understudy.actors.job_manager.recent_logs import RecentLogs
from understudy.messages import JobId, LoggedRecord, LogRecords, TaskManagerId

JOB = JobId("job")


def message(*texts: str) -> LogRecords:
    records = tuple(LoggedRecord("x", 30, 0.0, text) for text in texts)
    return LogRecords(TaskManagerId("tm"), JOB, "job", 1, records)


def texts(logs: RecentLogs, after: int = 0) -> list[str]:
    return [record.text for each in logs.read(after).records for record in each.records]


def test_who_comes_back_gets_what_is_new() -> None:
    logs = RecentLogs(JOB, "job")
    logs.add(message("a", "b"))
    first = logs.read(0)
    assert (texts(logs), first.next_after, first.missed) == (["a", "b"], 1, 0)
    logs.add(message("c"))
    assert texts(logs, first.next_after) == ["c"]
    assert texts(logs, logs.read(0).next_after) == []


def test_the_oldest_go_first_and_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_logs, "KEPT_RECORDS", 4)
    logs = RecentLogs(JOB, "job")
    for number in range(5):
        logs.add(message(f"{number}a", f"{number}b"))
    assert texts(logs) == ["3a", "3b", "4a", "4b"]
    assert logs.read(1).missed == 2


def test_what_the_job_manager_says_stands_between_what_others_say() -> None:
    logs = RecentLogs(JOB, "job")
    logs.add(message("a"))
    logs.note("understudy.job", 30, "job 'job' failed", 1_500)
    logs.add(message("b"))
    assert texts(logs) == ["a", "job 'job' failed", "b"]
    (_, noted, _) = logs.read(0).records
    assert (noted.task_manager_id, noted.records[0].created_s) == ("jobmanager", 1.5)
