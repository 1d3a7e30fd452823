"""A call with what it does not take says what it takes: clusters, aggregates, restart strategies, file sources."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.compute as pc
import pytest

from understudy import (
    ClusterTooSmall,
    Count,
    FileSink,
    InvalidProgram,
    InvalidSetting,
    LocalCluster,
    RemoteCluster,
    SparkCluster,
    StandaloneCluster,
    StreamEnvironment,
    Sum,
    ValueState,
    exponential_delay,
    failure_rate,
    fixed_delay,
)
from understudy.testing import DebugCluster


class Colour(Enum):
    RED = 1


def build() -> StreamEnvironment:
    env = StreamEnvironment()
    env.from_collection([{"origin": "JFK", "distance": 4.0}]).collect(name="all")
    return env


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (build, r"found the function build: call it, as in submit\(build\(\)\)"),
        (build().from_collection([1]), r"found a DataStream: give the StreamEnvironment that it was built on"),
        (build().from_collection([1]).collect(), r"found a DataStreamSink: give the StreamEnvironment that it was"),
        (StreamEnvironment, r"found the class StreamEnvironment: call it, as in submit\(StreamEnvironment\(\)\)"),
        (
            "word_count",
            r"found 'word_count' \(str\): the environment comes first, as in submit\(env, name='word_count'\)",
        ),
        (None, r"found None: does the function that builds it end without `return env`\?"),
        (3, r"found 3 \(int\)"),
    ],
)
def test_what_is_no_environment_cannot_be_submitted(given: Any, text: str) -> None:
    with pytest.raises(InvalidProgram, match=f"submit: wanted a StreamEnvironment, {text}"):
        LocalCluster().translate(given)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fixed_delay(retries=3), "fixed_delay has no argument 'retries'. There are attempts, delay_ms"),  # type: ignore[call-arg]
        (lambda: fixed_delay(3, delay=10), "fixed_delay has no argument 'delay'; did you mean 'delay_ms'"),  # type: ignore[call-arg]
        (lambda: failure_rate(failures=3), "failure_rate has no argument 'failures'; did you mean 'max_failures'"),  # type: ignore[call-arg]
        (lambda: exponential_delay(max_delay_ms=3), "exponential_delay has no argument 'max_delay_ms'; did you mean"),  # type: ignore[call-arg]
        (lambda: StreamEnvironment().from_csv("x.csv", delimeter=","), "from_csv has no argument 'delimeter'"),  # type: ignore[call-arg]
        (
            lambda: StreamEnvironment().from_jsonl("x", colums=["a"]),  # type: ignore[call-arg]
            "from_jsonl has no argument 'colums'; did you mean 'columns'",
        ),
    ],
)
def test_a_keyword_that_there_is_not_gets_those_that_there_are(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda stream: stream.aggregate(Count()),
            r"aggregate: Count\(\) has no name: write aggregate\(count=Count\(\)\)",
        ),
        (lambda stream: stream.aggregate(Sum("distance")), r"write aggregate\(sum=Sum\('distance'\)\)"),
        (lambda stream: stream.aggregate("distance"), r"found 'distance': write aggregate\(sum=Sum\('distance'\)\)"),
        (lambda stream: stream.aggregate(Count), r"found the class Count: write aggregate\(count=Count\(\)\)"),
        (lambda stream: stream.aggregate(n=Count), r"n: .*found the class Count: write n=Count\(\)"),
        (lambda stream: stream.aggregate(n=Sum), r"n: .*found the class Sum: write n=Sum\('column'\)"),
        (lambda stream: stream.aggregate(n="distance"), r"n: .*found 'distance': write n=Sum\('distance'\)"),
    ],
)
def test_an_aggregate_without_a_name_or_a_column_is_shown_as_it_is_written(
    call: Callable[[Any], Any], text: str
) -> None:
    rows = [{"origin": "JFK", "distance": 4.0}]
    with pytest.raises(ValueError, match=text):
        call(StreamEnvironment().from_collection(rows).key_by("origin"))


@pytest.mark.parametrize(
    ("read", "written", "is_refused"),
    [
        ("data", "data", True),
        ("data/*.csv", "data", True),
        ("data/**/*.csv", "data/out", True),
        ("data/*", "data/", True),
        ("data/flights.csv", "data", False),
        ("data/fl*.csv", "data", False),
        ("data/*.csv", "data/out", False),
        ("data", "data-out", False),
    ],
)
def test_a_sink_into_the_folder_that_its_job_reads_is_refused(
    tmp_path: Path, read: str, written: str, is_refused: bool
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "flights.csv").write_text("origin\nJFK\n")
    env = StreamEnvironment()
    env.from_csv(f"{tmp_path}/{read}").sink_to(FileSink(f"{tmp_path}/{written}", format="csv"), name="out")
    text = "sink 'out' writes into .* source 'file-source-1' reads .* give the sink a folder of its own"
    with pytest.raises(InvalidProgram, match=text) if is_refused else nullcontext():
        LocalCluster().translate(env)


@pytest.mark.parametrize("cluster", [LocalCluster, DebugCluster, SparkCluster, StandaloneCluster, RemoteCluster])
def test_a_cluster_class_without_its_brackets_says_so(cluster: Any) -> None:
    text = rf"with: wanted a cluster, found the class {cluster.__name__}: write `with {cluster.__name__}\(...\) as"
    with pytest.raises(TypeError, match=text), cluster:
        raise AssertionError("entered")

    async def enter() -> None:
        async with cluster:
            raise AssertionError("entered")

    with pytest.raises(TypeError, match=f"async {text}".replace("`with", "`async with")):
        asyncio.run(enter())


@dataclass
class Flight:
    origin: str


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (
            Any,
            r"found typing.Any, which makes no key of a record: wanted column names, positions or one function",
        ),
        (list[int], r"found list\[int\], which makes no key"),
        (int | None, r"wanted column names, positions or one function, found int \| None"),
        (object, r"found the class object, whose objects are no keys: wanted column names"),
        (dict, "found the class dict, whose objects are no keys"),
        (list, "found the class list, whose objects are no keys"),
        (Flight, r"found the class Flight, whose objects are no keys: .* such as key_by\('origin'\)"),
        (ValueState, "found the class ValueState, whose objects are no keys"),
        (
            print,
            r"the function print gives what print\(...\) returns, which is None: return the key; to see records",
        ),
        (
            lambda record: print(record),
            r"the function <lambda> \(.*test_wrong_arguments.py:\d+\) gives what print\(...\) returns",
        ),
        (pc.field("origin"), r"found an expression of columns: write the column's name, as in key_by\('origin'\)"),
        (["origin", "carrier"], r"found a list: write key_by\('origin', 'carrier'\)"),
        (("origin",), r"found a tuple: write key_by\('origin'\)"),
        ({"origin"}, r"found a set: write key_by\('origin'\)"),
    ],
)
def test_what_gives_no_key_is_refused_where_it_is_written(key: Any, text: str) -> None:
    with pytest.raises(InvalidProgram, match=f"key_by: .*{text}"):
        StreamEnvironment().from_collection([{"origin": "JFK"}]).key_by(key)


@pytest.mark.parametrize("key", [int, str, float, bytes, tuple, frozenset, bool, len, hash, UUID, Colour])
def test_classes_that_make_keys_are_taken(key: Any) -> None:
    StreamEnvironment().from_collection([1]).key_by(key)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda cluster, env: cluster.submit(env, name=5), "submit: name: wanted a non-empty string, found 5"),
        (lambda cluster, env: cluster.submit(env, " "), "submit: name: wanted a non-empty string, found ' '"),
        (lambda cluster, env: cluster.submit(env, nam="x"), "submit has no argument 'nam'; did you mean 'name'"),
        (lambda cluster, env: cluster.submit(), r"submit: env is missing: write submit\(env\)"),
        (
            lambda cluster, env: cluster.submit(env, "job").ask("t", 0, "x"),
            r"ask takes 1 .* \(operator\), found .*, 0. There are .*: write job.ask\('operator', message='question'",
        ),
        (
            lambda cluster, env: cluster.submit(env, "job").ask("t"),
            r"ask: message is missing: write job.ask\('operator', message='question', key=7\)",
        ),
    ],
)
def test_a_wrong_call_of_a_cluster_or_a_job_says_how_to_write_it(call: Callable[..., Any], text: str) -> None:
    with LocalCluster(debug=True) as cluster, pytest.raises((TypeError, InvalidSetting), match=f"^{text}"):
        call(cluster, build())


@pytest.mark.parametrize(
    ("task_managers", "slots", "has", "wanted"),
    [
        (1, 1, r"1 \(1 TaskManager with 1 slot\)", 5),
        (2, 1, r"2 \(2 TaskManagers with 1 slot each\)", 5),
        (2, 2, r"4 \(2 TaskManagers with 2 slots each\)", 3),
    ],
)
def test_too_few_slots_say_how_many_there_are_and_how_to_get_more(
    task_managers: int, slots: int, has: str, wanted: int
) -> None:
    env = StreamEnvironment(parallelism=5)
    env.generate(lambda n: n, 5, name="numbers").collect(name="out")
    text = (
        rf"the job needs 5 slots, and the cluster has {has}: start it with task_managers={wanted} or more, or lower "
        "the parallelism, which is 5 in 'numbers -> out'"
    )
    cluster = LocalCluster(task_managers=task_managers, slots_per_task_manager=slots)
    with pytest.raises(ClusterTooSmall, match=text):
        cluster.translate(env)
