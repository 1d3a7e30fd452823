"""A leader dies, and its TaskManagers run on: the next leader goes on with the job as it is, or starts it again; exact.

On virtual time: TaskManagers that outlive their leaders, as on hosts of their own (docs/cluster.md).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from understudy import (
    ActorDead,
    AsyncSettings,
    Collector,
    FileSink,
    JobCanceled,
    JobHandle,
    JobLost,
    Operator,
    StreamEnvironment,
)
from understudy.actors.job_manager.job_manager_settings import ADOPTION_TIMEOUT_MS
from understudy.messages import JobStatus, LeaderSessionMessage, SubmitTask
from understudy.runtime.simulation.world.led_cluster import LedCluster

from .deaths import driver, outlive_deaths
from .test_led_cluster import SESSION_MS, Announced, is_kept, led_cluster, seeds, start
from .test_resume import DURATION_MS, EXPECTED, KEYS, OUT, RECORDS, Counting, published

ALONE_MS = 40_000


def cluster_of(seed: int, **settings: Any) -> LedCluster:
    return led_cluster(seed, **({"alone_ms": ALONE_MS} | settings))


def attempts(cluster: LedCluster, job: JobHandle) -> set[str]:
    """Those that run, once each TaskManager has said so."""
    cluster.run_for(1_500)
    found = {task.attempt_id for task in job.details().tasks}
    assert found
    return found


def take_over(cluster: LedCluster) -> JobHandle:
    driver(cluster).kill("kill -9")
    cluster.take_over()
    job = start(cluster)
    job.ready().result()
    return job


def deployed(cluster: LedCluster) -> list[str]:
    """The sessions of leaders that have started tasks, once for each task."""
    return [
        message.leader_session_id
        for *_, details in cluster.trace.entries
        for message in details
        if isinstance(message, LeaderSessionMessage) and isinstance(message.message, SubmitTask)
    ]


@seeds(5)
def test_no_task_restarts_however_often_the_leader_dies(seed: int) -> None:
    """Ids of checkpoints increase over all leaders, and the output is exact."""
    chance, announced = random.Random(seed), Announced()
    with cluster_of(seed, session_timeout_ms=1_500) as cluster:
        job = announced.of(start(cluster))
        job.ready().result()
        running = attempts(cluster, job)
        for _ in range(3):
            cluster.run_for(chance.uniform(0, 700))
            job = announced.of(take_over(cluster))
            assert attempts(cluster, job) == running
            assert job.details().restarts == 0
            assert job.checkpoint_history().restored_checkpoint_id in (0, None)
        assert job.wait().status is JobStatus.FINISHED
        assert published(cluster) == EXPECTED
        assert announced.ids == sorted(set(announced.ids))
        assert not cluster.probes.violations


@pytest.mark.parametrize("seed", [19, 23, 58])
def test_who_asks_before_the_leader_has_begun_with_its_job_is_not_refused(seed: int) -> None:
    """Histories in which a TaskManager finds the leader while that still reads what earlier ones have kept."""
    test_no_task_restarts_however_often_the_leader_dies(seed)


@seeds(10)
def test_the_leader_may_die_between_any_two_of_its_operations(seed: int) -> None:
    chance = random.Random(seed)
    with cluster_of(seed) as cluster:

        def again() -> JobHandle | None:
            cluster.take_over()
            return start(cluster) if is_kept(cluster) else None

        outlive_deaths(cluster, start(cluster), chance, DURATION_MS / 2, again)
        assert published(cluster) == EXPECTED
        assert not cluster.probes.violations


@seeds(5)
def test_a_taskmanager_that_dies_too_makes_the_job_start_again(seed: int) -> None:
    """Before its leader, with it, or while nobody leads."""
    chance = random.Random(seed)
    with cluster_of(seed) as cluster:
        job = start(cluster)
        job.ready().result()
        running = attempts(cluster, job)
        victim = cluster.process(chance.randint(0, 1))
        assert victim is not None
        driver(cluster).kill("kill -9")
        cluster.run_for(chance.choice((0, 10, 1_000, SESSION_MS / 2)))
        victim.kill("kill -9")
        cluster.take_over()
        job = start(cluster)
        job.ready().result()
        assert not attempts(cluster, job) & running
        job.wait()
        assert published(cluster) == EXPECTED
        assert not cluster.probes.violations


@seeds(5)
def test_one_that_dies_later_costs_a_restart_and_nothing_else(seed: int) -> None:
    """What the next leader has adopted it knows as well as what it has deployed."""
    chance = random.Random(seed)
    with cluster_of(seed) as cluster:
        start(cluster).ready().result()
        cluster.run_for(chance.uniform(0, 3_000))
        job = take_over(cluster)
        cluster.run_for(chance.uniform(0, 1_500))
        victim = cluster.process(chance.randint(0, 1))
        assert victim is not None
        victim.kill("kill -9")
        assert job.wait().restarts == 1
        assert published(cluster) == EXPECTED
        assert not cluster.probes.violations


@seeds(6)
def test_one_that_stands_still_meanwhile_is_not_waited_for_for_ever_and_is_refused_when_it_is_back(seed: int) -> None:
    chance = random.Random(seed)
    with cluster_of(seed) as cluster:
        start(cluster).ready().result()
        cluster.run_for(chance.uniform(500, 3_000))
        still = cluster.process(chance.randint(0, 1))
        assert still is not None
        still.freeze()
        driver(cluster).kill("kill -9")
        cluster.take_over()
        job = start(cluster)
        cluster.run_for(chance.uniform(0, 2 * ADOPTION_TIMEOUT_MS))
        still.thaw()
        job.wait()
        cluster.run_for(ALONE_MS + 10_000)
        assert not still.is_alive
        assert published(cluster) == EXPECTED
        assert not cluster.probes.violations


@seeds(6)
def test_a_leader_that_wakes_after_another_one_has_adopted_its_job_orders_nothing(seed: int) -> None:
    chance = random.Random(seed)
    with cluster_of(seed) as cluster:
        first = start(cluster)
        first.ready().result()
        running = attempts(cluster, first)
        frozen = driver(cluster)
        frozen.freeze()
        cluster.take_over(host="another")
        second = start(cluster)
        second.ready().result()
        assert attempts(cluster, second) == running
        frozen.thaw()
        assert second.wait().restarts == 0
        cluster.run_for(30_000)
        assert published(cluster) == EXPECTED
        with pytest.raises((JobLost, ActorDead)):
            first.wait(timeout=chance.uniform(1, 5))
        assert not cluster.probes.violations


@seeds(3)
def test_data_that_ends_while_nobody_leads_is_committed_by_the_next_leader(seed: int) -> None:
    """That it has ended was said to nobody."""
    with cluster_of(seed) as cluster:
        job = start(cluster)
        job.ready().result()
        cluster.run_for(DURATION_MS - 2_000 - SESSION_MS / 2)
        driver(cluster).kill("kill -9")
        cluster.take_over()
        job = start(cluster)
        assert job.wait().restarts == 0
        assert len(set(deployed(cluster))) <= 1
        assert published(cluster) == EXPECTED


@seeds(3)
def test_tasks_that_are_alone_for_too_long_end_and_start_again_under_the_next_leader(seed: int) -> None:
    """Somebody else may have been given their work."""
    with cluster_of(seed, alone_ms=2_000) as cluster:
        start(cluster).ready().result()
        cluster.run_for(2_000)
        driver(cluster).kill("kill -9")
        workers = [cluster.process(index) for index in range(2)]
        cluster.run_for(5_000)
        assert not any(worker is not None and worker.is_alive for worker in workers)
        cluster.take_over()
        start(cluster).wait()
        assert published(cluster) == EXPECTED


@seeds(4)
def test_what_a_user_wants_of_a_job_that_nobody_has_decided_about_is_answered(seed: int) -> None:
    """A cancellation ends it, and what runs of it is refused; a savepoint is refused by name."""
    with cluster_of(seed) as cluster:
        start(cluster).ready().result()
        cluster.run_for(2_000)
        worker = cluster.process(0)
        assert worker is not None
        worker.freeze()
        driver(cluster).kill("kill -9")
        cluster.take_over()
        job = start(cluster)
        job.cancel()
        with pytest.raises(JobCanceled):
            job.wait()
        worker.thaw()
        cluster.run_for(60_000)
        assert not [process for process in cluster.processes() if process.name.startswith("tm-")]


def asking(record: int) -> int:
    return record


class Calling(Operator):
    async_settings = AsyncSettings(rate_per_second=6.0, max_in_flight=8)

    async def process(self, record: int, out: Collector) -> None:
        await asyncio.sleep(0.4)
        out.collect(record)


def rated() -> StreamEnvironment:
    """Calls that wait for permits of the JobManager, and for their answers."""
    env = StreamEnvironment(
        parallelism=2, checkpoint_interval_ms=700, checkpoint_dir="sim://service/checkpoints", max_parallelism=16
    )
    numbers = env.generate(asking, RECORDS, records_per_second=RECORDS, name="numbers")
    called = numbers.process(Calling, name="call")
    called.key_by(lambda index: index % KEYS).process(Counting, name="count").sink_to(FileSink(OUT, "jsonl"))
    return env


def unaligned() -> StreamEnvironment:
    env = StreamEnvironment(
        parallelism=2,
        checkpoint_interval_ms=700,
        checkpoint_dir="sim://service/checkpoints",
        alignment_timeout_ms=0,
        incremental_checkpoints=True,
        max_concurrent_checkpoints=2,
    )
    numbers = env.generate(asking, RECORDS, records_per_second=5.0, name="numbers")
    numbers.key_by(lambda index: index % KEYS).process(Counting, name="count").sink_to(FileSink(OUT, "jsonl"))
    return env


@pytest.mark.parametrize("build", [rated, unaligned])
@seeds(4, 40)
def test_permits_calls_in_flight_and_checkpoints_under_way_go_on(
    seed: int, build: Callable[[], StreamEnvironment]
) -> None:
    chance = random.Random(seed)
    with cluster_of(seed) as cluster:
        cluster.submit(build(), "service").ready().result()
        for _ in range(2):
            cluster.run_for(chance.uniform(0, 2_000))
            driver(cluster).die_after(chance.randint(1, 30))
            cluster.run_for(500)
            driver(cluster).kill("kill -9")
            cluster.take_over()
            if not is_kept(cluster):
                break
            job = cluster.submit(build(), "service")
            job.ready().result()
        else:
            job.wait()
        found = published(cluster)
        assert sorted(index for _, _, index in found) == list(range(RECORDS))
        assert not cluster.probes.violations


@seeds(3)
def test_readers_of_an_outlet_go_on_under_the_next_leader(seed: int) -> None:
    def program() -> StreamEnvironment:
        env = StreamEnvironment(checkpoint_interval_ms=700, checkpoint_dir="sim://service/checkpoints")
        numbers = env.generate(asking, RECORDS, records_per_second=5.0, parallelism=1, name="numbers")
        numbers.to_outlet("out")
        return env

    with cluster_of(seed) as cluster:
        job = cluster.submit(program(), "service")
        found: list[int] = []
        cursor: str | None = None
        for batch in job.outlet("out"):
            found += list(batch)
            cursor = batch.cursor
            if len(found) > 10:
                break
        driver(cluster).kill("kill -9")
        cluster.take_over()
        job = cluster.submit(program(), "service")
        for batch in job.outlet("out", after=cursor):
            found += list(batch)
        assert found == list(range(RECORDS))
        assert job.wait().restarts == 0
        assert len(set(deployed(cluster))) <= 1
