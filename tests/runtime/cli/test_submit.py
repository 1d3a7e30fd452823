"""What `understudy submit` says of a job whose results its command does not show."""

from __future__ import annotations

from understudy import StreamEnvironment
from understudy.runtime.cli.submit import _where_results_are


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
