"""What a running job says about itself, on real processes: who is slow is seen, by samples and by clocks alike."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from understudy import JobHandle, KeyedOperator, LocalCluster, NotRunning, StreamEnvironment
from understudy.messages import RequestThreadDump, VertexBackPressureReport
from understudy.runtime.api.errors import InvalidSetting

from .jobs import WAIT_S, environment, eventually


class Measured(KeyedOperator):
    """Slow, if it is to be, and it measures itself."""

    def __init__(self, pause_s: float) -> None:
        self._pause_s = pause_s

    def open(self) -> None:
        self._seen = self.metrics.counter("seen")
        self._sizes = self.metrics.histogram("sizes")
        self.metrics.gauge("pause", lambda: self._pause_s)

    def process(self, record: int, out: Any) -> None:
        self._seen.inc()
        self._sizes.update(record % 10)
        if self._pause_s:
            time.sleep(self._pause_s)
        out.collect(record)


def program(pause_s: float, **source: Any) -> StreamEnvironment:
    env = environment(checkpoint_interval_ms=200, batch_rows=20, slow_step_ms=None)
    numbers = env.generate(lambda index: index, name="source", **source)
    measured = numbers.key_by(lambda number: number % 24).process(Measured(pause_s), name="measured")
    measured.key_by(lambda number: number % 24).process(Measured(0), name="behind").filter(lambda _: False).print()
    return env


async def pressures(job: JobHandle) -> list[VertexBackPressureReport]:
    """Of all vertices, sampled at the same time."""
    return await asyncio.gather(*(job.back_pressure_async(name) for name in ("source", "measured", "behind")))


def test_a_slow_operator_is_seen_by_samples_and_by_clocks(shared_cluster: LocalCluster) -> None:
    """Upstream HIGH, the culprit OK and busy, behind it OK and idle. Its tasks share threads with the others."""
    job = shared_cluster.submit(program(pause_s=0.005), "slow one")
    job.ready().result(timeout=WAIT_S)
    source, culprit, behind = asyncio.run(pressures(job))
    assert (source.level, culprit.level, behind.level) == ("high", "ok", "ok")
    assert [each.status for each in (source, culprit, behind)] == ["ok"] * 3
    metrics = job.metrics()
    held, busy = (f"{name}TimeMsPerSecond" for name in ("backPressured", "busy"))
    assert metrics.vertex("source").values[held] > 500
    assert metrics.vertex("measured").values[busy] > 500 > metrics.vertex("measured").values[held]
    assert metrics.vertex("behind").values[busy] < 500
    graph = job.flame_graph("measured", kind="on_cpu")
    user = [frame for frame in graph.frames if frame.kind == "user"]
    assert {frame.function for frame in user} == {"Measured.process"}
    assert graph.samples >= 100
    held_back = "(held back by its outputs)"  # at a loaded machine's start its first wait, for input, is the longer one
    eventually(lambda: job.flame_graph("source", kind="off_cpu").frames[0].function == held_back, held_back)
    eventually(lambda: "measured.pause" in job.metrics().vertices[1].subtasks[0].values, "a gauge that was read")
    job.cancel()


def test_without_a_slow_operator_all_is_ok_and_figures_of_users_arrive(shared_cluster: LocalCluster) -> None:
    job = shared_cluster.submit(program(pause_s=0, records_per_second=500), "quick one")
    job.ready().result(timeout=WAIT_S)
    assert [report.level for report in asyncio.run(pressures(job))] == ["ok"] * 3
    eventually(lambda: "lastCheckpointDuration" in job.metrics().values, "a checkpoint")
    metrics = job.metrics()
    measured = metrics.vertex("measured")
    assert measured.parallelism == len(measured.subtasks) == 2
    assert measured.values["measured.seen"] > 0
    assert measured.kinds == {"measured.seen": "counter", "measured.sizes": "histogram", "measured.pause": "gauge"}
    values = measured.subtasks[0].values
    assert (values["measured.pause"], values["measured.sizes_max"]) == (0, 9)
    assert 0 < values["numRecordsInPerSecond"] < 5_000
    assert values["numBytesInPerSecond"] > 0
    assert values["measured.stateSize"] >= 0
    assert metrics.values["numberOfCompletedCheckpoints"] > 0
    assert metrics.values["numRestarts"] == 0
    cluster = shared_cluster.metrics()
    assert cluster.job(job.job_id).name == "quick one"
    process = next(each for each in cluster.task_managers if each.job_id == job.job_id)
    assert process.values["Status.Process.Memory.Used"] > 1_000_000
    job.cancel()
    job.request_details().result(timeout=WAIT_S)


def test_threads_of_a_task_manager_and_of_the_job_manager_are_seen_from_outside(shared_cluster: LocalCluster) -> None:
    job = shared_cluster.submit(program(pause_s=0.2, records_per_second=500), "dumped")
    job.ready().result(timeout=WAIT_S)

    def dump(where: Any) -> dict[str, str]:
        found = shared_cluster.ask_job_manager(RequestThreadDump(where)).result(timeout=WAIT_S)
        return {each.name: each.stack for each in found.threads}

    def is_seen() -> bool:
        workers = [each.task_manager_id for each in shared_cluster.metrics().task_managers if each.job_id == job.job_id]
        return any("time.sleep(self._pause_s)" in stack for each in workers for stack in dump(each).values())

    eventually(is_seen, "the line that the operator is in")
    assert any("in dump" in stack for stack in dump(None).values())
    with pytest.raises(ValueError, match="no TaskManager 'tm-x' here"):
        dump("tm-x")
    job.cancel()
    job.request_details().result(timeout=WAIT_S)


def test_what_is_asked_wrongly_is_said_so(shared_cluster: LocalCluster) -> None:
    job = shared_cluster.submit(program(pause_s=0, records_per_second=10), "asked")
    job.ready().result(timeout=WAIT_S)
    with pytest.raises(NotRunning, match=r"^'sauce': job 'asked' has no such vertex or operator; it has 'source'"):
        job.back_pressure("sauce")
    with pytest.raises(InvalidSetting, match="kind must be one of 'full', 'on_cpu', 'off_cpu', found 'cpu'"):
        job.flame_graph("source", kind="cpu")  # type: ignore[arg-type]
    with pytest.raises(LookupError, match=r"^job 'asked' has no vertex or operator 'sauce'; its vertices: 'source"):
        job.metrics().vertex("sauce")
    assert job.back_pressure("source", wait=False).level == ""
    job.cancel()
