"""A job whose JobManager's process dies again and again, mostly between two of its operations."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from understudy import JobHandle
from understudy.runtime.simulation.world.cluster import SimulatedCluster
from understudy.runtime.simulation.world.faults import JOB_MANAGER


def driver(cluster: SimulatedCluster) -> Any:
    process = cluster.process(JOB_MANAGER)
    assert process is not None
    return process


def outlive_deaths(
    cluster: SimulatedCluster,
    job: JobHandle,
    chance: random.Random,
    at_most_ms: float,
    again: Callable[[], JobHandle | None],
) -> None:
    """The driver dies one to four times, at most `at_most_ms` after one another, and the job that `again` has started
    runs to its end. None of `again` says that the job had ended.
    """
    for _ in range(chance.randint(1, 4)):
        cluster.run_for(chance.uniform(0, at_most_ms))
        process = driver(cluster)
        if chance.random() < 0.8:
            process.die_after(chance.randint(1, 60))
            cluster.run_until(lambda process=process: not process.is_alive, 30.0)
        process.kill("kill -9")
        following = again()
        if following is None:
            return
        job = following
    job.wait()
