"""Windows in a program: what is refused while it is written, and whole jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    AggregateFunction,
    Avg,
    Change,
    Count,
    DataStream,
    InvalidOperator,
    InvalidProgram,
    InvalidWindow,
    KeyedStream,
    LocalCluster,
    Max,
    ProcessWindowFunction,
    SchemaMismatch,
    StreamEnvironment,
    Sum,
    TimeWindow,
    any_of,
    bounded_out_of_orderness,
    continuous_event_time,
    continuous_processing_time,
    count,
    count_window,
    cumulative,
    event_time,
    keep_last,
    monotonous,
    processing_time,
    session,
    sliding,
    tumbling,
)

BIDS = [
    {"auction": auction, "price": price, "at": at}
    for auction, price, at in [
        ("a", 3, 0),
        ("b", 5, 400),
        ("a", 9, 900),
        ("a", 1, 1100),
        ("b", 2, 2500),
        ("a", 4, 2600),
    ]
]


def bids(env: StreamEnvironment | None = None, records: Sequence[Any] = BIDS) -> DataStream:
    stream = (env or StreamEnvironment()).from_collection(records, name="bids")
    return stream.assign_timestamps("at", bounded_out_of_orderness(1000))


def keyed() -> KeyedStream:
    return bids().key_by("auction")


def results(build: Callable[[DataStream], DataStream]) -> list[Any]:
    """What comes out of a job over the bids, in no order."""
    env = StreamEnvironment(parallelism=1)
    build(bids(env)).collect(name="results")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env, "windows")
        job.wait()
        return sorted(job.results("results"), key=repr)


# -- whole jobs


def test_named_aggregates_make_a_row_per_key_and_window() -> None:
    found = results(lambda s: s.key_by("auction").window(tumbling(seconds=1)).aggregate(n=Count(), best=Max("price")))
    assert [tuple(row.asdict().values()) for row in found] == [
        ("a", 0, 1000, 2, 9),
        ("a", 1000, 2000, 1, 1),
        ("a", 2000, 3000, 1, 4),
        ("b", 0, 1000, 1, 5),
        ("b", 2000, 3000, 1, 2),
    ]
    assert list(found[0].asdict()) == ["auction", "window_start", "window_end", "n", "best"]


@pytest.mark.parametrize(
    ("key", "column"),
    [((lambda bid: bid["auction"],), "key"), (("auction", "price"), "auction"), (("auction",), "auction")],
)
def test_the_columns_of_the_key_are_called_as_in_key_by(key: Any, column: str) -> None:
    found = results(lambda s: s.key_by(*key).window(session(seconds=10)).aggregate(n=Count()))
    assert sum(row.n for row in found) == 6
    assert next(iter(found[0].asdict())) == column


def test_reduce_emits_the_result_or_what_a_function_makes_of_it() -> None:
    def dearer(one: Any, other: Any) -> Any:
        return max(one, other, key=lambda bid: bid["price"])

    windows = sliding(2000, 1000)
    assert len(results(lambda s: s.key_by("auction").window(windows).reduce(dearer))) == 8
    found = results(
        lambda s: (
            s.key_by("auction")
            .window(windows)
            .reduce(dearer, lambda key, window, bids, out: out.collect((key, window, bids[0]["price"])))
        )
    )
    assert found[:2] == [("a", TimeWindow(-1000, 1000), 9), ("a", TimeWindow(0, 2000), 9)]


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, accumulator: Any, bid: Any) -> Any:
        return accumulator[0] + bid["price"], accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]


class Largest(ProcessWindowFunction):
    def process(self, window: Any, records: Sequence[Any], out: Any) -> None:
        out.collect((self.key, window.end, max(bid["price"] for bid in records)))


def test_aggregate_and_process_take_functions_of_ones_own() -> None:
    assert results(lambda s: s.key_by("auction").window(tumbling(seconds=10)).aggregate(Mean)) == [3.5, 4.25]
    assert results(lambda s: s.key_by("auction").window(cumulative(1000, 3000)).process(Largest)) == [
        ("a", 1000, 9),
        ("a", 2000, 9),
        ("a", 3000, 9),
        ("b", 1000, 5),
        ("b", 2000, 5),
        ("b", 3000, 5),
    ]


def test_times_may_come_from_a_function() -> None:
    env = StreamEnvironment(parallelism=1)
    timed = env.from_collection([("a", 0), ("a", 1500)]).assign_timestamps(lambda record: record[1], monotonous())
    timed.key_by(0).window(tumbling(seconds=1)).aggregate(n=Count()).collect(name="results")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert [(row[0], row.window_end) for row in job.results("results")] == [("a", 1000), ("a", 2000)]


def test_window_all_takes_all_records_together() -> None:
    found = results(lambda s: s.window_all(tumbling(seconds=2)).aggregate(n=Count(), total=Sum("price")))
    assert [tuple(row.asdict().items()) for row in found] == [
        (("window_start", 0), ("window_end", 2000), ("n", 4), ("total", 18)),
        (("window_start", 2000), ("window_end", 4000), ("n", 2), ("total", 6)),
    ]


def test_early_firings_counts_and_the_last_records() -> None:
    def build(stream: DataStream) -> DataStream:
        windows = stream.key_by("auction").window(tumbling(seconds=10)).trigger(any_of(event_time(), count(3)))
        return windows.evictor(keep_last(2)).process(lambda key, _, bids, out: out.collect((key, len(bids))))

    assert results(build) == [("a", 2), ("a", 2), ("b", 2)]
    found = results(lambda s: s.key_by("auction").window(count_window(2)).aggregate(mean=Avg("price")))
    assert [(row.auction, row.mean) for row in found] == [("a", 2.5), ("a", 6.0), ("b", 3.5)]


def test_retracting_windows_emit_changes() -> None:
    def build(stream: DataStream) -> DataStream:
        windows = stream.key_by("auction").window(tumbling(seconds=10)).trigger(count(2)).retracting()
        return windows.reduce(
            lambda a, b: {**a, "price": a["price"] + b["price"]},
            lambda key, _, bids, out: out.collect((key, bids[0]["price"])),
        )

    kinds = [("+I", ("a", 12)), ("+I", ("b", 7)), ("+U", ("a", 17)), ("-U", ("a", 12))]
    assert results(build) == [Change(*each) for each in kinds]


def test_late_records_are_a_stream() -> None:
    env = StreamEnvironment(parallelism=1, batch_rows=1, buffer_timeout_ms=0)
    records = [{"auction": "a", "price": n, "at": at} for n, at in enumerate([0, 5000, 1500, 100])]
    stream = env.from_collection(records).assign_timestamps("at", monotonous())
    windowed = stream.key_by("auction").window(tumbling(seconds=1)).allowed_lateness(seconds=3).aggregate(n=Count())
    windowed.collect(name="windows")
    windowed.late.map(lambda bid: bid["at"]).collect(name="late")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert sorted(job.results("late")) == [100, 1500]


def test_windows_of_columns_take_rows() -> None:
    schema = pa.schema([("auction", pa.string()), ("at", pa.int64())])
    env = StreamEnvironment(parallelism=1)
    batch = pa.RecordBatch.from_pylist([{"auction": "ab"[n % 2], "at": n * 100} for n in range(30)], schema)
    stream = env.from_collection([0]).map_batches(lambda _: batch, schema=schema)
    timed = stream.assign_timestamps("at", bounded_out_of_orderness(0))
    timed.key_by("auction").window(session(seconds=1)).aggregate(n=Count()).collect(name="results")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert sorted((row.auction, row.n) for row in job.results("results")) == [("a", 15), ("b", 15)]


# -- refused


def clocked() -> Any:
    return keyed().window(tumbling(1, time="processing"))


def test_triggers_of_both_times_may_be_put_together_for_windows_of_event_time() -> None:
    windows = keyed().window(tumbling(1))
    windows.trigger(any_of(event_time(), processing_time())).accumulating().accumulating()
    windows.trigger(continuous_processing_time(seconds=1))
    clocked().trigger(any_of(processing_time(), continuous_processing_time(seconds=1)))


@pytest.mark.parametrize(
    ("build", "error", "says"),
    [
        (lambda: keyed().window("minute"), InvalidWindow, "wanted an assigner such as"),
        (lambda: keyed().window(tumbling(1)).trigger(count), InvalidWindow, "wanted a trigger such as"),
        (lambda: keyed().window(tumbling(1)).evictor(3), InvalidWindow, "wanted an evictor such as"),
        (lambda: keyed().window(tumbling(1)).allowed_lateness(-1), InvalidWindow, "at least 0 ms"),
        (lambda: keyed().window(count_window(3)).allowed_lateness(5), InvalidWindow, "does not go by event time"),
        (lambda: keyed().window(count_window(3)).retracting(), InvalidWindow, "a purging trigger"),
        (lambda: keyed().window(session(1)).aggregate(Mean()), InvalidWindow, "Mean: .*merge"),
        (lambda: keyed().window(tumbling(1)).aggregate(), InvalidProgram, "found neither"),
        (lambda: keyed().window(tumbling(1)).aggregate(Mean(), n=Count()), InvalidProgram, "found both"),
        (lambda: keyed().window(tumbling(1)).aggregate(Count(), n=Count()), InvalidProgram, r"Count\(\) has no name"),
        (
            lambda: keyed().window(tumbling(1)).aggregate("start", n=Count()),
            InvalidProgram,
            r"found 'start' before them. Each row has the key \('auction'\) and window_start, window_end in any case: "
            r"leave 'start' out; to group by a column of that name, write key_by\('auction', 'start'\)$",
        ),
        (
            lambda: keyed().window(count_window(3)).aggregate("auction", n=Count()),
            InvalidProgram,
            r"Each row has the key \('auction'\) in any case: leave 'auction' out$",
        ),
        (
            lambda: keyed().aggregate("auction", n=Count()),
            InvalidProgram,
            r"emit: wanted 'updates' or 'end', found 'auction'. Each row has the key \('auction'\) in any case",
        ),
        (lambda: keyed().window(tumbling(1)).aggregate(n=Count), InvalidWindow, r"n: wanted an aggregate such as"),
        (lambda: keyed().window(tumbling(1)).aggregate(auction=Count()), InvalidWindow, "two columns of the result"),
        (lambda: keyed().window(tumbling(1)).aggregate(len), InvalidOperator, "of AggregateFunction"),
        (lambda: keyed().window(tumbling(1)).aggregate(AggregateFunction), InvalidOperator, "does not define .*create"),
        (lambda: keyed().window(tumbling(1)).process(lambda key, bids: None), InvalidOperator, "found one of 2"),
        (lambda: keyed().window(tumbling(1)).process(None), InvalidProgram, "found None"),
        (
            lambda: keyed().window(tumbling(1)).process(ProcessWindowFunction),
            InvalidOperator,
            "does not define process",
        ),
        (lambda: keyed().window(tumbling(1)).reduce(3), InvalidOperator, "reduce: wanted a function"),
        (lambda: bids().late, InvalidProgram, "'assign-timestamps-1' has no late records"),
        (lambda: keyed().window(session(1)).trigger(continuous_event_time(0)), InvalidWindow, "above 0 ms"),
        (lambda: clocked().trigger(event_time()), InvalidWindow, "goes by event time, and the windows by the clock"),
        (lambda: clocked().trigger(any_of(continuous_event_time(5), count(2))), InvalidWindow, "goes by event time"),
        (lambda: keyed().window(tumbling(1)).trigger(processing_time()), InvalidWindow, "forgotten when the watermark"),
        (lambda: keyed().window(tumbling(1)).trigger(processing_time()).discarding(), InvalidWindow, "forgotten when"),
        (
            lambda: keyed().window(tumbling(1)).trigger(count(2)).trigger(count(3)),
            InvalidWindow,
            "n=2.* is set, .*n=3",
        ),
        (
            lambda: keyed().window(tumbling(1)).evictor(keep_last(2)).evictor(keep_last(3)),
            InvalidWindow,
            "is set",
        ),
        (lambda: keyed().window(tumbling(1)).retracting().discarding(), InvalidWindow, "are retracting already"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_is_written(
    build: Callable[[], Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        build()


def test_aggregates_are_checked_against_known_columns() -> None:
    schema = pa.schema([("auction", pa.string()), ("at", pa.int64())])
    stream = StreamEnvironment().from_collection([0]).map_batches(lambda batch: batch, schema=schema)
    windows = stream.assign_timestamps("at", monotonous()).key_by("auction").window(tumbling(1))
    with pytest.raises(SchemaMismatch, match="there is no such column"):
        windows.aggregate(n=Max("price"))


def test_a_stream_of_windows_is_not_changed_by_what_is_made_of_it() -> None:
    windows = keyed().window(tumbling(1))
    early = windows.trigger(count(1))
    assert windows != early
    assert early.accumulating() != early
