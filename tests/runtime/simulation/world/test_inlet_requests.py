"""An inlet's requests: who was answered sends again at once, and the few that wait go with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from understudy import JobHandle, StreamEnvironment
from understudy.actors.job_manager.job_questions import JobQuestions
from understudy.messages import SendToInlet
from understudy.runtime.connectors.inlet.sent_records import from_payload
from understudy.runtime.simulation.world.cluster import SimulatedCluster

MANY = 16


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records each request has brought."""
    found: list[int] = []
    send = JobQuestions.send

    def counted(job: JobQuestions, sent: SendToInlet, timeout_ms: float) -> Any:
        found.append(sum(each.rows for each in from_payload(sent.records)))
        return send(job, sent, timeout_ms)

    monkeypatch.setattr(JobQuestions, "send", counted)
    return found


@contextmanager
def running_job(requests: list[int]) -> Iterator[tuple[SimulatedCluster, JobHandle]]:
    env = StreamEnvironment(checkpoint_interval_ms=1_000)
    env.from_inlet("orders").collect(name="out")
    with SimulatedCluster(seed=3) as cluster:
        job = cluster.submit(env)
        job.ready().result(timeout=60)
        job.inlet("orders").last_number().result(timeout=60)
        requests.clear()
        yield cluster, job
        job.cancel()


def test_one_that_comes_while_many_are_under_way_goes_with_what_they_send_next(requests: list[int]) -> None:
    with running_job(requests) as (cluster, job):
        senders = [job.inlet("orders") for _ in range(MANY)]
        sent = [sender.send("first") for sender in senders]
        assert cluster.run_until(lambda: requests == [MANY])
        late = job.inlet("orders").send("late")
        assert cluster.run_until(lambda: all(each.done() for each in sent))
        again = [sender.send("second") for sender in senders]
        assert cluster.run_until(lambda: late.done() and all(each.done() for each in again))
    assert requests == [MANY, MANY + 1]


def test_senders_that_nobody_has_any_more_are_forgotten(requests: list[int]) -> None:
    """As of a service that makes an inlet for each of its requests."""
    with running_job(requests) as (_, job):
        inlet = job.inlet("orders")
        for number in range(1, 4):
            for _ in range(MANY):
                job.inlet("orders").send("one").result(timeout=60)
                job.inlet("orders").send_many(["one", "two"]).result(timeout=60)
            assert inlet.send("another").result(timeout=60) == number
        assert len(job._ways["orders"]._sender._senders) <= 2


def test_it_does_not_wait_for_senders_that_send_no_more(requests: list[int]) -> None:
    with running_job(requests) as (cluster, job):
        sent = [job.inlet("orders").send("first") for _ in range(MANY)]
        assert cluster.run_until(lambda: requests == [MANY])
        assert job.inlet("orders").send("late").result(timeout=1) == 1
        assert all(each.done() for each in sent)
    assert requests == [MANY, 1]


def test_as_many_as_are_under_way_do_not_wait_for_the_answer(requests: list[int]) -> None:
    with running_job(requests) as (cluster, job):
        sent = [job.inlet("orders").send("first") for _ in range(MANY)]
        assert cluster.run_until(lambda: requests == [MANY])
        more = [job.inlet("orders").send("more") for _ in range(MANY)]
        assert cluster.run_until(lambda: requests == [MANY, MANY])
        assert not any(each.done() for each in sent)
        assert cluster.run_until(lambda: all(each.done() for each in sent + more))
