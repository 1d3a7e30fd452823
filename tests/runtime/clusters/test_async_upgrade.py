"""From a savepoint an operator goes on as `async def` where it was plain; back only if no record is lost by that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import (
    Collector,
    JobHandle,
    KeyedOperator,
    LocalCluster,
    Operator,
    StateDoesNotFit,
    StreamEnvironment,
    ValueState,
)

from .jobs import WAIT_S, Gate, environment, eventually, generated

COUNT = 400


class Hanging(KeyedOperator):
    """Asks a service that answers the first records alone."""

    total = ValueState(int, default=0)
    begun = 0

    async def process(self, record: int, out: Collector) -> None:
        self.begun += 1
        if record >= 10:
            await asyncio.Event().wait()
        self.total.update(self.total.value() + 1)
        out.collect(record)

    def on_receive(self, message: Any) -> Any:
        return self.begun


class Answered(Hanging):
    """The same when it answers."""

    async def process(self, record: int, out: Collector) -> None:
        await asyncio.sleep(0)
        self.total.update(self.total.value() + 1)
        out.collect(record)


class Plain(KeyedOperator):
    total = ValueState(int, default=0)

    def process(self, record: int, out: Collector) -> None:
        self.total.update(self.total.value() + 1)
        out.collect(record)


class HangingUnkeyed(Operator):
    begun = 0

    async def process(self, record: int, out: Collector) -> None:
        self.begun += 1
        if record >= 10:
            await asyncio.Event().wait()
        out.collect(record)

    def on_receive(self, message: Any) -> Any:
        return self.begun


class AnsweredUnkeyed(HangingUnkeyed):
    async def process(self, record: int, out: Collector) -> None:
        out.collect(record)


class PlainUnkeyed(Operator):
    def process_batch(self, batch: list[int], out: Collector) -> None:
        out.emit(batch)


def keyed(folder: Path, operator: type[Operator], rate: int | None) -> StreamEnvironment:
    env = environment(checkpoint_dir=str(folder))
    numbers = generated(env, COUNT, rate, Gate(folder), "numbers", parallelism=1)
    numbers.key_by(lambda n: n % 7).process(operator, name="ask", parallelism=1).collect(name="all")
    return env


def unkeyed(folder: Path, operator: type[Operator], rate: int | None) -> StreamEnvironment:
    env = environment(checkpoint_dir=str(folder))
    numbers = generated(env, COUNT, rate, Gate(folder), "numbers", parallelism=1)
    numbers.process(operator, name="ask", parallelism=1).collect(name="all")
    return env


Build = Callable[[Path, type[Operator], int | None], StreamEnvironment]


def _begun(job: JobHandle) -> int:
    begun: int = job.ask("ask", message="how many?", timeout=WAIT_S).result()
    return begun


@pytest.mark.parametrize(
    ("build", "hanging", "answered", "plain"),
    [(keyed, Hanging, Answered, Plain), (unkeyed, HangingUnkeyed, AnsweredUnkeyed, PlainUnkeyed)],
    ids=["keyed", "unkeyed"],
)
def test_what_is_in_flight_is_refused_to_a_plain_operator_and_taken_by_an_async_one(
    shared_cluster: LocalCluster, tmp_path: Path, build: Build, hanging: Any, answered: Any, plain: Any
) -> None:
    job = shared_cluster.submit(build(tmp_path, hanging, 200))
    eventually(lambda: _begun(job) > 12, "records in flight")
    savepoint = job.stop_with_savepoint().result(WAIT_S)
    job.wait(timeout=WAIT_S)
    before = job.results("all")
    Gate(tmp_path).open()
    with pytest.raises(StateDoesNotFit, match=r"operator 'ask' held \d+ records that its coroutines had in flight"):
        shared_cluster.submit(build(tmp_path, plain, None), from_savepoint=savepoint)
    after = shared_cluster.submit(build(tmp_path, answered, None), from_savepoint=savepoint)
    after.wait(timeout=WAIT_S)
    assert sorted([*before, *after.results("all")]) == list(range(COUNT))


@pytest.mark.parametrize(
    ("build", "plain", "answered"), [(keyed, Plain, Answered), (unkeyed, PlainUnkeyed, AnsweredUnkeyed)]
)
def test_a_plain_operator_becomes_async(
    shared_cluster: LocalCluster, tmp_path: Path, build: Build, plain: Any, answered: Any
) -> None:
    job = shared_cluster.submit(build(tmp_path, plain, 200))
    job.ready().result(WAIT_S)
    savepoint = job.stop_with_savepoint().result(WAIT_S)
    job.wait(timeout=WAIT_S)
    before = job.results("all")
    Gate(tmp_path).open()
    after = shared_cluster.submit(build(tmp_path, answered, None), from_savepoint=savepoint)
    after.wait(timeout=WAIT_S)
    assert sorted([*before, *after.results("all")]) == list(range(COUNT))
