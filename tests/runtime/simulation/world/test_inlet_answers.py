"""An inlet's answers on their way to the sender: those of an attempt that was given up do not count."""

from __future__ import annotations

import logging

import pytest

from understudy import NotRunning, StreamEnvironment, fixed_delay
from understudy.actors.job_manager.job_questions import InletAnswered, JobQuestions
from understudy.messages import JobStatus
from understudy.runtime.simulation.world.cluster import SimulatedCluster
from understudy.runtime.simulation.world.faults import KillProcess
from understudy.runtime.simulation.world.led_cluster import LedCluster


def test_an_answer_that_comes_after_its_attempt_was_replaced_reaches_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A TaskManager that was frozen, and is thought to be dead, goes on and says that records last which its successor
    has not read.
    """
    on_their_way: list[tuple[JobQuestions, InletAnswered]] = []
    answered = JobQuestions.answered

    def delayed(job: JobQuestions, found: InletAnswered) -> None:
        if on_their_way:
            answered(job, found)
        else:
            on_their_way.append((job, found))

    monkeypatch.setattr(JobQuestions, "answered", delayed)
    env = StreamEnvironment(checkpoint_interval_ms=1_000, restart_strategy=fixed_delay(10, delay_ms=100))
    env.from_inlet("orders").collect(name="out")
    with SimulatedCluster(seed=3, faults=[KillProcess(8_000.0, 0)]) as cluster:
        job = cluster.submit(env)
        job.ready().result(timeout=60)
        sent = job.inlet("orders").send("order")
        assert cluster.run_until(lambda: bool(on_their_way))
        assert on_their_way[0][1].answer.last_numbers == {}, "it says that all lasts"
        assert cluster.run_until(lambda: job.status is JobStatus.RESTARTING)
        assert cluster.run_until(lambda: job.status is JobStatus.RUNNING)
        assert not sent.done()
        stale = on_their_way[0][1].promise
        driver = cluster._started_driver()
        driver.loop.call_soon(answered, *on_their_way[0])
        assert sent.result(timeout=60) == 1
        with pytest.raises(NotRunning, match="given up before the answer came"):
            stale.get(timeout=0)
        job.stop().result(timeout=60)
        job.wait(timeout=600)
        assert job.results("out") == ["order"]


def test_an_answer_that_comes_when_another_leader_may_have_begun_reaches_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A JobManager that stood still may hear it before it hears that it leads no more. By then the attempt of the next
    leader may have read the log, without these records.
    """
    on_their_way: list[tuple[JobQuestions, InletAnswered]] = []
    answered = JobQuestions.answered
    monkeypatch.setattr(JobQuestions, "answered", lambda job, found: on_their_way.append((job, found)))
    env = StreamEnvironment(checkpoint_interval_ms=1_000, checkpoint_dir="sim://service/checkpoints")
    env.from_inlet("orders").collect(name="out")
    with LedCluster(seed=3) as cluster:
        job = cluster.submit(env)
        job.ready().result(timeout=60)
        job.inlet("orders").send("order")
        assert cluster.run_until(lambda: bool(on_their_way))
        assert on_their_way[0][1].answer.last_numbers == {}, "it says that all lasts"
        cluster._started_driver().freeze()
        cluster.take_over(host="another")
        answered(*on_their_way[0])
        with pytest.raises(NotRunning, match="another JobManager may lead"):
            on_their_way[0][1].promise.get(timeout=0)


def test_an_answer_that_comes_when_another_process_may_have_resumed_the_job_reaches_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that stood still for longer than its lease hears it before it hears that it has lost the job's name. The next
    run may have read the log by then, without these records.
    """
    on_their_way: list[tuple[JobQuestions, InletAnswered]] = []
    answered = JobQuestions.answered
    monkeypatch.setattr(JobQuestions, "answered", lambda job, found: on_their_way.append((job, found)))
    env = StreamEnvironment(checkpoint_interval_ms=1_000, checkpoint_dir="sim://service/checkpoints")
    env.from_inlet("orders").collect(name="out")
    with SimulatedCluster(seed=3, name_lease_ms=10_000) as cluster:
        job = cluster.submit(env, "service", resume="latest")
        job.ready().result(timeout=60)
        job.inlet("orders").send("order")
        assert cluster.run_until(lambda: bool(on_their_way))
        assert on_their_way[0][1].answer.last_numbers == {}, "it says that all lasts"
        cluster._started_driver().freeze()
        cluster.run_for(11_000)
        answered(*on_their_way[0])
        with pytest.raises(NotRunning, match="another process may have resumed the job"):
            on_their_way[0][1].promise.get(timeout=0)


def test_a_client_that_waits_for_the_task_leaves_no_trace_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """It asks several times a second."""
    caplog.set_level(logging.DEBUG, "understudy.actors.job_manager")
    env = StreamEnvironment(checkpoint_interval_ms=1_000, restart_strategy=fixed_delay(10, delay_ms=5_000))
    env.from_inlet("orders").collect(name="out")
    with SimulatedCluster(seed=3, faults=[KillProcess(8_000.0, 0)]) as cluster:
        job = cluster.submit(env)
        job.ready().result(timeout=60)
        assert cluster.run_until(lambda: job.status is JobStatus.RESTARTING)
        assert job.inlet("orders").send("order").result(timeout=60) == 1
        job.cancel()
    refused = [record for record in caplog.records if record.getMessage().startswith("refused SendToInlet")]
    assert {record.levelno for record in refused} == {logging.DEBUG}
