"""A slow consumer holds its producers back; memory stays bounded, and control messages get through."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from understudy import JobCanceled, LocalCluster
from understudy.actors.operators.collector import Collector
from understudy.messages import TaskMetrics

from .jobs import WAIT_S, Counting, Gate, Passing, Witness, counted, counting, counts_of, environment, eventually

RECORD = "x" * 1000


class Slow(Passing):
    """Takes ten batches a second."""

    def process_batch(self, batch: Any, out: Collector) -> None:
        time.sleep(0.1)

    def on_receive(self, message: Any) -> Any:
        return message


def of(metrics: tuple[TaskMetrics, ...], name: str) -> list[TaskMetrics]:
    return [task for task in metrics if name in task.vertex_name]


@pytest.mark.parametrize(
    "parallelism",
    [pytest.param(1, id="in-memory-channels", marks=pytest.mark.slow), pytest.param(2, id="channels-over-sockets")],
)
def test_a_slow_sink_bounds_what_a_fast_source_makes(shared_cluster: LocalCluster, parallelism: int) -> None:
    """The source could make millions of records a second, of a kilobyte each."""
    env = environment(batch_rows=100)
    source = env.generate(lambda index: f"{index}{RECORD}", name="fast", parallelism=parallelism)
    source.rebalance().process(Slow, name="slow", parallelism=parallelism).collect(name="all", parallelism=parallelism)
    job = shared_cluster.submit(env)
    witness = Witness(job)
    pids = witness.pids(2).values()
    eventually(lambda: sum(task.backpressured_ms for task in of(job.details().tasks, "fast")) > 0, "back-pressure")
    before = sum(psutil.Process(pid).memory_info().rss for pid in pids)
    made = sum(task.records_in for task in of(job.details().tasks, "fast"))
    witness.checkpoints(2)
    eventually(lambda: sum(task.batches_in for task in of(job.details().tasks, "slow")) >= 15, "fifteen batches")
    after = sum(psutil.Process(pid).memory_info().rss for pid in pids)
    metrics = job.details().tasks
    taken, made_now = (sum(task.records_in for task in of(metrics, name)) for name in ("slow", "fast"))
    assert made_now - taken <= 64 * 100 * parallelism**2, "a few credits' worth of batches is under way"
    assert made_now - made <= taken + 64 * 100 * parallelism**2
    assert after - before < 100_000_000
    assert job.ask("slow", message="hello").result(timeout=WAIT_S) == "hello"
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)


class Patient(Counting):
    """Slower than its source, but not by much."""

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        time.sleep(0.01)
        super().process_batch(batch, out)


def test_checkpoints_complete_and_the_result_is_exact_under_back_pressure(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    env, gate = environment(batch_rows=20, buffer_timeout_ms=0), Gate(tmp_path)
    counting(env, 2000, None, Patient, gate=gate).collect(name="all")  # small batches stay small, each 10 ms of work
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(2)
    gate.open()
    job.wait(timeout=WAIT_S)
    assert counts_of(job.results("all")) == counted(2000)


def test_an_endless_job_is_canceled_while_its_source_is_held_back(shared_cluster: LocalCluster) -> None:
    env = environment()
    counting(env, None, None, Patient).collect(name="all")
    job = shared_cluster.submit(env)
    eventually(lambda: sum(task.backpressured_ms for task in job.details().tasks) > 0, "back-pressure")
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)


def test_an_endless_job_at_full_speed_is_canceled(shared_cluster: LocalCluster) -> None:
    """Its source never idles: there is always one more batch before the control message."""
    env = environment()
    env.generate(lambda index: index, name="endless").process(Passing, name="on").filter(lambda _: False).collect()
    job = shared_cluster.submit(env)
    Witness(job).checkpoints(3)
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)
