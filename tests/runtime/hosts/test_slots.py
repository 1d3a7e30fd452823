"""Slots: what a job waits for, and what no waiting helps with."""

from __future__ import annotations

import pytest

from understudy.messages import AwaitedTaskManager, HostedTaskManager, HostId, HostList, HostSummary, JobId, LaunchId
from understudy.runtime.hosts.slots import too_few, why_waiting

MINE, OTHER = JobId("job-1"), JobId("job-2")
NAMES = {OTHER: "words"}


def host(name: str, slots: int, **held: int) -> HostSummary:
    """Keywords: slots by the name of the job that holds them."""
    holders = {"mine": MINE, "other": OTHER}
    running = tuple(
        HostedTaskManager(LaunchId(f"{name}-{who}"), holders.get(who, JobId(who)), 0, count)
        for who, count in held.items()
    )
    return HostSummary(HostId(name), name, 1, slots, slots - sum(held.values()), running)


def awaited(*slots: int) -> tuple[AwaitedTaskManager, ...]:
    return tuple(AwaitedTaskManager(MINE, index, count) for index, count in enumerate(slots))


def test_a_job_that_waits_is_shown_how_many_slots_are_free_and_who_holds_the_others() -> None:
    hosts = HostList((host("a", 2, other=2), host("b", 2, other=1, mine=1)), (), awaited(1))
    assert why_waiting(MINE, hosts, NAMES, 2) == (
        "waiting for 1 slot: 0 are free of 4; job 'words' (job-2) holds 3; this job holds 1; it goes on when they are "
        "free"
    )
    assert why_waiting(MINE, hosts, NAMES, 0).endswith(
        "free, or when more TaskManager processes come (`understudy taskmanager`)"
    )


def test_slots_that_are_free_and_on_different_hosts_are_explained() -> None:
    hosts = HostList((host("a", 2, other=1), host("b", 2, other=1)), (), awaited(2))
    assert "waiting for 2 slots: 2 are free of 4; 2 have to be free on one host;" in why_waiting(MINE, hosts, NAMES, 2)


def test_of_many_jobs_those_that_hold_most_are_named() -> None:
    many = {f"job-{number}": 1 for number in range(3, 8)}
    hosts = HostList((host("a", 7, other=2, **many),), (), awaited(1))
    why = why_waiting(MINE, hosts, NAMES, 1)
    assert why.count("holds") == 3
    assert "3 other jobs hold the rest" in why


def test_a_job_without_a_host_is_told_how_to_start_one_and_one_that_waits_for_nothing_nothing() -> None:
    assert why_waiting(MINE, HostList((), (), awaited(1, 1)), NAMES, 0) == (
        "waiting for 2 slots: no TaskManager process is registered; start one with `understudy taskmanager`"
    )
    assert why_waiting(OTHER, HostList((), (), awaited(1)), NAMES, 0) == ""


def test_what_all_named_processes_together_cannot_hold_is_refused_with_the_numbers() -> None:
    why = too_few(5, 1, HostList((host("a", 2, other=2),)), 2, 2)
    assert why.startswith(
        "needs 5 slots (5 TaskManagers), and the cluster has 4: cluster.workers names 2 processes, so more never come. "
        "Lower the parallelism; or raise taskmanager.slots or name more hosts in cluster.workers"
    )
    why = too_few(1, 3, HostList((host("a", 2), host("b", 2))), 2, 2)
    assert why.startswith("needs 3 slots (1 TaskManager of 3), and the cluster has 4: a TaskManager's slots are on one")
    assert "these have 2, 2." in why


@pytest.mark.parametrize(
    ("processes", "hosts", "workers"),
    [
        (4, (host("a", 2, other=2),), 2),  # the other one still starts
        (9, (), 0),  # any number may come
        (6, (host("a", 2), host("b", 2), host("c", 2)), 2),  # one more was started by hand
        (1, (), 1),
    ],
)
def test_what_may_come_to_run_is_not_refused(processes: int, hosts: tuple[HostSummary, ...], workers: int) -> None:
    assert too_few(processes, 1, HostList(hosts), workers, 2) == ""
