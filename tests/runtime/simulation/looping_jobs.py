"""Jobs with loops in streams and in rounds, of operators of all kinds, and what they commit."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from understudy import (
    DataStream,
    KeyedOperator,
    ListState,
    Operator,
    OutputTag,
    StreamEnvironment,
    Sum,
    ValueState,
    tumbling,
)

COUNT, KEYS = 60, 7


class Hop(NamedTuple):
    key: int
    first: int
    left: int
    """It goes round until this is 0."""
    hops: int


STARTS = [Hop(n % KEYS, n, n * 5 % 9, 0) for n in range(COUNT)]
ENDS = [(each.key, each.first, each.left + 1) for each in STARTS]
TOTALS = Counter({key: sum(each.left + 1 for each in STARTS if each.key == key) for key in range(KEYS)})


def environment(**settings: Any) -> StreamEnvironment:
    chosen = {"checkpoint_interval_ms": 50, "parallelism": 2} | settings
    return StreamEnvironment(**chosen)


def ended(hop: Hop) -> tuple[int, int, int]:
    return hop.key, hop.first, hop.hops


def goes_on(hop: Hop) -> bool:
    return hop.left >= 0


class Counting(KeyedOperator):
    """Takes a hop off each record; how many it took, by key, goes out at the end."""

    ALL = OutputTag("all")
    taken = ValueState(int, default=0)

    def process(self, hop: Hop, out: Any) -> None:
        self.taken.update(self.taken.value() + 1)
        out.collect(Hop(hop.key, hop.first, hop.left - 1, hop.hops + 1))

    def on_end(self, out: Any) -> None:
        for key in self.keys():
            out.collect_to(self.ALL, (key, self.taken.value()))


def hop(each: Hop) -> Hop:
    return Hop(each.key, each.first, each.left - 1, each.hops + 1)


class AsyncCounting(Counting):
    async def process(self, each: Hop, out: Any) -> None:  # type: ignore[override]
        await asyncio.sleep(0.001 * (each.first % 5))
        self.taken.update(self.taken.value() + 1)
        out.collect(hop(each))


class CompiledCounting(KeyedOperator):
    compiled = True
    taken = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        self.taken.update(self.taken.value() + 1)
        out.collect(Hop(self.key, record.first, record.left - 1, record.hops + 1))


def hopping(env: StreamEnvironment, body: Callable[[DataStream], DataStream]) -> DataStream:
    """A loop in a stream whose body takes a hop off each record."""

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        hopped = body(loop)
        return hopped.filter(lambda each: each[2] >= 0), hopped.filter(lambda each: each[2] < 0)

    return env.from_collection(STARTS, name="starts").iterate(step, name="loop")


def keyed(operator: type[KeyedOperator] = Counting, **settings: Any) -> StreamEnvironment:
    env = environment(**settings)

    def body(loop: DataStream) -> DataStream:
        counted = loop.key_by("key").process(operator, name="count")
        counted.side_output(Counting.ALL).collect(name="totals")
        return counted

    hopping(env, body).map(ended).collect(name="ends")
    return env


KEYED = {"ends": ENDS, "totals": list(TOTALS.items())}


def one_chain(parallelism: int) -> StreamEnvironment:
    env = environment(parallelism=parallelism)
    hopping(env, lambda loop: loop.map(hop)).map(ended).collect(name="ends")
    return env


class Parting(Operator):
    """A whole body: what is at its end leaves by a side output."""

    DONE = OutputTag("done")
    takes = "objects"

    def process_batch(self, batch: Any, out: Any) -> None:
        hopped = [hop(each) for each in batch]
        out.emit([each for each in hopped if goes_on(each)])
        for each in hopped:
            if not goes_on(each):
                out.collect_to(self.DONE, ended(each))


def one_operator() -> StreamEnvironment:
    """The side output leaves the loop."""
    env = environment()

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        parted = loop.process(Parting())
        return parted, parted.side_output(Parting.DONE)

    env.from_collection(STARTS, name="starts").iterate(step, name="loop").collect(name="ends")
    return env


def differing() -> StreamEnvironment:
    env = environment(parallelism=2)
    hopping(env, lambda loop: loop.map(hop, parallelism=3).filter(lambda _: True, parallelism=1)).map(ended).collect(
        name="ends"
    )
    return env


def a_union() -> StreamEnvironment:
    """Two streams go back."""
    env = environment()

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        even = loop.filter(lambda each: each.first % 2 == 0).map(hop)
        odd = loop.filter(lambda each: each.first % 2).key_by("key").process(Counting, name="count")
        both = even.union(odd)
        return even.filter(goes_on).union(odd.filter(goes_on)), both.filter(lambda each: not goes_on(each))

    env.from_collection(STARTS, name="starts").iterate(step, name="loop").map(ended).collect(name="ends")
    return env


def two_loops() -> StreamEnvironment:
    """The second adds what each key's records had in hops, again."""
    env = environment()
    first = hopping(env, lambda loop: loop.key_by("key").process(Counting, name="count"))

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        hopped = loop.key_by("key").process(Counting, name="count-again")
        return hopped.filter(goes_on), hopped.filter(lambda each: not goes_on(each))

    again = first.map(lambda each: Hop(each.key, each.first, each.hops % 3, 0)).iterate(step, name="again")
    again.map(ended).collect(name="ends")
    return env


TWO_LOOPS = [(key, first, hops % 3 + 1) for key, first, hops in ENDS]


class OnceEach(KeyedOperator):
    """The first copy of a record, of as many as there are subtasks."""

    seen = ValueState(bool, default=False)

    def process(self, each: Hop, out: Any) -> None:
        if not self.seen.value():
            self.seen.update(True)
            out.collect(each)


def a_broadcast() -> StreamEnvironment:
    env = environment(parallelism=2)

    def body(loop: DataStream) -> DataStream:
        copies = loop.broadcast().map(hop, parallelism=2)
        return copies.key_by("first", "hops").process(OnceEach, name="once")

    hopping(env, body).map(ended).collect(name="ends")
    return env


# ---- in rounds


class RoundOver(KeyedOperator):
    """The sum of each key's records of a round goes to the two keys behind, when the round is over."""

    kept = ListState(int)

    def process(self, record: tuple[int, int], out: Any) -> None:
        self.kept.add(record[1])
        self.timers.at_event_time(self.timestamp)

    def on_timer(self, timer: Any, out: Any) -> None:
        total = sum(self.kept.get())
        self.kept.clear()
        out.collect(((self.key + 1) % KEYS, total % 97))
        out.collect(((self.key + 2) % KEYS, total % 89))


class AsyncRoundOver(RoundOver):
    async def process(self, record: tuple[int, int], out: Any) -> None:  # type: ignore[override]
        await asyncio.sleep(0.001 * (record[1] % 3))
        super().process(record, out)


ROUNDS = 6


def after_rounds() -> list[tuple[int, int]]:
    records = [(n % KEYS, n) for n in range(30)]
    for _ in range(ROUNDS):
        totals: Counter[int] = Counter()
        for key, value in records:
            totals[key] += value
        records = [
            each
            for key in sorted({key for key, _ in records})
            for each in (((key + 1) % KEYS, totals[key] % 97), ((key + 2) % KEYS, totals[key] % 89))
        ]
    return records


def in_rounds(body: Callable[[DataStream], DataStream], **settings: Any) -> StreamEnvironment:
    env = environment(**settings)
    numbers = env.from_collection([(n % KEYS, n) for n in range(30)], name="numbers")
    numbers.bulk_iterate(body, max_rounds=ROUNDS, name="rounds").collect(name="last")
    return env


def by_timers(operator: type[KeyedOperator] = RoundOver, **settings: Any) -> StreamEnvironment:
    return in_rounds(lambda loop: loop.key_by(0).process(operator, name="over"), **settings)


def by_windows(**settings: Any) -> StreamEnvironment:
    def body(loop: DataStream) -> DataStream:
        summed = loop.key_by(0).window(tumbling(1)).reduce(lambda a, b: (a[0], a[1] + b[1]))
        return summed.flat_map(lambda x: [((x[0] + 1) % KEYS, x[1] % 97), ((x[0] + 2) % KEYS, x[1] % 89)])

    return in_rounds(body, **settings)


SUMMED = pa.schema({"_1": pa.int64(), "_2": pa.int64()})


def spread_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    key, total = (np.asarray(batch.column(name)) for name in ("_1", "total"))
    keys = np.concatenate([(key + 1) % KEYS, (key + 2) % KEYS])
    return pa.RecordBatch.from_arrays(
        [pa.array(keys), pa.array(np.concatenate([total % 97, total % 89]))], schema=SUMMED
    )


def by_columns() -> StreamEnvironment:
    def body(loop: DataStream) -> DataStream:
        return loop.key_by(0).window(tumbling(1)).aggregate(total=Sum("_2")).map_batches(spread_columns, schema=SUMMED)

    env = environment()
    numbers = env.from_collection([(n % KEYS, n) for n in range(30)], name="numbers")
    last = numbers.bulk_iterate(body, max_rounds=ROUNDS, name="rounds")
    last.map(lambda row: (row["_1"], row["_2"])).collect(name="last")
    return env


class Spread(KeyedOperator):
    """A vertex that has changed tells its neighbours, when the round is over."""

    inputs = 2
    edges = ListState(int)
    changed = ValueState(int)

    def process(self, record: tuple[int, int], out: Any) -> None:
        self.changed.update(record[1])
        self.timers.at_event_time(self.timestamp)

    def process_2(self, edge: tuple[int, int], out: Any) -> None:
        self.edges.add(edge[1])

    def on_timer(self, timer: Any, out: Any) -> None:
        for neighbour in self.edges.get():
            out.collect((neighbour, self.changed.value()))


def better(known: Any, new: Any) -> Any:
    return new if new[1] < known[1] else None


def components(**settings: Any) -> StreamEnvironment:
    env = environment(**settings)
    there = [(n, n + 1) for n in range(1, 15) if n % 6]
    edges = env.from_collection([*there, *((b, a) for a, b in there)], name="edges")
    vertices = env.from_collection([(n, n) for n in range(1, 16)], name="vertices")

    def step(changed: DataStream) -> DataStream:
        return changed.key_by(0).connect(edges.key_by(0)).process(Spread, name="spread")

    vertices.delta_iterate(step, key=0, improve=better, name="spreading").collect(name="components")
    return env


COMPONENTS = [(n, (n - 1) // 6 * 6 + 1) for n in range(1, 16)]

SETTINGS: dict[str, dict[str, Any]] = {
    "unaligned at once": {"alignment_timeout_ms": 0},
    "unaligned after 5 ms": {"alignment_timeout_ms": 5},
    "incremental": {"incremental_checkpoints": True},
    "rocksdb": {"state_backend": "rocksdb"},
    "rocksdb, incremental": {"state_backend": "rocksdb", "incremental_checkpoints": True},
    "memory": {"state_backend": "memory"},
    "two checkpoints at once": {"max_concurrent_checkpoints": 2, "checkpoint_interval_ms": 20},
    "two unaligned checkpoints at once": {
        "max_concurrent_checkpoints": 2,
        "checkpoint_interval_ms": 20,
        "alignment_timeout_ms": 0,
    },
}
LAST = after_rounds()

JOBS: dict[str, tuple[Callable[[], StreamEnvironment], Any]] = {
    **{f"stream, {name}": (lambda s=s: keyed(**s), KEYED) for name, s in SETTINGS.items()},
    **{f"rounds, {name}": (lambda s=s: by_timers(**s), {"last": LAST}) for name, s in SETTINGS.items()},
    **{f"delta, {name}": (lambda s=s: components(**s), {"components": COMPONENTS}) for name, s in SETTINGS.items()},
    "stream": (keyed, KEYED),
    "rounds": (by_timers, {"last": LAST}),
    "delta": (components, {"components": COMPONENTS}),
    "windows": (by_windows, {"last": LAST}),
    "columns": (by_columns, {"last": LAST}),
    "async": (lambda: keyed(AsyncCounting), KEYED),
    "async, unaligned": (lambda: keyed(AsyncCounting, alignment_timeout_ms=0), KEYED),
    "async rounds": (lambda: by_timers(AsyncRoundOver), {"last": LAST}),
    "compiled": (lambda: keyed(CompiledCounting), {"ends": ENDS}),
    "one chain, 1": (lambda: one_chain(1), {"ends": ENDS}),
    "one chain, 2": (lambda: one_chain(2), {"ends": ENDS}),
    "one chain, 3": (lambda: one_chain(3), {"ends": ENDS}),
    "one operator": (one_operator, {"ends": ENDS}),
    "differing parallelism": (differing, {"ends": ENDS}),
    "union": (a_union, {"ends": ENDS}),
    "two loops": (two_loops, {"ends": TWO_LOOPS}),
    "broadcast": (a_broadcast, {"ends": ENDS}),
}
