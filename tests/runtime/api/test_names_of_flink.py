"""A class, method or option of Flink, Faust or Bytewax says what is written in its place."""

from __future__ import annotations

import asyncio
import pickle
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import understudy
from understudy import (
    AsyncSettings,
    InvalidOperator,
    OutputTag,
    ProcessWindowFunction,
    StreamEnvironment,
    WatermarkStrategy,
    bounded_out_of_orderness,
    monotonous,
    tumbling,
)
from understudy.runtime.api.names_of_flink import OF_FLINK


def test_an_import_of_one_says_it() -> None:
    with pytest.raises(
        ImportError, match=r"^understudy has no KeyedProcessFunction: subclass KeyedOperator, with proc"
    ):
        from understudy import KeyedProcessFunction  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(ImportError, match=r"has no ValueStateDescriptor: .* ValueState\(int, default=0\)"):
        import_module("understudy").ValueStateDescriptor  # noqa: B018


def test_any_other_name_is_missing_as_in_any_module() -> None:
    assert not hasattr(understudy, "Nothing")
    with pytest.raises(ImportError, match="cannot import name 'Nothing' from 'understudy'"):
        from understudy import Nothing  # type: ignore[attr-defined]  # noqa: F401


@pytest.mark.parametrize("name", sorted(OF_FLINK))
def test_what_is_said_is_there_and_the_name_is_not(name: str) -> None:
    assert name not in dir(understudy)
    for named in re.findall(r"\b(?:[A-Z][a-z]+){2,}\b", OF_FLINK[name]):
        assert named in dir(understudy) or named == "SimulatedCluster"


ENV: Any = StreamEnvironment()
STREAM: Any = ENV.from_collection([{"a": 1, "at": 1}])
WINDOW: Any = STREAM.key_by("a").window(tumbling(ms=1_000))
STRATEGY: Any = WatermarkStrategy


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: WINDOW.allowedLateness, "a window has no 'allowedLateness'; did you mean 'allowed_lateness'?"),
        (lambda: WINDOW.map, "a window has no 'map': say what becomes of its records first"),
        (lambda: STREAM.allowed_lateness, "no 'allowed_lateness': it goes between window(...) and aggregate"),
        (lambda: STREAM.sideOutputLateData, "as in late = windows.aggregate(...).late"),
        (lambda: STREAM.map(str).returns, "types of records are not declared"),
        (lambda: STREAM.print().setParallelism, "the end of a stream has no 'setParallelism': write parallelism=..."),
        (lambda: STREAM.print().map, "the end of a stream has no 'map': write what else is to become of its records"),
        (lambda: STRATEGY.for_bounded_out_of_orderness, "write bounded_out_of_orderness(seconds=5)"),
        (lambda: STRATEGY.forMonotonousTimestamps, "write monotonous()"),
        (lambda: bounded_out_of_orderness(5).withIdleness, "write idle_after_ms=... in assign_timestamps"),  # type: ignore[attr-defined]
        (lambda: monotonous().with_timestamp_assigner, "write assign_timestamps(column_or_function, watermarks)"),  # type: ignore[attr-defined]
        (lambda: StreamEnvironment.get_execution_environment, "write StreamEnvironment(...)"),  # type: ignore[attr-defined]
        (lambda: ENV.get_execution_environment, "write StreamEnvironment(...)"),
        (lambda: ENV.set_runtime_mode, "it is one for all"),
    ],
)
def test_an_attribute_of_flink_says_what_is_written_here(asked: Callable[[], object], said: str) -> None:
    with pytest.raises(AttributeError) as raised:
        asked()
    assert said in str(raised.value)


class OfWindows(ProcessWindowFunction):
    def process(self, window: Any, records: Any, out: Any) -> None: ...


async def fetched(record: Any) -> Any:
    return record


KEYED: Any = STREAM.assign_timestamps("at", monotonous()).key_by("a")
FETCHED: Any = STREAM.map(fetched)
BEHIND = "has no argument 'capacity': write .async_settings(max_in_flight=...) behind it"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: StreamEnvironment(state_backend="hashmap"), "found 'hashmap': leave it out, or write \"filesystem\""),
        (lambda: StreamEnvironment(state_backend="HashMapStateBackend"), ': leave it out, or write "filesystem"'),
        (lambda: StreamEnvironment(state_backend="EmbeddedRocksDB"), ': write state_backend="rocksdb"'),
        (lambda: STREAM.map(fetched, capacity=10), BEHIND),
        (lambda: KEYED.process(OfWindows, capacity=10), BEHIND),
        (lambda: FETCHED.async_settings(capacity=10), "; write max_in_flight=..."),
        (lambda: AsyncSettings(capacity=10), "AsyncSettings has no argument 'capacity': write max_in_flight=..."),  # type: ignore[call-arg]
        (lambda: KEYED.process(OfWindows), "found the ProcessWindowFunction OfWindows: write window(tumbling(minutes"),
        (lambda: KEYED.process(OfWindows()), "write window(tumbling(minutes=1)) before process(OfWindows)"),
        (lambda: STREAM.process(OfWindows), "write window_all(tumbling(minutes=1)) before process(OfWindows)"),
        (lambda: KEYED.interval_join(KEYED, 0, 1).between(0, 1), ": the bounds are arguments: write interval_join("),
        (lambda: KEYED.interval_join(KEYED, 0, 1).lowerBoundExclusive(), "upper_ms, lower_exclusive=True)"),
        (lambda: KEYED.interval_join(KEYED).between(0, 1), "write interval_join(other, lower_ms, upper_ms)"),
    ],
)
def test_a_call_of_flink_says_what_is_written_here(call: Callable[[], object], said: str) -> None:
    with pytest.raises((AttributeError, TypeError, ValueError, InvalidOperator)) as raised:
        call()
    assert said in str(raised.value)


def test_strategies_travel_as_before() -> None:
    assert pickle.loads(pickle.dumps(bounded_out_of_orderness(5))) == bounded_out_of_orderness(5)


def test_a_stream_cannot_be_gone_through() -> None:
    async def as_in_faust() -> None:
        async for _ in STREAM:
            pass

    ways: list[Callable[[], object]] = [lambda: list(STREAM), lambda: STREAM[0], lambda: asyncio.run(as_in_faust())]
    for gone_through in ways:
        with pytest.raises(TypeError, match=r"no records before its job runs: .*job\.results\('rows'\)"):
            gone_through()


def test_types_of_records_are_not_declared() -> None:
    with pytest.raises(TypeError, match="map has no argument 'output_type': leave it out: types of records are not"):
        STREAM.map(str, output_type=str)
    with pytest.raises(ValueError, match=r"schema: .*found <class 'int'>: .* write OutputTag\('late'\)"):
        OutputTag("late", int)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"brokers": "b:9092"}, "write bootstrap_servers='host:9092'"),
        ({"bootstrap_servers": "b:9092", "auto_offset_reset": "latest"}, "write start='earliest'"),
        ({"bootstrap_servers": "b:9092", "value_serializer": "json"}, "write format=..."),
    ],
)
def test_what_clients_of_kafka_call_it(options: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        ENV.from_kafka("orders", **options)
