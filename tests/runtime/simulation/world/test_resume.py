"""A service that dies, or stands still, and is started again with `resume="latest"`: exact in the end, whenever it was.

On virtual time: real JobManagers one after the other, and beside each other, on one simulated disk.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from understudy import (
    AlreadyFinished,
    AlreadyRunning,
    FileSink,
    InletClosed,
    JobHandle,
    KeyedOperator,
    Sent,
    StreamEnvironment,
    ValueState,
)
from understudy.actors.operators.collector import Collector
from understudy.messages import JobStatus
from understudy.runtime.simulation.world.cluster import SimulatedCluster

from .deaths import driver, outlive_deaths

RECORDS, KEYS, RATE = 60, 4, 5.0
LEASE_MS = 10_000
OUT = "sim://service/out"
DURATION_MS = RECORDS / RATE * 1000


class Counting(KeyedOperator):
    seen = ValueState(int, default=0)

    def process(self, record: int, out: Collector) -> None:
        self.seen.update(self.seen.value() + 1)
        out.collect({"key": self.key, "number": self.seen.value(), "index": record})


EXPECTED = sorted((index % KEYS, index // KEYS + 1, index) for index in range(RECORDS))


def environment(**settings: Any) -> StreamEnvironment:
    chosen = {"checkpoint_interval_ms": 700, "checkpoint_dir": "sim://service/checkpoints"} | settings
    env = StreamEnvironment(parallelism=2, **chosen)
    numbers = env.generate(lambda index: index, RECORDS, records_per_second=RATE, name="numbers")
    numbers.key_by(lambda index: index % KEYS).process(Counting, name="count").sink_to(FileSink(OUT, "jsonl"))
    return env


def cluster_of(seed: int, **settings: Any) -> SimulatedCluster:
    chosen = {"name_lease_ms": LEASE_MS, "heartbeat_interval_ms": 500, "heartbeat_timeout_ms": 3_000} | settings
    return SimulatedCluster(2, seed=seed, **chosen)


def start(cluster: SimulatedCluster, **settings: Any) -> JobHandle:
    return cluster.submit(environment(**settings), "service", resume="latest")


def published(cluster: SimulatedCluster) -> list[tuple[int, ...]]:
    """What a reader of the output folder sees."""
    files = cluster.disk.contents(OUT.removeprefix("sim:/"))
    visible = [content for name, content in files.items() if not name.startswith(".")]
    return sorted(tuple(json.loads(line).values()) for content in visible for line in content.splitlines())


@pytest.mark.drawn
@pytest.mark.parametrize("seed", range(10))
def test_a_service_that_is_killed_again_and_again_is_exact(seed: int) -> None:
    """Killed between any two of its operations, even in the middle of a claim or of a checkpoint's metadata."""
    chance = random.Random(seed)
    with cluster_of(seed) as cluster:

        def again() -> JobHandle | None:
            cluster.start_again()
            try:
                return start(cluster)
            except AlreadyFinished:
                return None

        outlive_deaths(cluster, start(cluster), chance, DURATION_MS / 2, again)
        assert published(cluster) == EXPECTED
        assert not cluster.probes.violations


@pytest.mark.drawn
@pytest.mark.parametrize("seed", range(10))
def test_an_owner_that_was_frozen_and_wakes_commits_nothing_any_more(seed: int) -> None:
    """Another host takes over when the lease has ended; the one that wakes fails by name, and both are exact."""
    chance = random.Random(seed)
    with cluster_of(seed) as cluster:
        first = start(cluster)
        cluster.run_for(chance.uniform(1_000, DURATION_MS * 0.8))
        driver(cluster).freeze()
        frozen = driver(cluster)
        cluster.start_again(host="another")
        with pytest.raises(AlreadyRunning, match="process 0 "):
            start(cluster)
        cluster.run_for(LEASE_MS + 2_000)
        second = start(cluster)
        cluster.run_for(chance.uniform(0, 6_000))
        frozen.thaw()
        second.wait()
        _is_over_and_exact(cluster, first)


@pytest.mark.drawn
@pytest.mark.parametrize("seed", range(25))
def test_so_does_one_that_was_frozen_between_two_writes(seed: int) -> None:
    """As between a checkpoint's metadata and the word that it is complete."""
    chance = random.Random(seed)
    with cluster_of(seed) as cluster:
        first = start(cluster)
        cluster.run_for(chance.uniform(1_000, DURATION_MS * 0.6))
        frozen, successors = driver(cluster), []

        def take_over() -> None:
            cluster.start_again(host="another")
            successors.append(start(cluster))

        frozen.freeze_after(chance.randint(1, 60), LEASE_MS + chance.uniform(4_000, 9_000))
        frozen.when_frozen(lambda: cluster.world.after(LEASE_MS + 3_000, None, take_over))
        assert cluster.run_until(lambda: bool(successors) and not frozen.is_stopped)
        successors[0].wait()
        _is_over_and_exact(cluster, first)


def _is_over_and_exact(cluster: SimulatedCluster, first: JobHandle) -> None:
    cluster.run_for(30_000)
    assert first.status is JobStatus.FAILED
    assert first._last_details is None or first._last_details.failures[-1].error_type == "LostOwnership"
    assert published(cluster) == EXPECTED
    assert not cluster.probes.violations


@pytest.mark.drawn
@pytest.mark.parametrize("seed", range(10))
def test_what_an_inlet_has_acknowledged_is_processed_whoever_has(seed: int) -> None:
    """By runs that died before a checkpoint; and an owner that has been frozen acknowledges nothing when it wakes."""
    chance = random.Random(seed)
    sent: dict[int, Sent] = {}

    def start_with_inlet(cluster: SimulatedCluster) -> JobHandle:
        env = StreamEnvironment(checkpoint_interval_ms=5_000, checkpoint_dir="sim://service/checkpoints")
        env.from_inlet("numbers").map(lambda number: {"number": number}).sink_to(FileSink(OUT, "jsonl"))
        return cluster.submit(env, "service", resume="latest")

    def send(job: JobHandle, number: int) -> None:
        sent[number] = job.inlet("numbers").send(number)

    def is_acknowledged(number: int) -> bool:
        try:
            return sent[number].done() and sent[number].result() > 0
        except InletClosed:
            return False

    with cluster_of(seed, heartbeat_timeout_ms=chance.choice((3_000, 60_000))) as cluster:
        job, numbers = start_with_inlet(cluster), iter(range(1_000))
        for _ in range(chance.randint(1, 3)):
            for _ in range(chance.randint(0, 12)):
                send(job, next(numbers))
                cluster.run_for(chance.uniform(0, 900))
            driver(cluster).kill("kill -9")
            cluster.start_again()
            job = start_with_inlet(cluster)
        send(job, next(numbers))
        cluster.run_for(chance.uniform(1_000, 8_000))
        first, frozen = job, [driver(cluster)]
        if chance.random() < 0.7:  # a whole machine is paused, with TaskManagers that are ready to go on
            frozen = list(cluster.processes())
        for process in frozen:
            process.freeze()
        cluster.run_for(LEASE_MS + 2_000)
        cluster.start_again(host="another")
        second = start_with_inlet(cluster)
        cluster.run_for(chance.uniform(2_000, 4_000))
        for process in frozen:
            process.thaw()
        for _ in range(5):
            send(first, next(numbers))
            cluster.run_for(chance.uniform(0, 50))
            send(second, next(numbers))
        cluster.run_for(20_000)
        second.stop_with_savepoint(drain=True).result()
        second.wait()
        found = [number for (number,) in published(cluster)]
        acknowledged = list(filter(is_acknowledged, sent))
        assert len(acknowledged) >= 5
        assert len(found) == len(set(found))
        assert set(acknowledged) <= set(found)
