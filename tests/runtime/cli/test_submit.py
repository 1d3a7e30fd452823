"""What `understudy submit` says of a job whose results its command does not show."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from understudy import StreamEnvironment
from understudy.runtime.cli.submit import _until_ready, _where_results_are


def test_it_says_where_prints_go_and_who_may_read_what_is_collected() -> None:
    env = StreamEnvironment()
    numbers = env.from_collection([1])
    numbers.print()
    numbers.collect(name="all")
    prints, collects = _where_results_are(env, "/var/log/us")
    assert prints.startswith("what it prints goes to /var/log/us/taskmanager-*.out")
    assert collects.startswith("what 'all' collects is for a program that submits the job")


def test_of_files_there_is_nothing_to_say() -> None:
    env = StreamEnvironment()
    env.from_collection([1]).map(str)
    assert list(_where_results_are(env, "log")) == []


def test_what_a_job_waits_for_is_said_once_though_one_look_finds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    looks = iter(["waiting for 2 slots", "", "waiting for 2 slots", "starting its tasks"])
    left = list(range(4))

    def result(timeout: float) -> None:
        if left:
            left.pop()
            raise TimeoutError

    cluster: Any = SimpleNamespace(why_waiting=lambda _: next(looks))
    job: Any = SimpleNamespace(ready=lambda: SimpleNamespace(result=result), job_id="job-1", name="job")
    _until_ready(cluster, job)
    assert capsys.readouterr().err.count("job 'job' is waiting for 2 slots") == 1
