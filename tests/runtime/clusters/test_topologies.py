"""Jobs of all shapes, each with a TaskManager killed in the middle, each exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import KeyedOperator, ListState, LocalCluster, ValueState
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.stream import DataStream

from .jobs import KEYS, WAIT_S, Counting, Gate, Passing, Witness, counted, counting, counts_of, environment, generated

COUNT, RATE = 2000, 1000
StartCluster = Callable[..., LocalCluster]
Expected = Counter[Any]
Build = Callable[[StreamEnvironment, Gate], tuple[DataStream, Expected]]


def numbers(env: StreamEnvironment, gate: Gate, name: str, parallelism: int | None = None) -> DataStream:
    return generated(env, COUNT, RATE, gate, name, parallelism=parallelism)


class Join(KeyedOperator):
    """Numbers meet the name of their key; those that come before it wait in keyed state."""

    inputs = 2
    name = ValueState(str)
    waiting = ListState(int)

    def process(self, record: int, out: Collector) -> None:
        if (name := self.name.value()) is None:
            self.waiting.add(record)
        else:
            out.collect((name, record))

    def process_2(self, record: int, out: Collector) -> None:
        self.name.update(f"key {record}")
        for waiting in self.waiting.get():
            out.collect((f"key {record}", waiting))
        self.waiting.clear()


def join(env: StreamEnvironment, gate: Gate) -> tuple[DataStream, Expected]:
    names = env.generate(lambda index: index, KEYS, records_per_second=KEYS, name="names")
    joined = numbers(env, gate, "numbers").key_by(lambda index: index % KEYS).connect(names.key_by(lambda key: key))
    return joined.process(Join, name="join"), Counter((f"key {index % KEYS}", index) for index in range(COUNT))


class Tagging(Operator):
    """Two inputs without keys; each record is told which one it came by."""

    inputs = 2

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        out.emit([("first", record) for record in batch])

    def process_batch_2(self, batch: list[Any], out: Collector) -> None:
        out.emit([("second", record) for record in batch])


def connect_without_keys(env: StreamEnvironment, gate: Gate) -> tuple[DataStream, Expected]:
    both = numbers(env, gate, "a").connect(numbers(env, gate, "b", parallelism=1)).process(Tagging, name="tag")
    return both, Counter((side, index) for side in ("first", "second") for index in range(COUNT))


def union(env: StreamEnvironment, gate: Gate) -> tuple[DataStream, Expected]:
    united = numbers(env, gate, "a").union(numbers(env, gate, "b", parallelism=1), numbers(env, gate, "c"))
    return united.map(lambda index: index), Counter(dict.fromkeys(range(COUNT), 3))


class Numbering(Counting):
    """Of each key only the numbers: the order in which its records come by two ways is nobody's promise."""

    def process(self, record: int, out: Collector) -> None:
        self.seen.update(self.seen.value() + 1)
        out.collect((self.key, self.seen.value()))


def diamond(env: StreamEnvironment, gate: Gate) -> tuple[DataStream, Expected]:
    source = numbers(env, gate, "numbers")
    left = source.map(lambda index: index, name="left")
    right = source.filter(lambda index: index % 3 == 0, name="right").rebalance().map(lambda index: index, name="far")
    met = left.union(right).key_by(lambda index: index % KEYS).process(Numbering, name="count")
    seen: Counter[int] = Counter()
    expected: Expected = Counter()
    for index in [*range(COUNT), *range(0, COUNT, 3)]:
        seen[index % KEYS] += 1
        expected[index % KEYS, seen[index % KEYS]] += 1
    return met, expected


def broadcast(env: StreamEnvironment, gate: Gate) -> tuple[DataStream, Expected]:
    everywhere = numbers(env, gate, "numbers").broadcast().process(Passing, name="each")
    return everywhere, Counter(dict.fromkeys(range(COUNT), 2))


def parallelisms(env: StreamEnvironment, gate: Gate) -> tuple[DataStream, Expected]:
    one = numbers(env, gate, "numbers", parallelism=1).rebalance().map(lambda index: index, parallelism=2)
    narrow = one.process(Passing, name="narrow", parallelism=1)
    wide = narrow.key_by(lambda index: index % KEYS).process(Numbering, name="count", parallelism=2)
    return wide, Counter((index % KEYS, index // KEYS + 1) for index in range(COUNT))


def two_pipelines(env: StreamEnvironment, gate: Gate) -> tuple[DataStream, Expected]:
    counting(env, COUNT, RATE, gate=gate).collect(name="beside")
    return numbers(env, gate, "alone").map(lambda index: -index), Counter(-index for index in range(COUNT))


def _name(build: Build) -> str:
    return build.__name__  # type: ignore[attr-defined]


@pytest.mark.chaos
@pytest.mark.parametrize(
    "build",
    [join, connect_without_keys, union, diamond, broadcast, parallelisms, two_pipelines],
    ids=lambda f: f.__name__,
)
def test_a_job_of_this_shape_is_exact_though_a_task_manager_is_killed(
    shared_cluster: LocalCluster, build: Build, tmp_path: Path
) -> None:
    env, gate = environment(), Gate(tmp_path)
    stream, expected = build(env, gate)
    stream.collect(name="all")
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(3)
    witness.kill(witness.pids(2)[0])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts >= 1
    assert Counter(job.results("all")) == expected
    if build is two_pipelines:
        assert counts_of(job.results("beside")) == counted(COUNT)


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("task_managers", "slots"),
    [pytest.param(1, 1, marks=pytest.mark.slow), (1, 4), pytest.param(2, 2, marks=pytest.mark.slow)],
)
def test_slots_and_task_managers_of_any_number_give_the_same_result(
    start_cluster: StartCluster, tmp_path: Path, task_managers: int, slots: int
) -> None:
    """One slot: one thread for all. Several slots: threads of one process, joined by queues in memory."""
    env, gate = environment(), Gate(tmp_path)
    counting(env, COUNT, RATE, gate=gate).collect(name="all")
    job = start_cluster(task_managers, slots_per_task_manager=slots).submit(env)
    witness = Witness(job)
    witness.checkpoints(3)
    witness.kill(witness.pids(task_managers)[0])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    assert counts_of(job.results("all")) == counted(COUNT)


@pytest.mark.chaos
def test_at_least_once_loses_nothing(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    env, gate = environment(mode="at-least-once"), Gate(tmp_path)
    counting(env, COUNT, RATE, gate=gate).map(lambda record: record["index"]).collect(name="all")
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(3)
    witness.kill(witness.pids(2)[0])
    gate.open()
    assert job.wait(timeout=WAIT_S).restarts == 1
    found = Counter(job.results("all"))
    assert not Counter(range(COUNT)) - found
    assert set(found) == set(range(COUNT))


@pytest.mark.parametrize("mode", ["exactly-once", "at-least-once"])
def test_without_failures_both_guarantees_give_the_same(shared_cluster: LocalCluster, mode: str) -> None:
    env = environment(mode=mode)
    counting(env, 1000, None).collect(name="all")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    assert counts_of(job.results("all")) == counted(1000)


def test_an_empty_source_ends_the_job_with_nothing(shared_cluster: LocalCluster) -> None:
    env = environment()
    counting(env, 0, None).collect(name="all")
    env.from_collection([]).collect(name="none")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    assert job.results("all") == job.results("none") == []
