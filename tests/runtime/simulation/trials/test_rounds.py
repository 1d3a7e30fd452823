"""Rounds: what belongs to which, of static data, of streams that join a loop, and of what operators hold back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    Collector,
    DataStream,
    KeyedOperator,
    Operator,
    StreamEnvironment,
    Sum,
    ValueState,
    monotonous,
    tumbling,
)
from understudy.testing import SimulatedCluster, assert_exactly_once

from .loop_jobs import RANKS

pytestmark = pytest.mark.every_run


class Meets(KeyedOperator):
    """Sends each record round with what it has met of the static ones, whose own time is no round."""

    inputs = 2
    met = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.timers.at_event_time(self.timestamp)

    def process_2(self, record: Any, out: Collector) -> None:
        self.met.update(self.met.value() + 1)
        out.collect((record[0], "static"))

    def on_timer(self, timer: Any, out: Collector) -> None:
        out.collect((self.key, f"round {timer.time_ms}, met {self.met.value()}"))


@pytest.mark.parametrize("is_timed", [False, True])
def test_static_data_have_all_come_before_the_first_round_is_over_whatever_their_times(is_timed: bool) -> None:
    env = StreamEnvironment(parallelism=2)
    static = env.generate(lambda index: (0, index), count=20, records_per_second=100)
    if is_timed:
        static = static.assign_timestamps(lambda record: 1_700_000_000_000 + record[1], monotonous())
    keyed = static.key_by(0)
    numbers = env.from_collection([(0, "start")])
    last = numbers.bulk_iterate(lambda loop: loop.key_by(0).connect(keyed).process(Meets), max_rounds=2)
    last.collect(name="last")
    with SimulatedCluster(task_managers=2) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert job.results("last") == [(0, "round 2, met 20")]


def _to_each_round(records: DataStream) -> DataStream:
    return records.process(Rounds)


def _summed(records: DataStream) -> DataStream:
    return records.window(tumbling(1)).reduce(lambda one, other: (one[0], one[1] + other[1]))  # type: ignore[attr-defined]


class Rounds(KeyedOperator):
    """Sums what each key has in a round."""

    total = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.total.update(self.total.value() + record[1])
        self.timers.at_event_time(self.timestamp)

    def on_timer(self, timer: Any, out: Collector) -> None:
        out.collect((self.key, self.total.value()))
        self.total.clear()


@pytest.mark.parametrize("is_timed", [False, True])
@pytest.mark.parametrize("body", [_to_each_round, _summed])
def test_a_union_puts_records_from_outside_into_the_first_round(
    body: Callable[[DataStream], DataStream], is_timed: bool
) -> None:
    """Timers and windows inside find the round as their time."""
    env = StreamEnvironment(parallelism=2)
    more = env.from_collection([(0, 10), (1, 20), (1, 30)])
    if is_timed:
        more = more.assign_timestamps(lambda record: 1_700_000_000_000 + record[1], monotonous())
    numbers = env.from_collection([(0, 1), (1, 2)])
    last = numbers.bulk_iterate(lambda loop: body(loop.union(more).key_by(0)), max_rounds=3)
    last.collect(name="last")
    with SimulatedCluster(task_managers=2) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert sorted(job.results("last")) == [(0, 11), (1, 52)]


class HoldsBack(Operator):
    """Emits what it has at barriers alone; a mark of a round passes behind it, as a barrier does."""

    takes = "objects"

    def open(self) -> None:
        self.held: list[Any] = []

    def process_batch(self, batch: Any, out: Collector) -> None:
        self.held += batch

    def before_barrier(self, checkpoint_id: Any, out: Collector) -> None:
        if self.held:
            out.emit(self.held)
        self.held = []


def held_back(checkpoint_interval_ms: int = 20) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=checkpoint_interval_ms)

    def step(loop: DataStream) -> DataStream:
        return loop.process(HoldsBack).key_by(lambda number: number % 7).process(Tenfold)

    env.from_collection([1, 2, 3], name="numbers").bulk_iterate(step, max_rounds=3, name="rounds").collect(name="last")
    return env


class Tenfold(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect(record * 10)


@pytest.mark.parametrize("interval_ms", [20, 100_000])
def test_what_an_operator_holds_back_is_of_the_round_in_which_it_came(interval_ms: int) -> None:
    """The watermark of a round has passed before its mark makes the operator emit."""
    with SimulatedCluster(task_managers=2) as cluster:
        job = cluster.submit(held_back(interval_ms))
        job.wait()
        assert sorted(job.results("last")) == [1_000, 2_000, 3_000]


def test_what_an_operator_holds_back_is_of_that_round_after_a_restore() -> None:
    assert_exactly_once(held_back, histories=20, expected={"last": [1_000, 2_000, 3_000]})


def test_an_aggregate_that_emits_updates_goes_round() -> None:
    """Its first phase holds rows back."""
    env = StreamEnvironment(parallelism=2)
    pages = env.from_arrow(pa.table({"page": [0, 1] * 20, "rank": [1] * 40}))

    def ranks(updates: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([updates.column("page"), updates.column("rank")], schema=RANKS)

    def step(loop: DataStream) -> DataStream:
        return loop.key_by("page").aggregate(rank=Sum("rank"), emit="updates").map_batches(ranks, schema=RANKS)

    pages.bulk_iterate(step, max_rounds=2).collect(name="out")
    with SimulatedCluster(task_managers=2) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert {row["page"] for row in job.results("out")} == {0, 1}
