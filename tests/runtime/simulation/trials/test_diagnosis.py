"""What the report of a failed history says about its cause: order, chance of the job's own, or faults."""

from __future__ import annotations

import itertools
import random
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from understudy import KeyedOperator, Operator, StreamEnvironment, ValueState
from understudy.testing import FreezeProcess, KillProcess, assert_exactly_once


def _env() -> StreamEnvironment:
    return StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)


class Latest(KeyedOperator):
    """With each record the one that came before it, from whichever input."""

    latest = ValueState(int, default=-1)

    def process(self, record: int, out: Any) -> None:
        out.collect((self.latest.value(), record))
        self.latest.update(record)


def _racing() -> StreamEnvironment:
    env = _env()
    left = env.from_collection(range(10), parallelism=1)
    right = env.from_collection(range(100, 110), parallelism=1)
    left.union(right).key_by(lambda number: 0).process(Latest).collect(name="out")
    return env


def test_an_order_race_is_called_one_and_not_a_freeze() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(_racing, faults=[FreezeProcess(at_ms=2_000, for_ms=900, who=0)], histories=10)
    told = str(caught.value)
    assert told.startswith("exactly-once: sink 'out' ")
    assert "0 recoveries: order. " in told
    assert "No\nfailure is needed for it. Make the result the same in every order" in told


class Unsteady(Operator):
    """Emits what `draw` gives."""

    def __init__(self, draw: Callable[[], Any]) -> None:
        self.draw = draw

    def process_batch(self, batch: Any, out: Any) -> None:
        for record in batch:
            out.collect((record, self.draw()))


_counter = itertools.count()


def _counted() -> int:
    return next(_counter)


@pytest.mark.parametrize(
    "draw",
    [time.time_ns, lambda: random.random(), lambda: str(uuid.uuid4()), _counted],
    ids=["real time", "random numbers", "ids", "a global variable"],
)
def test_a_job_that_changes_from_run_to_run_is_told_what_to_do(draw: Callable[[], Any]) -> None:
    def build() -> StreamEnvironment:
        env = _env()
        env.from_collection(range(5)).process(Unsteady(draw)).collect(name="out")
        return env

    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(build, histories=3)
    told = str(caught.value)
    assert told.startswith("unrepeatable: the same seed gave two different outputs: sink 'out' has committed (0, ")
    assert "reads real time, random numbers or ids" in told
    assert "Use self.context.clock for the time" in told
    assert "FAULT" not in told


class Forgetful(KeyedOperator):
    """Counts in an attribute."""

    def __init__(self) -> None:
        self.count = 0

    def process(self, record: int, out: Any) -> None:
        self.count += 1
        out.collect(self.count)


def test_faults_that_matter_are_said_to_matter() -> None:
    def build() -> StreamEnvironment:
        env = _env()
        env.from_collection(range(12)).key_by(lambda number: 0).process(Forgetful).collect(name="out")
        return env

    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(build, faults=[KillProcess(at_ms=3_000, who=0)], histories=5)
    told = str(caught.value)
    assert (
        "The same seed was run again, with the same outcome.\nWithout faults and savepoints it commits what was" in told
    )
    assert "0 recoveries" not in told
