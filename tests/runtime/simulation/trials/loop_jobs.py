"""Jobs with loops: in a stream, in rounds, of a solution that improves, and of columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from understudy import (
    Collector,
    DataStream,
    KeyedOperator,
    ListState,
    StreamEnvironment,
    Sum,
    ValueState,
    tumbling,
)


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
