"""What each mode promises, shown by histories that differ in nothing but the mode. See docs/failures.md."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from understudy import StreamEnvironment, fixed_delay
from understudy.runtime.connectors import CollectionSource
from understudy.testing import KillProcess, SimulatedCluster, SlowLink

RECORDS = 60
MODES = ("exactly-once", "at-least-once")
LATE_BARRIERS = [SlowLink(at_ms=1_000, for_ms=60_000, one=one, other=1 - one, extra_latency_ms=700) for one in range(2)]
"""What one TaskManager sends to the other is late: of a checkpoint's barriers the one comes long before the other."""


def two_sources(mode: str) -> StreamEnvironment:
    """Each on a TaskManager of its own; what they send meets in one task, beside the first of them."""
    env = StreamEnvironment(
        parallelism=1, mode=mode, checkpoint_interval_ms=2_000, restart_strategy=fixed_delay(50, delay_ms=300)
    )
    near = env.from_collection(range(RECORDS), records_per_second=6, name="near")
    numbers = CollectionSource(range(RECORDS, 2 * RECORDS), records_per_second=6)
    far = env.from_source(numbers, name="far", slot_sharing_group="far")
    near.union(far).map(lambda number: number, name="both").collect(name="out")
    return env


def committed(mode: str, seed: int, *faults: Any) -> Counter[int]:
    with SimulatedCluster(task_managers=2, seed=seed, faults=[*LATE_BARRIERS, *faults]) as cluster:
        job = cluster.submit(two_sources(mode))
        assert job.wait().restarts == len(faults)
        return Counter(job.results("out"))


@pytest.mark.parametrize("seed", range(8))
def test_after_a_kill_at_least_once_repeats_what_exactly_once_does_not(seed: int) -> None:
    kill = KillProcess(at_ms=7_100.0, who=seed % 2)
    exact, repeated = (committed(mode, seed, kill) for mode in MODES)
    wanted = Counter(range(2 * RECORDS))
    assert exact == wanted
    assert not wanted - repeated, "nothing is lost"
    assert set(repeated) == set(wanted), "and nothing is made up"
    assert repeated.total() > wanted.total()


@pytest.mark.parametrize("mode", MODES)
def test_without_a_failure_nothing_is_repeated(mode: str) -> None:
    assert committed(mode, 0) == Counter(range(2 * RECORDS))
