"""Topologies: the jobs that we break. Each says what its committed output must be, without running anything.

A job's output must be the same multiset whatever the order in which records of different channels meet, since that
order is chance. So a counter of records per key says how many there were, and not which came first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ....actors.operators.aggregate import Count, Sum
from ....actors.operators.collector import Collector
from ....actors.operators.keyed_operator import KeyedOperator
from ....state import FoldingState, ListState, MapState, ReducingState, ValueState
from ...api.environment import StreamEnvironment
from ...api.restart import fixed_delay
from ...clusters.job_handle import JobHandle
from ...oracles import exactly_once, nothing_extra
from ..world.cluster import SimulatedCluster

OUTPUT = "out"
"""The name of each topology's sink."""

MAX_PARALLELISM = 16
"""The number of key groups of each job."""

CHECKPOINTS = "sim://checkpoints"
SAVEPOINTS = "sim://savepoints"
"""Where they are kept. They outlast the cluster."""

_COLUMNS = pa.schema([("key", pa.int64()), ("number", pa.int64())])


@dataclass(frozen=True, slots=True)
class Workload:
    """How much goes through a job, how fast, and how it is set up."""

    records: int = 40
    keys: int = 5
    parallelism: int = 2
    records_per_second: float = 2.0
    checkpoint_interval_ms: int = 3_000
    retained_checkpoints: int = 2
    retain_checkpoints: str = "on_failure"
    max_concurrent_checkpoints: int = 1
    alignment_timeout_ms: int | None = None
    buffer_timeout_ms: int = 5
    batch_rows: int | None = None
    inline_threshold_bytes: int = 1
    """Of each subtask's state: less of it makes no file."""
    state_backend: str = "filesystem"

    @property
    def duration_ms(self) -> float:
        """How long the sources take when nothing goes wrong."""
        return 1000 * self.records / self.records_per_second


class Counter(KeyedOperator):
    """How many records of this key there have been: (key, 1), (key, 2), …"""

    count = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.count.update(self.count.value() + 1)
        out.collect((self.key, self.count.value()))


class EveryState(KeyedOperator):
    """The same number from each kind of state; they agree unless one of them was restored to another moment."""

    value = ValueState(int, default=0)
    listed = ListState(int)
    mapped = MapState(int, int)
    reduced = ReducingState(int, lambda one, other: one + other)
    folded = FoldingState(int, 0, lambda so_far, _: so_far + 1)

    def process(self, record: Any, out: Collector) -> None:
        number = self.value.value() + 1
        self.value.update(number)
        self.listed.add(record)
        self.mapped.put(number, record)
        self.reduced.add(1)
        self.folded.add(record)
        counts = (len(list(self.listed.get())), len(list(self.mapped.keys())), self.reduced.get(), self.folded.get())
        out.collect((self.key, number, *counts))


class Sides(KeyedOperator):
    """Two inputs, each counted by itself, and both together."""

    inputs = 2
    left = ValueState(int, default=0)
    right = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.left.update(self.left.value() + 1)
        out.collect(("left", self.key, self.left.value()))

    def process_2(self, record: Any, out: Collector) -> None:
        self.right.update(self.right.value() + 1)
        out.collect(("right", self.key, self.right.value()))


class Steps(KeyedOperator):
    """From each update of a key's aggregates, (key, n) for every number of rows that it is the first to report.

    How many rows an update takes together is chance; that none is lost or counted twice is not.
    """

    told = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        for number in range(self.told.value() + 1, record.rows + 1):
            out.collect((self.key, number))
        self.told.update(record.rows)


class Same(KeyedOperator):
    """Each record, as it is."""

    def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


@dataclass(frozen=True, slots=True)
class Topology:
    """A job, and what it must commit."""

    name: str
    build: Callable[[Workload], StreamEnvironment]
    expected: Callable[[Workload], list[Any]]
    exactly_once: bool = True
    tells_at_the_end: bool = False
    """Its results are those of all the data that there was, and come when that has ended."""
    emits_meanwhile: bool = False
    """It commits something before its data ends, if nothing is wrong: event time goes on."""
    feed: Callable[[SimulatedCluster, JobHandle, Workload], None] | None = None
    """Begins to send records into a job that was submitted, and stops it when all are there."""
    counts_up: bool = False
    """All of it comes from one subtask, number by number: results of the first N numbers are complete, for each N."""
    answer_ms: float = 0.0
    """How long each of its records may wait for an answer from outside, one after the other."""
    outside: Callable[[Workload, bool], str] = lambda _workload, _is_whole: ""
    """What is wrong with what it did outside of its cluster; `is_whole`: it has finished, with all of its data."""
    takes_nothing_back: bool = False
    """What it has committed outside stays when the job goes back behind it, as it does when a file has rotted."""
    has_outlet: bool = False
    """The same records go to an outlet, too, which is read meanwhile."""


def environment(workload: Workload, *, mode: str = "exactly-once") -> StreamEnvironment:
    """An environment that puts up with as many failures as a history may hold."""
    env = StreamEnvironment(
        parallelism=workload.parallelism,
        max_parallelism=MAX_PARALLELISM,
        checkpoint_dir=CHECKPOINTS,
        checkpoint_interval_ms=workload.checkpoint_interval_ms,
        checkpoint_timeout_ms=20_000,
        retained_checkpoints=workload.retained_checkpoints,
        incremental_checkpoints=True,
        retain_checkpoints=workload.retain_checkpoints,
        max_concurrent_checkpoints=workload.max_concurrent_checkpoints,
        buffer_timeout_ms=workload.buffer_timeout_ms,
        batch_rows=workload.batch_rows,
        tolerable_checkpoint_failures=1_000_000,
        restart_strategy=fixed_delay(1_000_000, delay_ms=300),
        state_backend=workload.state_backend,
        mode=mode,
    )
    env.checkpoints = replace(
        env.checkpoints,
        inline_threshold_bytes=workload.inline_threshold_bytes,
        alignment_timeout_ms=workload.alignment_timeout_ms,
    )
    return env


def one_source(env: StreamEnvironment, workload: Workload, name: str = "numbers", share: int = 1) -> Any:
    """The workload's numbers, or one `share`-th of them: a source that ends before the other."""
    return env.from_collection(
        range(workload.records // share), records_per_second=workload.records_per_second, name=name, parallelism=1
    )


def _chain(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    tripled = one_source(env, workload).map(lambda number: 3 * number, name="tripled", parallelism=1)
    tripled.filter(lambda number: number % 2 == 0, name="even", parallelism=1).collect(name=OUTPUT, parallelism=1)
    return env


def _pipeline(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    negated = one_source(env, workload).rebalance().map(lambda number: -number, name="negated")
    negated.rebalance().flat_map(lambda number: [number, number], name="twice").collect(name=OUTPUT)
    return env


def counting_job(workload: Workload) -> tuple[StreamEnvironment, Any]:
    """A job that counts the numbers by key, and its counts, which it collects: they may go elsewhere too."""
    env, keys = environment(workload), workload.keys
    counts = one_source(env, workload).key_by(lambda number: number % keys).process(Counter, name="count")
    counts.collect(name=OUTPUT)
    return env, counts


def _keyed(workload: Workload) -> StreamEnvironment:
    return counting_job(workload)[0]


def _spread(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    keys, rate = workload.keys, workload.records_per_second
    everywhere = workload.parallelism
    numbers = env.from_collection(
        range(workload.records), records_per_second=rate, name="numbers", parallelism=everywhere
    )
    numbers.key_by(lambda number: number % keys).process(Counter, name="count").collect(name=OUTPUT)
    return env


def _fan_in(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    keys = workload.keys
    both = one_source(env, workload, "one").union(one_source(env, workload, "other", 2))
    both.key_by(lambda number: number % keys).process(Counter, name="count").collect(name=OUTPUT)
    return env


def _diamond(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    keys = workload.keys
    numbers = one_source(env, workload)
    upper = numbers.rebalance().map(lambda number: number, name="upper")
    lower = numbers.rebalance().map(lambda number: number + 1, name="lower", parallelism=1)
    upper.union(lower).key_by(lambda number: number % keys).process(Counter, name="count").collect(name=OUTPUT)
    return env


def _two_inputs(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    keys = workload.keys
    left = one_source(env, workload, "left numbers").key_by(lambda number: number % keys)
    right = one_source(env, workload, "right numbers", 2).key_by(lambda number: number % keys)
    left.connect(right).process(Sides, name="sides").collect(name=OUTPUT)
    return env


def _states(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    keys = workload.keys
    one_source(env, workload).key_by(lambda number: number % keys).process(EveryState, name="states").collect(
        name=OUTPUT
    )
    return env


def _columns(environment: StreamEnvironment, workload: Workload) -> Any:
    """The numbers and their keys as Arrow batches, from all subtasks."""
    keys = workload.keys

    def batch(start: int, rows: int) -> pa.RecordBatch:
        numbers = range(start, start + rows)
        return pa.record_batch([[number % keys for number in numbers], list(numbers)], schema=_COLUMNS)

    rate = workload.records_per_second
    return environment.generate(batch, workload.records, schema=_COLUMNS, records_per_second=rate, name="numbers")


def _columnar(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    totals = _columns(env, workload).key_by("key").aggregate("end", rows=Count(), total=Sum("number"), name="totals")
    totals.map(tuple, name="plain").collect(name=OUTPUT)
    return env


def _columnar_updates(workload: Workload) -> StreamEnvironment:
    env = environment(workload)
    updates = _columns(env, workload).key_by("key").aggregate("updates", rows=Count(), name="totals")
    updates.key_by("key").process(Steps, name="steps").collect(name=OUTPUT)
    return env


def _at_least_once(workload: Workload) -> StreamEnvironment:
    env = environment(workload, mode="at-least-once")
    keys = workload.keys
    both = one_source(env, workload, "one").union(one_source(env, workload, "other", 2))
    both.key_by(lambda number: number % keys).process(Same, name="same").collect(name=OUTPUT)
    return env


def counted(numbers: Iterable[int], keys: int) -> list[tuple[int, int]]:
    seen = dict.fromkeys(range(keys), 0)
    found = []
    for number in numbers:
        seen[number % keys] += 1
        found.append((number % keys, seen[number % keys]))
    return found


def _totals(workload: Workload) -> list[tuple[int, int, int]]:
    found = []
    for key in range(min(workload.keys, workload.records)):
        numbers = range(key, workload.records, workload.keys)
        found.append((key, len(numbers), sum(numbers)))
    return found


def _all(workload: Workload, times: int = 1) -> list[int]:
    return [number for number in range(workload.records) for _ in range(times)]


def _half(workload: Workload) -> list[int]:
    return list(range(workload.records // 2))


def _both(workload: Workload) -> list[int]:
    return [*_all(workload), *_half(workload)]


def all_counts(workload: Workload) -> list[tuple[int, int]]:
    """What a counting job must commit."""
    return counted(_all(workload), workload.keys)


def wrong_counts(found: Iterable[Any], workload: Workload, *, is_whole: bool) -> str:
    """What is wrong with counts found outside of the cluster; `is_whole`: all must be there."""
    violation = (exactly_once if is_whole else nothing_extra)(found, all_counts(workload))
    return "" if violation is None else violation.problem


def by_name(*topologies: Topology) -> dict[str, Topology]:
    return {each.name: each for each in topologies}


TOPOLOGIES = by_name(
    Topology("chain", _chain, lambda work: [3 * number for number in _all(work) if number % 2 == 0], counts_up=True),
    Topology("pipeline", _pipeline, lambda work: [-number for number in _all(work, 2)], counts_up=True),
    Topology("keyed", _keyed, all_counts, counts_up=True),
    Topology("spread", _spread, all_counts),
    Topology("fan-in", _fan_in, lambda work: counted(_both(work), work.keys)),
    Topology(
        "diamond",
        _diamond,
        lambda work: counted([*_all(work), *range(1, work.records + 1)], work.keys),
        counts_up=True,
    ),
    Topology(
        "two-inputs",
        _two_inputs,
        lambda work: [
            *(("left", *each) for each in all_counts(work)),
            *(("right", *each) for each in counted(_half(work), work.keys)),
        ],
    ),
    Topology(
        "states",
        _states,
        lambda work: [(key, n, n, n, n, n) for key, n in all_counts(work)],
        counts_up=True,
    ),
    Topology("columnar", _columnar, _totals, tells_at_the_end=True),
    Topology("columnar-updates", _columnar_updates, all_counts),
    Topology("at-least-once", _at_least_once, _both, exactly_once=False),
)
"""The standard ones."""
