"""`understudy list`, `cancel` and `checkpoints`, and how a job is named."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from unittest.mock import Mock

import pytest

from understudy.messages import CheckpointHistory, CheckpointId, CheckpointStatistics, JobId, JobStatus, JobSummary
from understudy.runtime.cli.jobs import (
    SHORT,
    SHORTEST,
    _checkpoint_table,
    _job_table,
    print_table,
    status_in_words,
    terminal_width,
)
from understudy.runtime.clusters.remote_cluster import find_job
from understudy.runtime.clusters.remote_errors import AmbiguousJob, NoSuchJob

from .conftest import Running, Shell


@pytest.mark.every_run
def test_a_running_job_is_listed_for_people_and_for_scripts(shared: Shell, running: Running) -> None:
    (job,) = shared("list", "--json").json
    assert job["job_id"] == running.job_id
    assert job["name"] == "job"
    assert job["status"] == "running"
    assert job["restarts"] == 0
    table = shared("list").out
    assert running.job_id in table
    assert "running" in table
    assert "2/2" in table


def test_checkpoints_are_told_the_newest_first(shared: Shell, running: Running) -> None:
    running.until_checkpoints(3)
    history = shared("checkpoints", "job", "--json").json
    ids = [each["checkpoint_id"] for each in history["checkpoints"]]
    assert ids == sorted(ids, reverse=True)
    assert history["job_id"] == running.job_id
    completed = [each for each in history["checkpoints"] if each["status"] == "completed"]
    assert all(each["state_size_bytes"] > 0 and len(each["subtasks"]) == each["subtasks_total"] for each in completed)
    table = shared("checkpoints", "job")
    shown = [int(line.split()[0]) for line in table.out.splitlines()[1:]]
    assert shown == sorted(shown, reverse=True)
    assert shown[0] >= ids[0]
    assert "completed" in table.err


def test_a_checkpoint_under_way_says_for_which_subtasks_it_waits(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("a [0]", "a [1]", "b [0]")
    found = CheckpointStatistics(CheckpointId(2), "checkpoint", "in_progress", 0, 0, 0, 8, awaited=names)
    print_table(_checkpoint_table(CheckpointHistory(JobId("job"), 1, 0, 0, CheckpointId(0), (found,))))
    assert capsys.readouterr().out.endswith(" waits for a [0], a [1], b [0] and 5 more\n")


def test_a_cancelled_job_has_ended_when_the_command_has(shell: Shell) -> None:
    run = shell.run("job:build")
    done = shell("cancel", "job", "--json")
    assert done.code == 0, done.err
    assert done.json == {"job_id": run.job_id, "name": "job", "status": "canceled", "savepoint_path": None}
    ended = run.end()
    assert ended.code == 1
    assert "was canceled" in ended.err
    shell.eventually_nothing_is_left()


def test_a_job_that_is_down_says_why_wherever_it_is_seen(shell: Shell) -> None:
    run = shell.run("job:down")
    why = "ZeroDivisionError: integer division or modulo by zero (in operator 'numbers', subtask 0, attempt 0, record"
    run.until(lambda client: client.jobs()[0].status is JobStatus.RESTARTING, "the job's restart")
    assert shell("list", "--json").json[0]["last_failure"].startswith(why)
    assert why in shell("list").out
    assert why in shell("checkpoints", "job").err
    refused = shell("savepoint", "job")
    assert refused.code == 1
    assert why in refused.err
    shell("cancel", "job")
    ended = run.end()
    assert why in ended.err
    assert "return env" not in ended.err
    assert "1 // (index - 5)" in ended.err, "the user's line"
    shell.eventually_nothing_is_left()


def job(job_id: str, name: str = "flights", status: JobStatus = JobStatus.RUNNING, started_ms: int = 0) -> JobSummary:
    return JobSummary(JobId(job_id), name, status, started_ms)


class TestTheStatusInWords:
    def test_a_job_that_a_new_leader_looks_at_is_being_taken_over(self) -> None:
        assert (
            status_in_words(replace(job("job-1", status=JobStatus.CREATED), is_taken_over=True)) == "being taken over"
        )

    def test_a_job_without_its_slots_waits_for_them(self) -> None:
        waiting = replace(job("job-1", status=JobStatus.RESTARTING), task_managers_awaited=1)
        assert status_in_words(waiting) == "restarting, waits for slots"
        assert status_in_words(replace(waiting, status=JobStatus.RUNNING)) == "running"

    def test_the_failure_of_a_job_that_runs_again_is_short(self, capsys: pytest.CaptureFixture[str]) -> None:
        failed = replace(job("job-1"), latest_failure="x" * 300, latest_failure_ms=time.time_ns() // 1_000_000)
        print_table(_job_table([failed, replace(failed, last_failure="x" * 300)]))
        short, full = (line.rstrip().rpartition(" ")[2] for line in capsys.readouterr().out.splitlines()[1:])
        assert (short, full) == ("x" * (SHORT - 1) + "…", "x" * 300)

    def test_a_failure_is_cut_where_the_terminal_ends(self, capsys: pytest.CaptureFixture[str]) -> None:
        failed = [replace(job(f"job-{n}"), last_failure=f"{n}" * 300) for n in (1, 2)]
        print_table(_job_table([*failed, job("job-3")], width=160))
        _, *lines, _ = (line.rstrip() for line in capsys.readouterr().out.splitlines())
        assert [len(line) for line in lines] == [160, 160]
        assert all(line.endswith("…") for line in lines)
        print_table(_job_table(failed, width=20))
        out = capsys.readouterr().out
        assert "1" * (SHORTEST - 1) + "…" in out, "a few words are left"
        assert "1" * SHORTEST not in out

    def test_who_reads_a_pipe_gets_all_of_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "132")
        assert terminal_width() is None
        monkeypatch.setattr(sys, "stdout", Mock(isatty=lambda: True))
        assert terminal_width() == 132


def test_a_job_is_one_line_and_its_name_orders_a_terminal_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(_job_table([job("job-1", "two\nlines \x1b[2J\u202e 日本"), job("job-2")]))
    _, first, second = capsys.readouterr().out.splitlines()
    assert r"two\nlines \x1b[2J\u202e 日本" in first
    assert second.startswith("job-2")


class TestNamingAJob:
    def test_an_id_wins_over_a_name_and_a_name_over_the_beginning_of_an_id(self) -> None:
        jobs = [job("job-1", "job-2"), job("job-2", "job"), job("job-22", "other")]
        assert find_job(jobs, "job-2").job_id == "job-2"
        assert find_job(jobs, "job").job_id == "job-2"
        assert find_job(jobs, "job-22").job_id == "job-22"
        assert find_job([job("job-1f"), job("job-2f")], "job-2").job_id == "job-2f"

    def test_of_several_the_one_that_runs_is_meant(self) -> None:
        ended, running = job("job-1", status=JobStatus.FAILED), job("job-2")
        assert find_job([ended, running], "flights") is running
        assert find_job([ended], "flights") is ended

    def test_several_that_run_are_ambiguous(self) -> None:
        with pytest.raises(AmbiguousJob, match=r"job-1.*job-2"):
            find_job([job("job-1"), job("job-2")], "flights")
        with pytest.raises(AmbiguousJob):
            find_job([job("job-1f"), job("job-12")], "job-1")
        with pytest.raises(AmbiguousJob, match=r"by its id: job-1 \(flights, running\), job-2 \(flights, running\)$"):
            find_job([job("job-0", status=JobStatus.FAILED), job("job-1"), job("job-2")], "flights")

    def test_of_several_that_have_ended_the_newest_is_meant_by_a_name_and_none_by_the_beginning_of_an_id(self) -> None:
        ended = [job("job-1", status=JobStatus.FINISHED, started_ms=2), job("job-2", status=JobStatus.FAILED)]
        assert find_job(ended, "flights").job_id == "job-1"
        with pytest.raises(AmbiguousJob):
            find_job(ended, "job-")

    def test_a_misspelt_name_gets_the_nearest_one(self) -> None:
        with pytest.raises(NoSuchJob, match=r"the name 'filghts'; did you mean 'flights'\? There are: job-1 \(flights"):
            find_job([job("job-1"), job("job-2")], "filghts")

    def test_a_path_in_place_of_a_job_says_which_of_both_comes_first(self) -> None:
        with pytest.raises(NoSuchJob, match="'/tmp/savepoints', which looks like a path: the job comes first"):
            find_job([job("job-1")], "/tmp/savepoints")

    @pytest.mark.parametrize("wanted", ["", "light", "job-3", "JOB-1"])
    def test_nothing_else_names_a_job(self, wanted: str) -> None:
        with pytest.raises(NoSuchJob, match="job-1"):
            find_job([job("job-1"), job("job-2")], wanted)
