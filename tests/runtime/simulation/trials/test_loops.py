"""Loops are exact under failures and rescales: in a stream, in rounds, and of a solution that improves. A mistake in
what a checkpoint holds of them is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    Collector,
    DataStream,
    JobFailed,
    KeyedOperator,
    ListState,
    Operator,
    StreamEnvironment,
    Sum,
    ValueState,
    bounded_out_of_orderness,
    monotonous,
    tumbling,
)
from understudy.actors.operators.loops import LoopHead, LoopTail, RoundsHead
from understudy.actors.tasks.task_rounds import TaskRounds
from understudy.testing import SimulatedCluster, assert_exactly_once

pytestmark = pytest.mark.every_run


class Halve(KeyedOperator):
    """Counts the rounds of its key, so that a record that goes round twice shows."""

    halved = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.halved.update(self.halved.value() + 1)
        out.collect((record[0], record[1] // 2, self.halved.value()))


def in_a_stream(numbers: int = 120) -> StreamEnvironment:
    env = StreamEnvironment(checkpoint_interval_ms=50, parallelism=2)
    source = env.from_collection([(number % 7, number) for number in range(1, numbers)], name="numbers")

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        halved = loop.key_by(0).process(Halve, name="halve")
        again = halved.filter(lambda record: record[1] > 0).map(lambda record: record[:2])
        return again, halved.filter(lambda record: record[1] == 0).map(lambda record: record[0])

    source.iterate(step).collect(name="out")
    return env


def in_rounds() -> StreamEnvironment:
    env = StreamEnvironment(checkpoint_interval_ms=50, parallelism=2)
    numbers = env.from_collection([(number % 5, number) for number in range(20)], name="numbers")

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        summed = loop.key_by(0).window(tumbling(1)).reduce(lambda one, other: (one[0], one[1] + other[1]))
        spread = summed.flat_map(lambda sum: [((sum[0] + 1) % 5, sum[1] % 97), ((sum[0] + 2) % 5, 1)])
        return spread, summed.filter(lambda sum: sum[1] != 30)

    numbers.bulk_iterate(step, max_rounds=7).collect(name="out")
    return env


class Spread(KeyedOperator):
    """Tells a vertex's neighbours its label, when it has changed."""

    inputs = 2
    neighbours = ListState(int)
    label = ValueState(int)

    def process(self, record: Any, out: Collector) -> None:
        self.label.update(record[1])
        self.timers.at_event_time(self.timestamp)  # the edges may still come

    def process_2(self, edge: Any, out: Collector) -> None:
        self.neighbours.add(edge[1])

    def on_timer(self, timer: Any, out: Collector) -> None:
        for neighbour in self.neighbours.get():
            out.collect((neighbour, self.label.value()))


def smaller(known: tuple[int, int], found: tuple[int, int]) -> tuple[int, int] | None:
    return found if found[1] < known[1] else None


def of_a_solution() -> StreamEnvironment:
    env = StreamEnvironment(checkpoint_interval_ms=50, parallelism=2)
    one_way = [(vertex, vertex + 1) for vertex in range(1, 12) if vertex != 6]
    edges = env.from_collection([*one_way, *((end, start) for start, end in one_way)], name="edges")
    vertices = env.from_collection([(vertex, vertex) for vertex in range(1, 13)], name="vertices")
    labels = vertices.delta_iterate(
        lambda changed: changed.key_by(0).connect(edges.key_by(0)).process(Spread), key=0, improve=smaller
    )
    labels.collect(name="out")
    return env


PARTS = pa.schema([("page", pa.int64()), ("part", pa.int64())])
RANKS = pa.schema([("page", pa.int64()), ("rank", pa.int64())])


def in_columns() -> StreamEnvironment:
    """Ranks, joined with links that are there in the first round only, summed by a window for each round."""
    env = StreamEnvironment(checkpoint_interval_ms=50, parallelism=2)
    table = {"source": [0, 0, 1, 2, 2, 3, 4, 5], "target": [1, 2, 2, 0, 3, 4, 0, 4]}
    links = env.from_arrow(pa.table(table), name="links").key_by("source")
    pages = env.from_arrow(pa.table({"page": range(6), "rank": [1] * 6}), name="pages")

    def parts(joined: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([joined.column("target"), joined.column("rank")], schema=PARTS)

    def ranks(summed: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([summed.column("page"), summed.column("rank")], schema=RANKS)

    def step(loop: DataStream) -> DataStream:
        given = loop.key_by("page").join(links).map_batches(parts, schema=PARTS)
        return given.key_by("page").window(tumbling(1)).aggregate(rank=Sum("part")).map_batches(ranks, schema=RANKS)

    pages.bulk_iterate(step, max_rounds=5).collect(name="out")
    return env


JOBS = (in_a_stream, in_rounds, of_a_solution, in_columns)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_each_record_goes_round_exactly_once(job: Callable[[], StreamEnvironment]) -> None:
    assert_exactly_once(job, histories=5)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
@pytest.mark.slow
def test_in_many_histories(job: Callable[[], StreamEnvironment]) -> None:
    assert_exactly_once(job, histories=500)


def test_the_solution_is_that_of_one_process() -> None:
    with SimulatedCluster(task_managers=2) as cluster:
        job = cluster.submit(of_a_solution())
        job.wait()
        assert sorted(job.results("out")) == [(vertex, 1 if vertex < 7 else 7) for vertex in range(1, 13)]


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
    return records.window(tumbling(1)).reduce(lambda one, other: (one[0], one[1] + other[1]))


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


def _forgets_what_is_under_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LoopHead, "take_in_loop", lambda self: [])


def _forgets_what_it_has_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RoundsHead, "on_checkpoint", lambda self, checkpoint_id: self._round.update([self.number]))


def _forgets_its_round(patch: pytest.MonkeyPatch) -> None:
    right = RoundsHead.on_checkpoint

    def wrong(self: Any, checkpoint_id: Any) -> None:
        right(self, checkpoint_id)
        self._round.update([1])

    patch.setattr(RoundsHead, "on_checkpoint", wrong)


def _forgets_its_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LoopTail, "on_checkpoint", lambda self, checkpoint_id: None)


def _goes_by_the_first_mark(patch: pytest.MonkeyPatch) -> None:
    """A round is over when one tail says so."""

    def wrong(self: Any) -> Any:
        number = max(self._come.values())
        if not self._passed < number < 2**62:
            return None
        self._passed = number
        return self._sums[number]

    patch.setattr(TaskRounds, "_look", wrong)


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("mistake", "job"),
    [
        (_forgets_what_is_under_way, in_a_stream),
        (_forgets_what_it_has_kept, in_rounds),
        (_forgets_its_round, in_rounds),
        (_forgets_its_count, in_rounds),
        (_goes_by_the_first_mark, in_rounds),
    ],
    ids=lambda each: each.__name__.strip("_"),
)
def test_a_mistake_is_found(
    mistake: Callable[[pytest.MonkeyPatch], None],
    job: Callable[[], StreamEnvironment],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mistake(monkeypatch)
    with pytest.raises(AssertionError):
        assert_exactly_once(job, histories=300)


def test_what_is_sent_back_when_the_loop_has_ended_is_an_error_and_not_lost() -> None:
    class Last(KeyedOperator):
        count = ValueState(int, default=0)

        def process(self, record: Any, out: Collector) -> None:
            self.count.update(self.count.value() + 1)

        def on_end(self, out: Collector) -> None:
            for key in self.keys():
                out.collect((key, self.count.value()))

    env = StreamEnvironment()

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        counted = loop.key_by(0).process(Last)
        return counted, counted

    env.from_collection([(1, 1), (2, 2)]).iterate(step, name="count").collect(name="out")
    with SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        with pytest.raises(JobFailed, match=r"loop 'count' has ended, and \d records were sent back to it after that"):
            job.wait()
        assert job.details().restarts == 0


def test_records_that_still_go_round_when_the_input_ends_are_not_late() -> None:
    env = StreamEnvironment(parallelism=2)
    timed = env.from_collection([(number, 0) for number in range(5)])
    timed = timed.assign_timestamps(lambda record: 1_000 * record[0], bounded_out_of_orderness(3_600_000))

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        more = loop.map(lambda record: (record[0], record[1] + 1))
        return more.filter(lambda record: record[1] < 3), more.filter(lambda record: record[1] == 3)

    counted = timed.iterate(step).key_by(0).window(tumbling(1_000)).reduce(lambda one, _: one)
    counted.collect(name="out")
    counted.late.collect(name="late")
    with SimulatedCluster(task_managers=2) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert sorted(job.results("out")) == [(number, 3) for number in range(5)]
        assert job.results("late") == []


def test_what_is_due_at_the_end_of_event_time_can_still_go_round() -> None:
    env = StreamEnvironment(parallelism=2)
    timed = env.from_collection([(0, 1), (1, 1)])
    timed = timed.assign_timestamps(lambda record: record[0], bounded_out_of_orderness(60_000))

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        summed = loop.key_by(lambda _: 0).window(tumbling(1_000)).reduce(lambda one, other: (0, one[1] + other[1]))
        return summed.map(lambda record: (1, record[1])), summed

    timed.iterate(step).collect(name="out")
    with SimulatedCluster(task_managers=2) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert job.results("out") == [(0, 2)]  # it goes round once more, and is late


def test_a_loop_that_records_never_leave_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamEnvironment()
    counted = env.from_collection([0, 1]).iterate(lambda loop: _count_to(loop, 1_005), name="count")
    counted.collect(name="out")
    with SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert job.results("out") == [1_005, 1_005]
    said = [each for each in caplog.messages if each.startswith("loop 'count' has gone round 1000 times since its")]
    assert said == [
        "loop 'count' has gone round 1000 times since its input ended, and in the last round 2 records were sent back: "
        "if that is not meant, look why they never leave"
    ]


def _count_to(loop: DataStream, last: int) -> tuple[DataStream, DataStream]:
    more = loop.map(lambda number: number + 1)
    return more.filter(lambda number: number < last), more.filter(lambda number: number == last)
