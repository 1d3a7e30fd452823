"""A record in flight that always fails ends its job, although checkpoints complete; a service that is down does not."""

from __future__ import annotations

import asyncio

import pytest

from understudy import JobFailed, JobStatus, Operator, StreamEnvironment, fixed_delay
from understudy.actors.operators.collector import Collector
from understudy.runtime.simulation.world.cluster import SimulatedCluster


class Asking(Operator):
    """A record is answered after a while, but the poison; `is_down`: no record is."""

    def __init__(self, error: type[Exception] | None, *, is_down: bool = False) -> None:
        self._error = error
        self._is_down = is_down

    async def process(self, record: int, out: Collector) -> None:
        if record == 7 or self._is_down:
            await asyncio.sleep(3 if self._error else 3600)
            raise self._error("no")
        await asyncio.sleep(0.5)
        out.collect(record)


def asking(error: type[Exception] | None, *, is_down: bool = False) -> StreamEnvironment:
    """Several checkpoints complete before the poison fails."""
    env = StreamEnvironment(checkpoint_interval_ms=500, restart_strategy=fixed_delay(1_000, delay_ms=100))
    records = env.from_collection(list(range(400)), records_per_second=10)
    asked = records.process(Asking(error, is_down=is_down), name="ask").async_settings(timeout_ms=5_000)
    asked.collect(name="out")
    return env


@pytest.mark.parametrize(
    ("error", "shown"), [(ValueError, "ValueError: no"), (ConnectionError, "ConnectionError"), (None, "CallTimedOut")]
)
def test_a_record_that_always_fails_ends_the_job(error: type[Exception] | None, shown: str) -> None:
    with SimulatedCluster(1, seed=3) as cluster:
        job = cluster.submit(asking(error))
        with pytest.raises(JobFailed) as failed:
            job.wait(timeout=600)
    assert "failed 5 times" in str(failed.value)
    assert "its record was in flight in the checkpoints in between" in str(failed.value)
    assert shown in str(failed.value)


def test_a_service_that_is_down_ends_no_job() -> None:
    """No record is answered, so none of them is to blame."""
    with SimulatedCluster(1, seed=3) as cluster:
        job = cluster.submit(asking(ConnectionError, is_down=True))
        cluster.run_for(60_000)
        assert job.status in (JobStatus.RUNNING, JobStatus.RESTARTING)
        assert job.details().restarts > 10
