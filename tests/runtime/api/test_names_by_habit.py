"""What one writes by habit who knows Kafka Streams, Spark, Beam, Bytewax, Faust or Quix is answered with what is
written here.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest

import understudy.testing
from understudy import (
    AggregateFunction,
    FileSink,
    KafkaSink,
    KafkaSource,
    StreamEnvironment,
    Sum,
    count,
    event_time,
    global_window,
    monotonous,
    never,
    session,
    sliding,
    tumbling,
)
from understudy.runtime.api.imported_by_habit import BY_HABIT
from understudy.runtime.api.translation import translate

ENV: Any = StreamEnvironment()
STREAM: Any = ENV.from_collection([{"id": 1, "at": 1}])
KEYED: Any = STREAM.key_by("id")
WINDOW: Any = KEYED.window(tumbling(ms=1_000))
ANY_CLASS: dict[str, Any] = {each.__name__: each for each in (KafkaSource, KafkaSink, FileSink)}
MAKE: dict[str, Any] = {each.__name__: each for each in (tumbling, sliding, session)}


class Total(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, accumulator: int, record: Any) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: STREAM.groupByKey, "a DataStream has no 'groupByKey': write key_by(...) in its place"),
        (lambda: STREAM.filterNot, "write filter(lambda record: not ...)"),
        (lambda: STREAM.applyInPandasWithState, "write key_by(...).process(...) with a KeyedOperator"),
        (
            lambda: STREAM.foreachBatch,
            "write sink_to(...) with a LedgerSink or an IdempotentSink: map would write again",
        ),
        (lambda: STREAM.dropDuplicatesWithinWatermark, "write key_by(...).deduplicate(minutes=10)"),
        (lambda: STREAM.redistribute, "write rebalance()"),
        (lambda: STREAM.hopping_window, "write key_by(...).window(sliding(size, slide))"),
        (lambda: STREAM.to_topic, "write to_kafka(topic, servers)"),
        (lambda: WINDOW.suppress, "a window has no 'suppress': leave it out: a window gives one result when it ends"),
        (lambda: WINDOW.current, "write trigger(count(1)) before it for a result with each record"),
        (lambda: WINDOW.grace, "write allowed_lateness(minutes=1)"),
        (lambda: ENV.readStream, "write from_kafka(...), from_files("),
        (lambda: ENV.SetTable, "a KeyedOperator with a MapState"),
        (lambda: ENV.crontab, "write generate(lambda tick: tick"),
        (lambda: ANY_CLASS["KafkaSource"].builder, "KafkaSource has no 'builder': write env.from_kafka(\"topic\""),
        (lambda: ANY_CLASS["KafkaSink"].builder, "write stream.to_kafka("),
        (lambda: ANY_CLASS["FileSink"].for_row_format, 'write FileSink("out", format="parquet")'),
        (lambda: ANY_CLASS["FileSink"].forBulkFormat, "FileSink has no 'forBulkFormat'"),
        (lambda: getattr(Sum("n"), "alias"), "an aggregate has no 'alias': its name comes before it"),  # noqa: B009
    ],
)
def test_of_an_attribute(asked: Callable[[], object], said: str) -> None:
    with pytest.raises(AttributeError) as raised:
        asked()
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: MAKE["tumbling"](10, expires=60), "tumbling has no argument 'expires': windows are kept for late"),
        (lambda: MAKE["session"](minutes=5, grace=1), "session has no argument 'grace': windows are kept for late"),
        (lambda: MAKE["sliding"](size=600, period=60), "sliding has no argument 'period': write slide=..."),
        (
            lambda: MAKE["session"](minutes=5, offset=1),
            "'offset': leave it out: a session begins with",
        ),
        (
            lambda: MAKE["session"](minutes=5, timezone="UTC"),
            "'timezone': leave it out: a session begins",
        ),
        (lambda: MAKE["session"](size_ms=5), "session has no argument 'size_ms': the gap comes first, and without a"),
        (lambda: MAKE["sliding"](size_ms=5, slide_ms=5), "'size_ms': write size=... and slide=..., each a timed"),
        (lambda: MAKE["sliding"](size=5, slide_ms=5), "'slide_ms': write size=... and slide=..., each a timedelta"),
        (lambda: MAKE["tumbling"](length=timedelta(minutes=1)), "the size comes first, and without a name"),
        (lambda: MAKE["tumbling"](minutes=1, align_to=0), "write offset_ms=... to shift them"),
        (lambda: MAKE["tumbling"](10.0), "found 10.0: if it is in seconds, write timedelta(seconds=10.0)"),
        (lambda: MAKE["tumbling"](60_000, fortnights=1), "no unit fortnights; wanted some of days"),
        (lambda: WINDOW.aggregate(Total(), window_function=print), "'window_function': it is the second argument"),
        (lambda: WINDOW.aggregate(Total(), output_type=int), "'output_type': leave it out: types of records are not"),
        (lambda: KEYED.join(KEYED, lambda left, right: left), "write map(...) behind join(other)"),
        (lambda: KEYED.join(KEYED, on="id"), "'on': it is what both are keyed by"),
        (lambda: STREAM.lookup_join(pa.table({"id": [1]}), "id", "inner"), "write lookup_join(..., how='inner')"),
        (lambda: STREAM.lookup_join(pa.table({"id": [1]}), "id", "left_outer"), "lookup_join(..., how='left_outer')"),
        (lambda: KEYED.window_join(KEYED, tumbling(ms=1), "outer"), "write window_join(..., how='outer')"),
        (lambda: KEYED.interval_join(KEYED, 1, 2, "outer"), "write interval_join(..., how='outer')"),
        (lambda: STREAM.map(str, "upper"), "write map(..., name='upper')"),
        (lambda: STREAM.lookup_join(pa.table({"id": [1]}), on=0), "or a list of names, found 0"),
        (lambda: KEYED.reduce(max, 0), "reduce takes 1 argument without its name (function), found a second, 0. Ther"),
        (lambda: STREAM.map(str, expand=True), "'expand': write flat_map(...) in its place"),
        (lambda: STREAM.flat_map(str, expand=True), "'expand': leave it out: each item of a result is a record"),
        (lambda: STREAM.process(Total, stateful=True), "process has no argument 'stateful'. There are operator,"),
        (lambda: KEYED.join(KEYED, within=5), "'within': write window_join(...) or interval_join(...)"),
        (lambda: KEYED.join(KEYED, windows=5), "'windows': write window_join(...) or interval_join(...)"),
        (lambda: KEYED.interval_join(KEYED, within=5), "'within': its bounds come second and third, as in"),
        (lambda: KEYED.window_join(KEYED, windows=5), "'windows': windows come second, as in window_join(other, tum"),
        (lambda: KEYED.process(Total, within=5), "process has no argument 'within'. There are operator, schema,"),
        (lambda: STREAM.map(str, windows=5), "map has no argument 'windows'. There are function, name, paral"),
        (lambda: STREAM.map(str, output_mode="update"), "map has no argument 'output_mode'. There are function,"),
        (lambda: WINDOW.reduce(max, output_mode="update"), "'output_mode': a window gives its result when it ends"),
        (lambda: STREAM.map(str, stateful=True), "'stateful': write key_by(...).process(...) with a KeyedOperator"),
        (lambda: STREAM.key_by("id", key_type=int), "'key_type': leave it out"),
        (lambda: STREAM.print(1), "print: prefix: wanted a text, found 1"),
        (lambda: STREAM.__setitem__("total", 1), "write map(lambda row: {**row, 'total': value})"),
        (lambda: ENV.from_source(STREAM, monotonous()), "write from_source(Numbers).assign_timestamps("),
        (lambda: StreamEnvironment("orders"), "the name of a job is given to submit"),  # type: ignore[arg-type]
        (lambda: StreamEnvironment("4"), "parallelism: wanted an integer of at least 1, found '4'"),  # type: ignore[arg-type]
        (lambda: StreamEnvironment(checkpointLocation="x"), "write checkpoint_dir=...; a job that is started"),  # type: ignore[call-arg]
        (lambda: StreamEnvironment(broker="kafka://"), "'broker': it is given to each source"),  # type: ignore[call-arg]
    ],
)
def test_of_a_call(call: Callable[[], object], said: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    assert said in str(raised.value)


def test_an_aggregate_may_have_such_a_name() -> None:
    WINDOW.aggregate(output_type=Sum("at"))


@pytest.mark.parametrize("name", sorted(BY_HABIT))
def test_an_import_says_what_is_written_here(name: str) -> None:
    with pytest.raises(ImportError, match=re.escape(f"understudy has no {name}: {BY_HABIT[name]}")):
        getattr(import_module("understudy"), name)
    for named in re.findall(r"\b(?:[A-Z][a-z]+){2,}\b", BY_HABIT[name]):
        assert named in dir(understudy) or named in dir(understudy.testing)


@pytest.mark.parametrize(
    ("trigger", "warns"), [(None, True), (never(), True), (count(3), False), (event_time(), False)]
)
def test_a_global_window_that_never_fires_is_warned_of(
    caplog: pytest.LogCaptureFixture, trigger: Any, warns: bool
) -> None:
    env = StreamEnvironment()
    windows = env.from_collection([{"id": 1}]).key_by("id").window(global_window())
    (windows if trigger is None else windows.trigger(trigger)).reduce(max, name="best").print()
    with caplog.at_level(logging.WARNING):
        translate(env, default_parallelism=1, task_managers=1, work_dir="work")
    assert ("operator 'best' gives no results: global_window() never fires" in caplog.text) == warns


def test_streams_that_kafka_streams_groups_together_are_united_and_then_keyed() -> None:
    with pytest.raises(AttributeError, match=re.escape("write first.union(second).key_by(...) in its place")):
        _ = KEYED.cogroup
    env = StreamEnvironment(parallelism=1)
    first, second = env.from_collection([{"id": 1, "n": 2}]), env.from_collection([{"id": 1, "n": 3}])
    first.union(second).key_by("id").aggregate("end", total=Sum("n")).collect(name="out")
    with understudy.testing.SimulatedCluster(1, seed=1) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert [row["total"] for row in job.results("out")] == [5]
