"""HostTable: where TaskManagers are placed, and that each that was wanted is reported as ended once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest

from understudy.messages import HostedTaskManager, HostId, JobId, LaunchId, RegisterHost
from understudy.runtime.hosts.host_table import Awaits, End, Ended, HostEffect, HostTable, Launch, Release

JOB, OTHER = JobId("job-1"), JobId("job-2")


def registration(name: str, slots: int = 2, number: int = 1, running: Iterable[HostedTaskManager] = ()) -> RegisterHost:
    return RegisterHost(HostId(name), number, f"tcp://{name}:1/host", name, 1, slots, tuple(running))


@pytest.fixture
def table() -> HostTable:
    numbers = itertools.count(1)
    return HostTable(lambda prefix: f"{prefix}-{next(numbers)}")


def launched(effects: list[HostEffect]) -> list[tuple[str, int]]:
    return [(effect.host_id, effect.task_manager.index) for effect in effects if isinstance(effect, Launch)]


def wanted(table: HostTable, *indexes: int, job_id: JobId = JOB, slots: int = 1) -> list[HostEffect]:
    return [effect for index in indexes for effect in table.want(job_id, index, slots)]


def launch_of(table: HostTable, index: int, job_id: JobId = JOB) -> tuple[HostId, LaunchId]:
    return next(
        (host.host_id, each.launch_id)
        for host in table.summaries()
        for each in host.task_managers
        if (each.job_id, each.index) == (job_id, index)
    )


def test_a_job_is_spread_over_hosts_and_then_the_emptiest_is_filled(table: HostTable) -> None:
    for name in ("a", "b"):
        table.register(registration(name, slots=4))
    assert launched(wanted(table, 0, job_id=OTHER)) == [("a", 0)]
    assert launched(wanted(table, 0, 1, 2)) == [("b", 0), ("a", 1), ("b", 2)]
    assert [host.free_slots for host in table.summaries()] == [2, 2]


def test_what_finds_no_slot_waits_says_why_and_is_placed_when_there_is_one(table: HostTable) -> None:
    assert wanted(table, 0) == [
        Awaits(
            JOB, 0, "it needs 1 free slot, and no TaskManager process is here: start one with `understudy taskmanager`"
        )
    ]
    assert launched(table.register(registration("a", slots=1))) == [("a", 0)]
    (awaits,) = wanted(table, 1)
    assert isinstance(awaits, Awaits)
    assert "free are 0 of 1 on a" in awaits.why
    assert table.waiting() == (f"TaskManager 1 of {JOB}: {awaits.why}",)
    assert launched(table.ended(*launch_of(table, 0), "killed")) == [("a", 1)]
    assert table.waiting() == ()


def test_one_that_needs_more_slots_than_there_are_holds_no_other_up(table: HostTable) -> None:
    table.register(registration("a", slots=1))
    wanted(table, 0, slots=2)
    assert launched(wanted(table, 1)) == [("a", 1)]


def test_an_end_is_reported_once(table: HostTable) -> None:
    table.register(registration("a"))
    wanted(table, 0)
    place = launch_of(table, 0)
    assert table.ended(*place, "exited") == [Ended(JOB, 0, "exited")]
    assert table.ended(*place, "exited") == []


def test_a_lost_hosts_taskmanagers_are_reported_and_placed_elsewhere(table: HostTable) -> None:
    for name in ("a", "b"):
        table.register(registration(name))
    wanted(table, 0, 1)
    assert table.lose(HostId("a"), "sent no heartbeat") == [Ended(JOB, 0, "its host a (process 1) sent no heartbeat")]
    assert table.lose(HostId("a"), "again") == []
    assert launched(wanted(table, 0)) == [("b", 0)]


def test_what_runs_on_a_host_that_cannot_be_reached_may_run_on_and_nothing_new_comes(
    table: HostTable,
) -> None:
    table.register(registration("a"))
    wanted(table, 0)
    running = [HostedTaskManager(launch_of(table, 0)[1], JOB, 0, 1)]
    table.unreachable(HostId("a"))
    assert launched(wanted(table, 1)) == []
    assert launched(table.register(registration("a", number=2, running=running))) == [("a", 1)]
    assert {each.index for host in table.summaries() for each in host.task_managers} == {0, 1}


def test_one_that_speaks_again_is_back(table: HostTable) -> None:
    table.register(registration("a"))
    table.unreachable(HostId("a"))
    assert table.heard(HostId("a"))
    assert not table.heard(HostId("a"))
    assert launched(wanted(table, 0)) == [("a", 0)]


def test_a_kill_on_a_host_that_cannot_be_reached_gives_up_at_once_and_is_made_good_later(table: HostTable) -> None:
    table.register(registration("a"))
    table.register(registration("b"))
    wanted(table, 0)
    host_id, launch_id = launch_of(table, 0)
    zombie = HostedTaskManager(launch_id, JOB, 0, 1)
    table.unreachable(host_id)
    why = "given up: process 1 on a, which had started it, cannot be reached"
    assert table.kill(JOB, 0) == [End(host_id, launch_id), Ended(JOB, 0, why)]
    assert launched(wanted(table, 0)) == [("b", 0)]
    assert table.register(registration("a", number=2, running=[zombie])) == [End(host_id, launch_id)]
    assert table.ended(host_id, launch_id, "killed") == [], "it was reported when it was given up"


def test_a_kill_goes_to_the_host_or_ends_the_wait(table: HostTable) -> None:
    wanted(table, 0)
    assert table.kill(JOB, 0) == [Ended(JOB, 0, "it was ended before a host had a free slot for it")]
    assert table.kill(JOB, 0) == []
    table.register(registration("a"))
    wanted(table, 0)
    assert table.kill(JOB, 0) == [End(*launch_of(table, 0))]


def test_a_repeated_registration_changes_nothing(table: HostTable) -> None:
    """It was on its way when the first one was answered, and knows of no start since."""
    table.register(registration("a"))
    wanted(table, 0)
    assert table.register(registration("a")) == []
    assert launch_of(table, 0)[0] == HostId("a")


def test_a_start_that_was_lost_with_the_connection_is_reported(table: HostTable) -> None:
    table.register(registration("a"))
    wanted(table, 0)
    place = launch_of(table, 0)
    assert table.register(registration("a", number=2)) == [End(*place), Ended(JOB, 0, "its host never started it")]


def test_what_has_outlived_a_jobmanager_is_not_started_again(table: HostTable) -> None:
    """A new leader's table: hosts say what they run, before or after it is wanted."""
    old = [HostedTaskManager(LaunchId("old-0"), JOB, 0, 1), HostedTaskManager(LaunchId("old-1"), JOB, 1, 1)]
    wanted(table, 1)
    assert table.register(registration("a", running=old)) == []
    assert wanted(table, 0, 1) == []
    assert table.ended(HostId("a"), LaunchId("old-0"), "exited") == [Ended(JOB, 0, "exited")]


def test_a_job_that_is_over_is_released_where_it_runs_and_waits_no_more(table: HostTable) -> None:
    table.register(registration("a", slots=1))
    table.register(registration("b", slots=0))
    wanted(table, 0, 1)
    assert table.forget(JOB) == [Release(HostId("a"), JOB)]
    assert table.waiting() == ()


# -- what earlier leaders have started


def left(launch_id: str, index: int, job_id: JobId = JOB) -> HostedTaskManager:
    return HostedTaskManager(LaunchId(launch_id), job_id, index, 1)


def test_what_an_earlier_leader_has_started_keeps_its_slots_and_is_not_started_again(table: HostTable) -> None:
    table.register(registration("a", running=[left("old-0", 0), left("old-1", 1)]))
    assert wanted(table, 0, 1) == []
    assert [host.free_slots for host in table.summaries()] == [0]
    assert table.ended(HostId("a"), LaunchId("old-0"), "killed") == [Ended(JOB, 0, "killed")]


def test_what_is_abandoned_is_ended_without_a_report_and_its_slots_are_free(table: HostTable) -> None:
    table.register(registration("a", slots=3, running=[left("old-0", 0), left("old-1", 1), left("other", 0, OTHER)]))
    assert table.abandon(JOB) == [End(HostId("a"), LaunchId("old-0")), End(HostId("a"), LaunchId("old-1"))]
    assert launched(wanted(table, 0, 1)) == [("a", 0), ("a", 1)]
    assert table.ended(HostId("a"), LaunchId("old-0"), "killed") == []
    assert [each.job_id for each in table.summaries()[0].task_managers] == [OTHER, JOB, JOB]


def test_a_host_that_comes_late_ends_what_it_has_of_an_abandoned_job(table: HostTable) -> None:
    table.register(registration("a"))
    table.abandon(JOB)
    wanted(table, 0)
    ours = launch_of(table, 0)[1]
    assert table.register(registration("b", running=[left("old-1", 1)])) == [End(HostId("b"), LaunchId("old-1"))]
    again = registration("a", number=2, running=[left("old-0", 0), left(ours, 0)])
    assert table.register(again) == [End(HostId("a"), LaunchId("old-0"))]
    assert [each.launch_id for each in table.summaries()[0].task_managers] == [ours]


def test_an_index_that_runs_already_is_not_taken_over_from_another_host(table: HostTable) -> None:
    table.register(registration("a"))
    wanted(table, 0)
    assert table.register(registration("b", running=[left("old-0", 0)])) == [End(HostId("b"), LaunchId("old-0"))]
