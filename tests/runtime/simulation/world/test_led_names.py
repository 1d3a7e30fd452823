"""Jobs that own their names, and jobs with inlets, whose leader dies or stands still: the next one takes over both.

On virtual time, as `test_led_cluster`.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from understudy import (
    ActorDead,
    AlreadyFinished,
    CheckpointCompleted,
    FileSink,
    InletClosed,
    JobHandle,
    JobLost,
    Sent,
    StreamEnvironment,
)
from understudy.messages import JobStatus
from understudy.runtime.simulation.world.led_cluster import LedCluster

from .deaths import driver, outlive_deaths
from .test_led_cluster import SESSION_MS, is_kept, led_cluster, seeds
from .test_resume import DURATION_MS, EXPECTED, LEASE_MS, OUT, environment, published

ALONE_MS = 40_000


def cluster_of(seed: int, **settings: Any) -> LedCluster:
    return led_cluster(seed, **({"name_lease_ms": LEASE_MS} | settings))


def start(cluster: LedCluster) -> JobHandle:
    return cluster.submit(environment(), "service", resume="latest")


@pytest.mark.parametrize("alone_ms", [0, ALONE_MS])
@seeds(5)
def test_the_leader_of_a_job_that_owns_its_name_may_die_between_any_two_of_its_operations(
    seed: int, alone_ms: int
) -> None:
    chance = random.Random(seed)
    with cluster_of(seed, alone_ms=alone_ms) as cluster:

        def again() -> JobHandle | None:
            cluster.take_over()
            try:
                return start(cluster)
            except AlreadyFinished:
                return None

        outlive_deaths(cluster, start(cluster), chance, DURATION_MS / 2, again)
        assert published(cluster) == EXPECTED
        assert not cluster.probes.violations


@pytest.mark.parametrize("alone_ms", [0, ALONE_MS])
@seeds(6)
def test_a_job_that_was_stopped_goes_on_by_its_name_though_its_leader_died_before_it_said_so(
    seed: int, alone_ms: int
) -> None:
    """As soon as the savepoint is complete, or some operations later: `resume` finds it, whoever has ended the job."""
    chance = random.Random(seed)
    with cluster_of(seed, alone_ms=alone_ms) as cluster:
        job = start(cluster)
        job.ready().result()
        cluster.run_for(chance.uniform(500, DURATION_MS / 2))
        first, operations = driver(cluster), chance.randint(0, 6)

        def heard(event: object) -> None:
            if isinstance(event, CheckpointCompleted) and event.final:
                if operations:
                    first.die_after(operations)
                else:
                    cluster.world.after(0, None, lambda: first.kill("kill -9"))

        job.on_event(heard)
        job.stop_with_savepoint()
        assert cluster.run_until(lambda: not first.is_alive, 60.0) or job.status is JobStatus.FINISHED
        first.kill("kill -9")
        cluster.take_over()
        assert cluster.run_until(lambda: not is_kept(cluster), 60.0), "what was stopped ends"
        cluster.run_for(5_000)  # its files go meanwhile
        cluster._left = {}
        start(cluster).wait()
        assert published(cluster) == EXPECTED
        assert not cluster.probes.violations


@pytest.mark.parametrize("alone_ms", [0, ALONE_MS])
@seeds(6)
def test_what_an_inlet_has_acknowledged_is_processed_whoever_leads(seed: int, alone_ms: int) -> None:
    """A leader that stood still acknowledges nothing when it wakes; TaskManagers stand still with it, or not."""
    chance = random.Random(seed)
    sent: dict[int, Sent] = {}

    def submit(cluster: LedCluster) -> JobHandle:
        env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=3_000, checkpoint_dir="sim://service/checkpoints")
        env.from_inlet("numbers").map(lambda number: {"number": number}).sink_to(FileSink(OUT, "jsonl"))
        return cluster.submit(env, "service")

    def send(job: JobHandle, number: int) -> None:
        try:
            sent[number] = job.inlet("numbers").send(number)
        except (ActorDead, JobLost):
            return

    def is_acknowledged(number: int) -> bool:
        try:
            return sent[number].done() and sent[number].result() > 0
        except InletClosed:
            return False

    with cluster_of(seed, alone_ms=alone_ms, heartbeat_timeout_ms=chance.choice((3_000, 60_000))) as cluster:
        job, numbers = submit(cluster), iter(range(1_000))
        earlier: list[JobHandle] = []
        for turn in range(chance.randint(1, 3)):
            for _ in range(chance.randint(0, 12)):
                send(job, next(numbers))
                cluster.run_for(chance.uniform(0, 900))
            first = driver(cluster)
            if chance.random() < 0.5:
                first.kill("kill -9")
                cluster.take_over()
                job = submit(cluster)
                continue
            standing = list(cluster.processes()) if chance.random() < 0.5 else [first]
            send(job, next(numbers))
            cluster.run_for(chance.uniform(0, 20))
            for process in standing:
                process.freeze()
            cluster.take_over(host=f"another-{turn}")
            earlier.append(job)
            job = submit(cluster)
            cluster.run_for(chance.uniform(0, 2 * SESSION_MS))
            for process in standing:
                process.thaw()
            for _ in range(4):
                send(chance.choice((job, earlier[-1])), next(numbers))
                cluster.run_for(chance.uniform(0, 50))
        send(job, next(numbers))
        cluster.run_for(20_000)
        job.stop_with_savepoint(drain=True).result()
        job.wait()
        found = [number for (number,) in published(cluster)]
        assert len(found) == len(set(found))
        acknowledged = set(filter(is_acknowledged, sent))
        assert acknowledged <= set(found)
        assert acknowledged
