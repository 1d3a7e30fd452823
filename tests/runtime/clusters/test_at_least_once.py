"""The two modes on real processes: the same job, the same SIGKILL; only the one without alignment repeats records."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from understudy import LocalCluster, StreamEnvironment
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.messages import CheckpointId

from .jobs import WAIT_S, Gate, GatedGenerator, Witness, environment, generated

COUNT, RATE = 1_500, 1_000
NUMBERS = Counter([*range(COUNT), *range(-COUNT, 0)])


class Slow(Operator):
    """Its barriers go on long after those of whoever does not dawdle."""

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        out.emit(batch)

    def before_barrier(self, checkpoint_id: CheckpointId, out: Collector) -> None:
        time.sleep(0.1)


def two_ways(mode: str, gate: Gate) -> StreamEnvironment:
    """Two sources whose records meet in one task; between the second one and that task stands Slow."""
    env = environment(mode=mode, parallelism=1)
    straight = generated(env, COUNT, RATE, gate, "straight")
    source = GatedGenerator(gate, lambda index: -index - 1, COUNT, RATE)
    detour = env.from_source(source, name="detour", slot_sharing_group="detour").process(Slow, name="slow")
    straight.union(detour).map(lambda number: number, name="both").collect(name="all")
    return env


def survived(cluster: LocalCluster, mode: str, folder: Path) -> Counter[int]:
    folder.mkdir()
    gate = Gate(folder)
    job = cluster.submit(two_ways(mode, gate))
    witness = Witness(job)
    witness.checkpoints(3)
    witness.kill(witness.pids(2)[0])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    return Counter(job.results("all"))


@pytest.mark.chaos
def test_after_a_kill_at_least_once_repeats_what_exactly_once_does_not(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    repeated = survived(shared_cluster, "at-least-once", tmp_path / "at-least-once")
    assert not NUMBERS - repeated, "nothing is lost"
    assert set(repeated) == set(NUMBERS), "and nothing is made up"
    assert repeated.total() > NUMBERS.total()
    assert survived(shared_cluster, "exactly-once", tmp_path / "exactly-once") == NUMBERS
