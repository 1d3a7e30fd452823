"""A timeout of the wrong type is refused with what was found, wanted, and what to write."""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from understudy import Actor, ActorSystem, InvalidTimeout, NamedRef, StreamEnvironment
from understudy.actors.timeouts import timeout_milliseconds, timeout_seconds
from understudy.testing import SimulatedCluster


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(None, None), (0, 0.0), (2.5, 2.5), (-1, -1.0), (np.int64(3), 3.0), (Fraction(1, 2), 0.5), (math.inf, None)],
)
def test_any_real_number_is_a_timeout_and_infinity_is_none(given: Any, seconds: float | None) -> None:
    assert timeout_seconds(given) == seconds


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("5", "found '5': write float(timeout) if the text is a number"),
        (timedelta(seconds=5), "found datetime.timedelta(seconds=5): write timeout.total_seconds()"),
        (math.nan, "found nan: write timeout=10.0, for example"),
        (True, "found True: write timeout=10.0, for example"),
        ([1], "found [1]: write timeout=10.0, for example"),
    ],
    ids=repr,
)
def test_what_is_no_number_is_refused_and_says_what_to_write(given: Any, text: str) -> None:
    with pytest.raises(InvalidTimeout) as error:
        timeout_seconds(given)
    assert str(error.value) == f"timeout: wanted a number of seconds, or None, {text}"


def test_an_asks_timeout_is_in_milliseconds() -> None:
    assert timeout_milliseconds(math.inf) == math.inf
    with pytest.raises(InvalidTimeout, match=r"number of milliseconds.*timeout_ms\.total_seconds\(\) \* 1000"):
        timeout_milliseconds(timedelta(seconds=5))


TOO_TEXTUAL: Any = "5"


class Idle(Actor):
    """Hears whatever comes."""

    heard = 0

    def on_receive(self, message: Any) -> int:
        self.heard += 1
        return self.heard


def test_every_call_of_a_job_that_waits_checks_its_timeout() -> None:
    env = StreamEnvironment()
    env.from_collection([1, 2, 3]).collect(name="all")
    with SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        savepoint = job.ready()
        calls = (job.wait, job.details, job.metrics, job.checkpoint_history, savepoint.result, savepoint.exception)
        for call in calls:
            with pytest.raises(InvalidTimeout):
                call(timeout=TOO_TEXTUAL)
        with pytest.raises(InvalidTimeout):
            asyncio.run(job.wait_async(timeout=TOO_TEXTUAL))
        with pytest.raises(InvalidTimeout):
            cluster.run_until(lambda: False, timeout=TOO_TEXTUAL)
        job.wait()
        for call in (savepoint.result, savepoint.exception):
            with pytest.raises(InvalidTimeout):
                call(timeout=TOO_TEXTUAL)  # also when there is nothing to wait for


def test_every_call_of_an_actor_system_that_waits_checks_its_timeout_and_does_nothing() -> None:
    with ActorSystem("theatre") as system:
        actor = system.spawn(Idle(), name="idle")
        for ref in (actor, NamedRef(system, "idle")):
            with pytest.raises(InvalidTimeout, match="timeout_ms"):
                ref.ask("hello", timeout_ms=TOO_TEXTUAL)
        with pytest.raises(InvalidTimeout):
            actor.ask("hello", block=True, timeout=TOO_TEXTUAL)
        with pytest.raises(InvalidTimeout):
            actor.stop(timeout=TOO_TEXTUAL)
        answer = actor.ask("hello")
        assert answer.result(timeout=math.inf) == 1, "it has heard none of the others"
        for call in (answer.result, answer.exception, answer.wait, answer.get, system.shutdown):
            with pytest.raises(InvalidTimeout):
                call(timeout=TOO_TEXTUAL)
        with pytest.raises(InvalidTimeout):
            asyncio.run(system.close(timeout=TOO_TEXTUAL))
        assert actor.ask("again").result() == 2
