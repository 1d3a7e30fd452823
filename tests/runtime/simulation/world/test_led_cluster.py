"""A JobManager dies, stands still or is cut off, and its understudy goes on: exact in the end, whenever it was.

On virtual time: real JobManagers one after the other, and beside each other, with the HighAvailability of
reality, over a simulated ZooKeeper and one simulated disk.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from understudy import ActorDead, CheckpointCompleted, FirstBatchProcessed, JobHandle, JobLost
from understudy.messages import JobStatus
from understudy.runtime.simulation.world.led_cluster import LedCluster

from .deaths import driver, outlive_deaths
from .test_resume import DURATION_MS, EXPECTED, environment, published

SESSION_MS = 6_000


def seeds(few: int, many: int = 100) -> Any:
    """All that there are is for `make slow`."""
    return pytest.mark.parametrize(
        "seed", [*range(few), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, many))]
    )


def led_cluster(seed: int, **settings: Any) -> LedCluster:
    chosen = {"heartbeat_interval_ms": 500, "heartbeat_timeout_ms": 3_000, "session_timeout_ms": SESSION_MS}
    return LedCluster(2, seed=seed, **(chosen | settings))


class Announced:
    """The checkpoints of all leaders, as their listeners have heard of them."""

    def __init__(self) -> None:
        self.ids: list[int] = []

    def of(self, job: JobHandle) -> JobHandle:
        job.on_event(self._heard)
        return job

    def _heard(self, event: object) -> None:
        if isinstance(event, CheckpointCompleted):
            self.ids.append(event.checkpoint_id)


def start(cluster: LedCluster, **settings: Any) -> JobHandle:
    return cluster.submit(environment(**settings), "service")


def is_kept(cluster: LedCluster) -> bool:
    return bool(cluster.zookeeper.records)


class Numbers:
    """Of the attempts that have begun to work, as the listeners of one leader have heard of them."""

    def __init__(self, job: JobHandle) -> None:
        self.found: set[int] = set()
        job.on_event(self._heard)

    def _heard(self, event: object) -> None:
        if isinstance(event, FirstBatchProcessed):
            self.found.add(event.attempt_number)


def in_progress(cluster: LedCluster) -> list[str]:
    """Hidden files of the output."""
    return [path for path, _ in cluster.disk.files() if "/.understudy-" in path and "-owner/" not in path]


@seeds(10)
def test_a_leader_that_is_killed_again_and_again_is_followed_and_the_output_is_exact(seed: int) -> None:
    """Killed between any two of its operations, also in the middle of a write to ZooKeeper. No checkpoint id is used
    twice, and none that was announced is lost.
    """
    chance, announced = random.Random(seed), Announced()
    with led_cluster(seed) as cluster:

        def again() -> JobHandle | None:
            newest = max(announced.ids, default=0)
            cluster.take_over()
            if not is_kept(cluster):  # it had ended
                return None
            job = announced.of(start(cluster))
            job.ready().result()
            assert job.checkpoint_history().restored_checkpoint_id >= newest
            return job

        outlive_deaths(cluster, announced.of(start(cluster)), chance, DURATION_MS / 2, again)
        assert published(cluster) == EXPECTED
        assert announced.ids == sorted(set(announced.ids))
        assert not cluster.probes.violations


@seeds(3, 20)
def test_a_takeover_leaves_no_earlier_attempt_and_counts_no_restart(seed: int) -> None:
    """Where TaskManagers end with their leader, what the next one knows cannot disagree with what runs (decision 42).
    Those that outlive it: `test_adopted_jobs`.
    """
    with led_cluster(seed) as cluster:
        attempts: set[str] = set()
        for _ in range(3):
            job = start(cluster)
            job.ready().result()
            cluster.run_for(2_000)
            details = job.details()
            found = {task.attempt_id for task in details.tasks}
            assert found
            assert not found & attempts
            assert details.restarts == 0
            attempts |= found
            driver(cluster).kill("kill -9")
            cluster.take_over()
        start(cluster).wait()
        assert published(cluster) == EXPECTED
        assert not cluster.probes.violations


@seeds(6)
def test_a_leader_that_wakes_after_another_has_begun_writes_nothing(seed: int) -> None:
    """Frozen at any moment, or between two operations; its TaskManagers too, or not."""
    chance = random.Random(seed)
    with led_cluster(seed, heartbeat_timeout_ms=chance.choice((3_000, 60_000))) as cluster:
        first = start(cluster)
        cluster.run_for(chance.uniform(1_000, DURATION_MS * 0.6))
        frozen = driver(cluster)
        standing = list(cluster.processes()) if chance.random() < 0.5 else [frozen]
        for process in standing:
            process.freeze()
        cluster.take_over(host="another")
        second = start(cluster)
        cluster.run_for(chance.uniform(0, 2 * SESSION_MS))
        for process in standing:
            process.thaw()
        second.wait()
        cluster.run_for(30_000)
        assert published(cluster) == EXPECTED
        assert not cluster.leaderships[0].is_sure
        with pytest.raises((JobLost, ActorDead)):
            first.wait(timeout=5)
        assert not cluster.probes.violations


@seeds(6)
def test_an_attempt_of_an_earlier_leader_that_ends_late_removes_nothing_of_the_next_one(seed: int) -> None:
    """Its job had restarted. Its TaskManagers wake, and end, when those of the next leader have begun to write."""
    chance = random.Random(seed)
    with led_cluster(seed) as cluster:
        job = start(cluster)
        earlier = Numbers(job)
        for _ in range(chance.randint(1, 2)):
            job.ready().result()
            cluster.run_for(chance.uniform(0, 1_000))
            cluster.process(0).kill("kill -9")
            cluster.run_until(lambda job=job: job.status is not JobStatus.RUNNING, 10.0)
        job.ready().result()
        cluster.run_for(2_000)
        assert max(earlier.found) > 0
        standing = list(cluster.processes())
        for process in standing:
            process.freeze()
        cluster.take_over(host="another")
        job = start(cluster)
        later = Numbers(job)
        job.ready().result()
        cluster.run_for(chance.uniform(0, 2_000))
        for process in standing:
            process.thaw()
        finished = job.wait()
        assert (finished.status, finished.restarts) == (JobStatus.FINISHED, 0)
        assert min(later.found) > max(earlier.found)
        cluster.run_for(30_000)
        assert published(cluster) == EXPECTED
        assert not cluster.probes.violations


@seeds(4)
def test_what_a_dead_leaders_attempts_left_in_progress_goes(seed: int) -> None:
    chance = random.Random(seed)
    with led_cluster(seed) as cluster:
        start(cluster, checkpoint_interval_ms=3_000).ready().result()
        cluster.run_for(chance.uniform(1_500, DURATION_MS / 2))
        assert cluster.run_until(lambda: bool(in_progress(cluster))), "there is no moment with a file in progress"
        for process in [driver(cluster), *cluster.processes()]:
            process.kill("kill -9")
        cluster.take_over()
        job = start(cluster)
        assert job.wait().status is JobStatus.FINISHED
        assert in_progress(cluster) == []
        assert published(cluster) == EXPECTED


@seeds(8)
def test_so_it_is_with_one_that_was_frozen_between_two_writes(seed: int) -> None:
    chance = random.Random(seed)
    with led_cluster(seed) as cluster:
        start(cluster)
        cluster.run_for(chance.uniform(1_000, DURATION_MS * 0.6))
        frozen, successors = driver(cluster), []

        def follow() -> None:
            cluster.take_over(host="another")
            successors.append(start(cluster))

        frozen.freeze_after(chance.randint(1, 60), SESSION_MS + chance.uniform(2_000, 9_000))
        frozen.when_frozen(lambda: cluster.world.after(SESSION_MS + 1_000, None, follow))
        assert cluster.run_until(lambda: bool(successors) and not frozen.is_stopped)
        successors[0].wait()
        cluster.run_for(30_000)
        assert published(cluster) == EXPECTED
        assert not cluster.probes.violations


@seeds(4)
def test_a_leader_that_is_cut_off_for_a_moment_goes_on_and_for_longer_steps_down_first(seed: int) -> None:
    chance = random.Random(seed)
    with led_cluster(seed) as cluster:
        first = start(cluster)
        cluster.run_for(chance.uniform(1_000, DURATION_MS * 0.6))
        leader = driver(cluster)
        cluster.zookeeper.cut_off.add(leader)
        assert cluster.run_until(lambda: cluster.zookeeper.is_free)
        assert not cluster.leaderships[0].is_sure
        cluster.take_over(host="another")
        second = start(cluster)
        cluster.zookeeper.cut_off.discard(leader)
        second.wait()
        assert first.status is not JobStatus.FINISHED
        assert published(cluster) == EXPECTED
        assert not cluster.probes.violations


@seeds(1, 5)
def test_so_does_one_that_has_nothing_to_write(seed: int) -> None:
    """It hears of nothing by a write that is refused: its clock alone says that its time is over."""
    with led_cluster(seed) as cluster:
        cluster.run_for(1_000)
        cluster.zookeeper.cut_off.add(driver(cluster))
        assert cluster.leaderships[0].is_sure
        cluster.run_for(SESSION_MS + 1)
        assert cluster.zookeeper.is_free
        assert not cluster.leaderships[0].is_sure


@seeds(2, 10)
def test_one_that_waits_and_is_cut_off_when_its_turn_comes_leads_when_it_is_back(seed: int) -> None:
    """What its watch had to say waits for it."""
    chance = random.Random(seed)
    with led_cluster(seed) as cluster:
        start(cluster)
        waiting = cluster.stand_by(host="another")
        cluster.run_for(chance.uniform(1_000, DURATION_MS * 0.6))
        driver(cluster).kill("kill -9")
        cluster.run_for(SESSION_MS - 1_000)
        cluster.zookeeper.cut_off.add(waiting.process)
        cluster.run_for(chance.uniform(1_500, SESSION_MS - 1_500))
        assert not waiting.leads
        cluster.zookeeper.cut_off.discard(waiting.process)
        cluster.take_over()
        start(cluster).wait()
        assert published(cluster) == EXPECTED
        assert not cluster.probes.violations
