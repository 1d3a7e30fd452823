"""Outlets of simulated jobs, as their users read them: in virtual time, through kills."""

from __future__ import annotations

import asyncio
from itertools import islice

import pytest

from understudy import LocalCluster, StreamEnvironment, fixed_delay
from understudy.runtime.connectors import OutletSink
from understudy.state.outlets.lineage import OutletLineage
from understudy.testing import KillProcess, SimulatedCluster, assert_exactly_once

RECORDS = 60


def program() -> StreamEnvironment:
    env = StreamEnvironment(checkpoint_interval_ms=1_000, restart_strategy=fixed_delay(100, delay_ms=100))
    numbers = env.from_collection(range(RECORDS), records_per_second=5, parallelism=1)
    numbers.to_outlet("out")
    numbers.collect(name="kept", parallelism=1)
    return env


@pytest.mark.parametrize("seed", range(5))
def test_a_reader_goes_on_from_its_cursor_while_task_managers_die(seed: int) -> None:
    faults = [KillProcess(at_ms=2_500 + 3_000 * number, who=number % 2) for number in range(3)]
    with SimulatedCluster(2, 1, seed=seed, faults=faults) as cluster:
        job = cluster.submit(program())
        found: list[int] = []
        cursor: str | None = None
        while batches := list(islice(job.outlet("out", after=cursor), 2)):
            found += [record for batch in batches for record in batch]
            cursor = batches[-1].cursor
        assert found == list(range(RECORDS)) == job.results("kept")
        assert job.wait().restarts >= 1


def test_a_timeout_is_one_of_virtual_time() -> None:
    with SimulatedCluster(1, 2, seed=1) as cluster:
        outlet = cluster.submit(program()).outlet("out")
        with pytest.raises(TimeoutError, match=r"nothing new for 0\.5 seconds"):
            outlet.read(timeout=0.5)
        assert cluster.now_ms >= 500
        assert outlet.read(timeout=60) is not None


def test_what_was_read_before_is_left_out_of_results() -> None:
    with SimulatedCluster(1, 2, seed=1) as cluster:
        job = cluster.submit(program())
        found: list[int] = []
        while not job.status.is_terminal:
            cluster.run_for(1_500)
            found += job.results("kept", after=len(found))
        found += job.results("kept", after=len(found))
        assert found == list(range(RECORDS))
        with pytest.raises(ValueError, match="after: wanted a number of records"):
            job.results("kept", after=-1)


def test_the_job_in_the_debugger_is_read_in_an_event_loop() -> None:
    async def read() -> list[int]:
        async with LocalCluster(debug=True) as cluster:
            env = StreamEnvironment(checkpoint_interval_ms=50)
            env.from_collection(range(RECORDS), parallelism=1).to_outlet("out")
            job = await cluster.submit_async(env)
            return [record async for batch in job.outlet("out") for record in batch]

    assert asyncio.run(read()) == list(range(RECORDS))


def test_a_trial_looks_at_outlets_and_finds_nothing_wrong_with_their_files() -> None:
    assert_exactly_once(program, histories=5)


def test_a_trial_finds_what_an_outlet_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    restored = OutletSink._restored_lineage

    def forget(self: OutletSink) -> tuple[OutletLineage, int]:
        lineage, end = restored(self)
        return lineage, end // 2

    def only_an_outlet() -> StreamEnvironment:
        env = StreamEnvironment(checkpoint_interval_ms=1_000)
        env.from_collection(range(RECORDS), records_per_second=5, parallelism=1).to_outlet("out")
        return env

    assert_exactly_once(only_an_outlet, histories=10)
    monkeypatch.setattr(OutletSink, "_restored_lineage", forget)
    with pytest.raises(AssertionError, match="out"):
        assert_exactly_once(only_an_outlet, histories=20)
