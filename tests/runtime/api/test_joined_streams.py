"""Joins in a program: what is refused while it is written, which columns come of it, and jobs under failures."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    Collector,
    DataStream,
    ForeignStream,
    InvalidProgram,
    KeyedOperator,
    KeyedStream,
    SchemaMismatch,
    StreamEnvironment,
    Sum,
    UnknownColumn,
    bounded_out_of_orderness,
    monotonous,
    session,
    tumbling,
)
from understudy.testing import assert_exactly_once

LEFT = pa.schema([("id", pa.int64()), ("x", pa.int64()), ("at", pa.int64())])
RIGHT = pa.schema([("id", pa.int64()), ("y", pa.string()), ("at", pa.int64())])


def columns(env: StreamEnvironment, schema: pa.Schema = LEFT, rows: int = 40) -> DataStream:
    records = [{"id": i * 7 % 5, schema.names[1]: i if i % 2 else i + 1, "at": i * 10} for i in range(rows)]
    if pa.types.is_string(schema.field(1).type):
        records = [record | {schema.names[1]: str(record[schema.names[1]])} for record in records]
    made = env.from_collection(records).map_batches(lambda batch: batch, schema=schema)
    return made.assign_timestamps("at", bounded_out_of_orderness(20))


def both() -> tuple[KeyedStream, KeyedStream]:
    env = StreamEnvironment()
    return columns(env).key_by("id"), columns(env, RIGHT).key_by("id")


def test_results_have_the_columns_of_both() -> None:
    left, right = both()
    assert left.join(right).schema.names == ["id", "x", "at", "y", "at_right"]
    assert left.join(right, "left", suffix="2").schema.names == ["kind", "id", "x", "at", "y", "at2"]
    assert left.interval_join(right, 0, 5, how="full").schema.names == ["id", "x", "at", "y", "at_right"]
    windows = left.window_join(right, tumbling(minutes=1))
    assert windows.schema.names == ["window_start", "window_end", "id", "x", "at", "y", "at_right"]
    assert left.top_n(3, "x").schema.names == ["kind", "id", "x", "at", "rank"]
    assert left.top_n(3, "x", rank=None).schema.names == ["kind", "id", "x", "at"]
    assert left.deduplicate().schema == LEFT
    assert left.interval_join(right, 0, 5).late.schema == LEFT
    assert left.interval_join(right, 0, 5).late_right.schema == RIGHT
    assert left.window_join(right, session(minutes=1)).schema is None


def test_keys_of_other_names_are_both_there() -> None:
    env = StreamEnvironment()
    found = columns(env).key_by("id").join(columns(env, RIGHT).key_by("at")).schema
    assert found.names == ["id", "x", "at", "id_right", "y", "at_right"]


@pytest.mark.parametrize(
    ("build", "kind", "text"),
    [
        (
            lambda a, b: a.join(columns(StreamEnvironment(), RIGHT).key_by("id")),
            ForeignStream,
            "different environments",
        ),
        (lambda a, b: a.join(b.map(str)), InvalidProgram, "wanted another keyed stream, found a DataStream"),
        (
            lambda a, b: a.join(b, "outer"),
            InvalidProgram,
            "wanted one of 'inner', 'left', 'right', 'full', found 'outer'",
        ),
        (lambda a, b: a.join(b, ttl_ms=0), InvalidProgram, "ttl_ms: wanted a duration above 0 ms, found 0 ms"),
        (lambda a, b: a.join(b, ttl_ms=5, ttl_time="wall"), InvalidProgram, "wanted 'event' or 'processing' time"),
        (lambda a, b: a.join(b.map(str).key_by("id", "at")), InvalidProgram, "key both by as many parts"),
        (lambda a, b: a.interval_join(b, 5, 1), InvalidProgram, "wanted lower_ms at most upper_ms, found 5 and 1"),
        (lambda a, b: a.interval_join(b, 1, 1, lower_exclusive=True), InvalidProgram, "nothing is between them"),
        (lambda a, b: a.temporal_join(b, "full"), InvalidProgram, "wanted how='inner' or 'left', found 'full'"),
        (lambda a, b: a.window_join(b, 5), Exception, "wanted an assigner such as tumbling"),
        (lambda a, b: a.deduplicate("newest"), InvalidProgram, "wanted keep='first' or 'last', found 'newest'"),
        (lambda a, b: a.deduplicate("last", within_ms=5), InvalidProgram, "within_ms goes with keep='first'"),
        (lambda a, b: a.top_n(0, "x"), InvalidProgram, "wanted a number of records above 0, found 0"),
        (lambda a, b: a.top_n(1, "z"), SchemaMismatch, "there is no column 'z' to sort by"),
        (lambda a, b: b.top_n(1, "y"), SchemaMismatch, "wanted columns of numbers or times to sort by, found 'y'"),
        (lambda a, b: a.top_n(1, ["x", "at"], descending=[True]), InvalidProgram, "or one for each of"),
        (lambda a, b: a.top_n(1, "x", rank="at"), SchemaMismatch, "the results have a column 'at' of their own"),
        (lambda a, b: a.join(b, suffix=""), SchemaMismatch, "the results would have two columns 'at'"),
        (lambda a, b: a.join(b.key_by("y")), SchemaMismatch, "has type int64 and 'y' of the right has string"),
        (lambda a, b: a.lookup_join(b), InvalidProgram, "wanted the key columns as on=..."),
        (lambda a, b: a.lookup_join(b, left_on="id"), InvalidProgram, "as left_on=... and right_on=..."),
        (lambda a, b: a.lookup_join([1], on="id"), InvalidProgram, "wanted a stream, a pyarrow.Table"),
        (lambda a, b: a.map(str).lookup_join(b, on="id"), SchemaMismatch, "the columns of the stream are not known"),
        (lambda a, b: a.join(b).late, InvalidProgram, "has no late records: read `late` of the stream that windows"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(
    build: Callable[[Any, Any], Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as raised:
        build(*both())
    assert text in str(raised.value)


def test_a_method_of_keyed_streams_on_another_one_says_what_is_missing() -> None:
    stream: Any = columns(StreamEnvironment())
    with pytest.raises(
        AttributeError, match=r"join needs a keyed stream: call key_by\(\.\.\.\) of both streams before it"
    ):
        stream.join(stream)
    with pytest.raises(AttributeError, match="a DataStream has no 'joyn'"):
        _ = stream.joyn


def test_a_function_may_give_the_event_time() -> None:
    timed = StreamEnvironment().from_collection([1, 2]).assign_timestamps(lambda record: record, monotonous())
    assert timed.bounded


def _regular(env: StreamEnvironment) -> DataStream:
    return columns(env).key_by("id").join(columns(env, RIGHT).key_by("id"))


def _interval(env: StreamEnvironment) -> DataStream:
    return columns(env).key_by("id").interval_join(columns(env, RIGHT).key_by("id"), -50, 50, how="full")


def _temporal(env: StreamEnvironment) -> DataStream:
    return columns(env).key_by("id").temporal_join(columns(env, RIGHT).key_by("id"), "left")


def _window(env: StreamEnvironment) -> DataStream:
    return columns(env).key_by("id").window_join(columns(env, RIGHT).key_by("id"), tumbling(100), how="left")


def _per_record(env: StreamEnvironment) -> DataStream:
    left, right = (
        columns(env, schema).map(lambda row: tuple(row)).key_by(lambda row: row[0]) for schema in (LEFT, RIGHT)
    )
    return left.interval_join(right, -50, 50, how="left")


@pytest.mark.drawn
@pytest.mark.parametrize("join", [_regular, _interval, _temporal, _window, _per_record])
def test_results_are_exact_under_failures(join: Callable[[StreamEnvironment], DataStream]) -> None:
    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=50)
        join(env).collect(name="out")
        return env

    assert_exactly_once(build, histories=8)


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (lambda a, b: a.deduplicate(hours=1), "TimeToLive(ttl_ms=3600000"),
        (lambda a, b: a.deduplicate(within_ms=timedelta(minutes=1)), "TimeToLive(ttl_ms=60000"),
        (lambda a, b: a.join(b, minutes=1, seconds=30, name="j"), "TimeToLive(ttl_ms=90000"),
        (lambda a, b: a.interval_join(b, timedelta(0), timedelta(hours=1)), "upper_ms=3600000"),
    ],
)
def test_durations_are_ms_timedeltas_or_units(made: Any, wanted: str) -> None:
    env = StreamEnvironment()
    a, b = (env.from_collection([{"k": 1}], name=name).key_by("k") for name in "ab")
    assert wanted in repr(vars(made(a, b)._own_node().operator))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda a: a.deduplicate(within_ms=5, hours=1), "within_ms: .*found both a duration and keywords"),
        (lambda a: a.deduplicate(hours="1"), "within_ms: hours: wanted a whole number"),
        (
            lambda a: a.interval_join(a, "0", 5),
            "interval_join: lower_ms: wanted a whole number of milliseconds or a timedelta",
        ),
    ],
)
def test_what_is_no_duration_is_refused(made: Any, says: str) -> None:
    stream = StreamEnvironment().from_collection([{"k": 1}]).key_by("k")
    with pytest.raises(InvalidProgram, match=says):
        made(stream)


NUMBERED, LETTERED = {"k": 1, "n": (1, "a")}, {"k": "1", "n": (1, "a")}


@pytest.mark.parametrize(
    "join",
    [
        lambda one, other: one.join(other),
        lambda one, other: one.interval_join(other, 0, 5),
        lambda one, other: one.temporal_join(other),
        lambda one, other: one.window_join(other, tumbling(5)),
        lambda one, other: one.co_group(other, tumbling(5), print),
        lambda one, other: one.connect(other),
    ],
)
def test_keys_that_can_never_be_equal_are_refused(join: Callable[[Any, Any], DataStream]) -> None:
    env = StreamEnvironment()
    numbers = env.from_collection([NUMBERED]).filter(bool).assign_timestamps(lambda record: 1, monotonous())
    letters, rows = env.from_collection([LETTERED]), columns(env)
    says = "key 1 of 1 is a number in the first stream and a str in the second.* convert one"
    for one, other in ((numbers.key_by("k"), letters.key_by("k")), (rows.key_by("id"), letters.key_by("k"))):
        with pytest.raises(InvalidProgram, match=says):
            join(one, other)


def test_keys_that_may_be_equal_are_let_be() -> None:
    env = StreamEnvironment()
    numbers, letters = env.from_collection([NUMBERED]), env.from_collection([LETTERED])
    others = env.from_collection([{"k": 1.0}, {"k": "2"}])
    numbers.key_by("k").join(others.key_by("k"))
    letters.key_by("k").join(others.key_by("k"))
    numbers.key_by("n").join(letters.key_by("n"))
    numbers.map(str).key_by(0).join(letters.key_by("k"))
    numbers.key_by(lambda record: str(record["k"])).join(letters.key_by("k"))
    numbers.union(letters).key_by("k").join(letters.key_by("k"))
    numbers.union(letters.map(dict)).key_by("k").join(letters.key_by("k"))


PAIRS: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda a, b: a.join(b), r"(left, right)"),
    (lambda a, b: a.join(b, "left"), r"(kind, left, right)"),
    (lambda a, b: a.interval_join(b, -5, 5), r"(left, right)"),
    (lambda a, b: a.temporal_join(b), r"(left, right)"),
    (lambda a, b: a.window_join(b, tumbling(ms=5)), r"(left, right)"),
    (lambda a, b: a.join(b).filter(bool), r"(left, right)"),
    (lambda a, b: a.top_n(1, "x"), r"(kind, record, rank)"),
    (lambda a, b: a.top_n(1, "x", rank=None), r"(kind, record)"),
    (lambda a, b: a.deduplicate("last"), r"(kind, record)"),
]


@pytest.mark.parametrize(("join", "shape"), PAIRS)
def test_a_column_of_pairs_is_refused_where_it_is_written(join: Callable[[Any, Any], Any], shape: str) -> None:
    env = StreamEnvironment()
    rows = [{"x": 1, "at": 5}]
    first, second = (
        env.from_collection(rows).assign_timestamps("at", bounded_out_of_orderness(5)).key_by("x") for _ in range(2)
    )
    joined = join(first, second)
    text = rf"results of '.*' are {re.escape(shape)}, which have no 'x': write map\(...\) behind it"
    with pytest.raises(UnknownColumn, match=f"^key_by: {text}"):
        joined.key_by("x")
    with pytest.raises(UnknownColumn, match=f"^assign_timestamps: {text}"):
        joined.assign_timestamps("x", bounded_out_of_orderness(5))
    with pytest.raises(UnknownColumn, match=f"^aggregate: {text}"):
        joined.key_by("_1").aggregate(total=Sum("x"))
    joined.map(lambda pair: pair[0]).key_by("x")
    joined.key_by(0).process(Ignore)


class Ignore(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None: ...
