"""A job may run for years: what its JobManager keeps of it does not grow with the checkpoints it takes."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.actors.job_manager import job_manager
from understudy.actors.job_manager.managed_job import ManagedJob
from understudy.runtime.simulation.world.cluster import SimulatedCluster

from ..world.test_cluster import COUNTED, counting


def test_timers_that_have_come_due_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    managed: list[ManagedJob] = []

    class Seen(ManagedJob):
        def __init__(self, *parts: Any) -> None:
            super().__init__(*parts)
            managed.append(self)

    monkeypatch.setattr(job_manager, "ManagedJob", Seen)
    with SimulatedCluster(1) as cluster:
        job = cluster.submit(counting(checkpoint_interval_ms=20), name="counting")
        details = job.wait()
        assert sorted(job.results("out")) == COUNTED
    assert details.completed_checkpoints > 20
    (seen,) = managed
    assert len(seen._timers) < 10
