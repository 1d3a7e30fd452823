"""SimulatedLauncher: one notice per start, whatever becomes of the process; and zombies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from understudy.messages import JobId, TaskManagerExited
from understudy.runtime.clusters.task_manager_process import TaskManagerLaunch
from understudy.runtime.simulation.world.launcher import GRACE_MS, SimulatedLauncher
from understudy.runtime.simulation.world.world import Process, World

JOB = JobId("job-1")


@dataclass
class Launch:
    """As much of a TaskManagerLaunch as the launcher looks at."""

    job_id: JobId


class Launching:
    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.owner = self.world.process("job-manager")
        self.told: list[Any] = []
        self.booted: list[tuple[Process, JobId, int]] = []
        self.cut_off: set[Process] = set()
        self.launcher = SimulatedLauncher(
            self.world,
            self.owner,
            self.told.append,
            lambda process, launch, index: self.booted.append((process, launch.job_id, index)),
            lambda _, process: process in self.cut_off,
        )
        self.prepare(JOB)

    def prepare(self, job_id: JobId) -> None:
        self.launcher.prepare(cast(TaskManagerLaunch, Launch(job_id)))

    def started(self, index: int = 0, job_id: JobId = JOB) -> Process:
        self.launcher.start(job_id, index)
        self.world.run_for(500)
        return self.booted[-1][0]


@pytest.fixture
def launching() -> Launching:
    return Launching()


def test_a_start_takes_some_time(launching: Launching) -> None:
    launching.launcher.start(JOB, 3)
    assert launching.booted == []
    launching.world.run_for(500)
    ((process, job_id, index),) = launching.booted
    assert (job_id, index) == (JOB, 3)
    assert launching.launcher.process_of(3) is process
    assert launching.launcher.process_of(4) is None


def test_an_end_is_told_once(launching: Launching) -> None:
    launching.started().kill("SIGKILL")
    launching.world.run_for(100)
    assert launching.told == [TaskManagerExited(JOB, 0, "SIGKILL")]
    assert launching.launcher.process_of(0) is None


def test_a_kill_ends_it_and_is_told_too(launching: Launching) -> None:
    process = launching.started()
    launching.launcher.kill(JOB, 0)
    launching.world.run_for(100)
    assert not process.is_alive
    assert launching.told == [TaskManagerExited(JOB, 0, "killed by the launcher")]


def test_a_kill_of_one_that_is_just_starting_is_told_and_nothing_starts(launching: Launching) -> None:
    launching.launcher.start(JOB, 0)
    launching.launcher.kill(JOB, 0)
    launching.world.run_for(1_000)
    assert launching.told == [TaskManagerExited(JOB, 0, "killed by the launcher")]
    assert launching.booted == []


def test_a_kill_of_nobody_is_nothing(launching: Launching) -> None:
    launching.launcher.kill(JOB, 0)
    launching.world.run_for(1_000)
    assert launching.told == []


def test_the_next_life_has_another_name_and_the_same_host(launching: Launching) -> None:
    first = launching.started()
    first.kill("SIGKILL")
    launching.world.run_for(100)
    second = launching.started()
    assert second.name != first.name
    assert second.host == first.host


def test_of_two_jobs_each_has_its_own(launching: Launching) -> None:
    other = JobId("job-2")
    launching.prepare(other)
    first, second = launching.started(), launching.started(job_id=other)
    launching.launcher.kill(JOB, 0)
    launching.world.run_for(100)
    assert not first.is_alive
    assert second.is_alive


def test_what_outlives_its_job_is_killed_after_a_grace_period(launching: Launching) -> None:
    process = launching.started()
    launching.launcher.forget(JOB)
    launching.world.run_for(GRACE_MS - 1)
    assert process.is_alive
    launching.world.run_for(100)
    assert not process.is_alive


def test_a_start_under_way_outlives_its_job_by_no_more(launching: Launching) -> None:
    launching.launcher.start(JOB, 0)
    launching.launcher.forget(JOB)
    launching.world.run_for(GRACE_MS + 500)
    assert [process.is_alive for process, _, _ in launching.booted] == [False]


def test_a_dead_job_manager_starts_and_kills_nobody(launching: Launching) -> None:
    process = launching.started()
    launching.launcher.start(JOB, 1)
    launching.launcher.kill(JOB, 0)
    launching.owner.kill("SIGKILL")
    launching.world.run_for(1_000)
    assert process.is_alive
    assert len(launching.booted) == 1


def test_a_frozen_job_manager_hears_of_an_end_when_it_thaws(launching: Launching) -> None:
    process = launching.started()
    launching.owner.freeze()
    process.kill("SIGKILL")
    launching.world.run_for(1_000)
    assert launching.told == []
    launching.owner.thaw()
    launching.world.run_for(10)
    assert launching.told == [TaskManagerExited(JOB, 0, "SIGKILL")]


@pytest.mark.parametrize("how", ["frozen", "cut off"])
def test_out_of_reach_it_may_be_given_up_and_live_on(how: str) -> None:
    fates = set()
    for seed in range(20):
        launching = Launching(seed)
        process = launching.started()
        if how == "frozen":
            process.freeze()
        else:
            launching.cut_off.add(process)
        launching.launcher.kill(JOB, 0)
        launching.world.run_for(100)
        assert len(launching.told) == 1
        fates.add(process.is_alive)
        if process.is_alive:
            successor = launching.started()
            assert successor.host != process.host
            assert launching.launcher.process_of(0) is successor
            process.kill("at last")
            launching.world.run_for(100)
            assert len(launching.told) == 1  # it was reported as ended before
            assert launching.launcher.process_of(0) is successor
    assert fates == {True, False}
