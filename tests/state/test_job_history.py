"""JobHistory: jobs that have ended, in a folder, through restarts and spoilt files."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from understudy.messages import (
    CheckpointConfig,
    CheckpointHistory,
    EndedJob,
    JobDetails,
    JobGraph,
    JobId,
    JobStatus,
    JobSummary,
    JobView,
    RestartStrategyConfig,
    RestartStrategyKind,
)
from understudy.state.errors import UnwritableRoot
from understudy.state.job_history import JobHistory


def ended(name: str, ended_ms: int) -> EndedJob:
    job_id = JobId(f"job-{name}")
    graph = JobGraph(
        job_id, name, (), (), CheckpointConfig("/nowhere"), RestartStrategyConfig(RestartStrategyKind.NONE)
    )
    summary = JobSummary(job_id, name, JobStatus.FINISHED, 1, ended_ms)
    details = JobDetails(job_id, name, JobStatus.FINISHED, 0, (), 0, 0, "", ())
    view = JobView(ended_ms, summary, details, graph, (), (), (), {}, (), (), ())
    return EndedJob(view, CheckpointHistory(job_id, 0, 0, 0, 0, ()))


def names(history: JobHistory) -> list[str]:
    return [each.view.summary.name for each in history.jobs()]


def test_what_is_kept_is_read_by_the_next_process_newest_end_first(tmp_path: Path) -> None:
    history = JobHistory(str(tmp_path))
    first, second = ended("first", 900), ended("second", 1_000_000_000_000)
    history.keep(second)
    history.keep(first)
    assert history.jobs() == [second, first]
    assert JobHistory(str(tmp_path)).jobs() == [second, first]


def test_a_reader_that_runs_sees_what_comes(tmp_path: Path) -> None:
    reader = JobHistory(str(tmp_path / "later"))
    assert reader.jobs() == []
    JobHistory(str(tmp_path / "later")).keep(ended("one", 1))
    assert names(reader) == ["one"]


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path) -> None:
    history = JobHistory(str(tmp_path), jobs_kept=2)
    for number in range(4):
        history.keep(ended(f"n{number}", number))
    assert names(history) == ["n3", "n2"]
    assert len(list(tmp_path.iterdir())) == 2


def test_to_keep_the_same_end_again_is_harmless(tmp_path: Path) -> None:
    history = JobHistory(str(tmp_path))
    history.keep(ended("one", 1))
    history.keep(ended("one", 1))
    assert names(history) == ["one"]


def test_a_spoilt_file_is_named_once_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    history = JobHistory(str(tmp_path))
    history.keep(ended("whole", 2))
    history.keep(ended("torn", 1))
    (torn,) = tmp_path.glob("*torn*")
    torn.write_bytes(torn.read_bytes()[:-3])
    (tmp_path / "001-noise.job").write_bytes(b"noise")
    (tmp_path / "README").write_text("no job")
    with caplog.at_level(logging.WARNING):
        assert names(history) == ["whole"]
        assert names(history) == ["whole"]
    assert len(caplog.records) == 2


def test_a_job_with_a_name_like_a_path_stays_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    job = ended("x", 1)
    away = replace(job, view=replace(job.view, summary=replace(job.view.summary, job_id=JobId("../../away"))))
    JobHistory(str(folder)).keep(away)
    assert len(list(folder.iterdir())) == 1
    assert [path for path in tmp_path.iterdir() if path != folder] == []


def test_a_folder_that_cannot_be_written_is_known_before_a_job_ends(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableRoot):
        JobHistory(str(tmp_path / "file")).check()
